"""The bar of an operation: drawn on a real terminal, and gone when it has ended; nothing of it
where stderr is none."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from hudi_table import create_table, write_hudi

ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})


def compacting(folder: Path, stderr: int) -> subprocess.Popen[bytes]:
    index = {"type": "Bucket", "buckets": 1}
    table = create_table(str(folder / "t"), ROWS.schema, record_key="id", index=index, type="MergeOnRead")
    for value in (0, 1):
        write_hudi(table, ROWS.set_column(1, "n", pa.array([value, value])))
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm"}
    command = [
        sys.executable,
        "-m",
        "hudi_table",
        "compact",
        str(folder / "t"),
        "--option",
        "hoodie.compact.inline.max.delta.commits=1",
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment)


def shown(terminal: int) -> str:
    """All that a terminal is given until its last writer has gone."""
    found = b""
    with suppress(OSError):
        while more := os.read(terminal, 4096):
            found += more
    return found.decode()


def test_a_terminal_is_shown_how_far_an_operation_is_and_keeps_nothing_of_it(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with compacting(tmp_path, theirs) as running:
        os.close(theirs)
        drawn = shown(ours)
        said, _ = running.communicate()
    os.close(ours)
    assert running.returncode == 0, drawn
    assert "compaction" in drawn
    assert "1/1" in drawn
    assert drawn.rstrip().endswith("\x1b[2K"), "the line of the bar is cleared"
    assert b"\x1b[2K" not in said


def test_a_file_is_shown_nothing(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log, compacting(tmp_path, log.fileno()) as running:
        running.communicate()
    assert running.returncode == 0
    assert (tmp_path / "log").read_text() == ""
