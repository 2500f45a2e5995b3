"""`hudictl archive`, and `hudictl timeline --archived`."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import create_table, write_hudi
from hudi_table.cli import exits, main
from hudi_table.services.archiving import debt

KEEP = ("hoodie.clean.commits.retained=1", "hoodie.keep.min.commits=2", "hoodie.keep.max.commits=3")
OPTIONS = [part for option in KEEP for part in ("--option", option)]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A table with seven commits, all written two hours ago."""
    folder = tmp_path / "flights"
    rows = pa.table({"id": ["a", "b"], "n": [1, 2]})
    table = create_table(str(folder), rows.schema, record_key="id", version=6)
    for _ in range(6):
        write_hudi(table, rows)
    then = time.time() - 7200
    for path in (folder / ".hoodie").iterdir():
        os.utime(path, (then, then))
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[list[dict[str, Any]], str]:
    assert main([*map(str, arguments), "-o", "json"]) == 0
    out = capsys.readouterr()
    return json.loads(out.out)["items"], out.err


def files(base: Path) -> set[str]:
    return {path.name for path in (base / ".hoodie").iterdir() if path.is_file()}


def test_a_dry_run_comes_first_and_yes_does_what_it_said(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(base)
    ((plan,), said) = run(capsys, "archive", base, *OPTIONS)
    assert files(base) == before
    assert "--yes" in said
    assert len(plan["instants"]) == 5
    assert plan["filesBefore"] == len(before)
    ((done,), _) = run(capsys, "archive", base, *OPTIONS, "--yes")
    assert done["message"] == "5 instants archived"
    assert done["filesDeleted"] == 15
    assert len(files(base)) == plan["filesAfter"]
    for arguments in ([], ["--yes"]):
        found, said = run(capsys, "archive", base, *OPTIONS, *arguments)
        assert found == []
        assert "--now" in said


def test_the_defaults_keep_a_young_timeline(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "archive", base, "--yes", "--now")[0] == []
    assert main(["archive", str(base), "--option", "hoodie.keep.min.commits=40"]) == exits.USAGE
    assert "hoodie.keep.max.commits=30" in capsys.readouterr().err


def test_the_archived_timeline_is_shown_where_it_is_asked_for(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, _ = run(capsys, "timeline", base)
    run(capsys, "archive", base, *OPTIONS, "--yes")
    left, _ = run(capsys, "timeline", base)
    found, _ = run(capsys, "timeline", base, "--archived")
    for rows in (whole, left, found):
        for row in rows:
            del row["ageSeconds"]
    assert left == whole[:2]
    assert found == whole
    assert len(run(capsys, "timeline", base, "--archived", "--limit", 4)[0]) == 4


def test_info_counts_the_files_of_the_timeline_and_warns_of_many(
    base: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["info", str(base), "-o", "json"]) == 0
    out = capsys.readouterr()
    assert json.loads(out.out)["timelineFiles"] == len(files(base))
    assert out.err == ""
    monkeypatch.setattr("hudi_table.cli.queries.info.TIMELINE_FILES_WARN", 20)
    assert main(["info", str(base)]) == 0
    assert "archive it before it reaches 1000" in capsys.readouterr().err
    assert debt.TIMELINE_FILES_WARN < debt.TIMELINE_FILES_MAX == 1_000
