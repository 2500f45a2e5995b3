"""`hudictl doctor --mend` on a table of a writer that was killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hudi_table.cli.program import main
from tests.support.written import new_table, rows

HOURS = 5 * 3600


def test_what_a_killed_writer_left_unfinished_goes_when_the_table_is_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new_table(str(tmp_path / "t")).upsert(rows(("a", "x", 1)))
    old, young = (tmp_path / "t" / "x" / f"{name}.hudi-staging" for name in ("old", "young"))
    for path, age in ((old, HOURS), (young, 60)):
        path.write_bytes(b"half of it")
        os.utime(path, (time.time() - age,) * 2)
    assert main(["doctor", str(tmp_path / "t")]) == 0
    assert "hudictl doctor --mend" in capsys.readouterr().out
    assert main(["doctor", str(tmp_path / "t"), "--mend"]) == 0
    said = capsys.readouterr()
    assert "deleted: 1 unfinished file of writers that were killed" in said.err
    assert "old.hudi-staging" not in said.out
    assert not old.exists()
    assert young.exists(), "its writer may be at work"
