"""`hudictl cluster`: it tells first, and acts on `--yes` alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudi_table.api import create_table, write_hudi
from hudi_table.cli.program import main
from tests.hudi_table.cli.test_verbs import ROWS, run


@pytest.fixture
def scattered(tmp_path: Path) -> Path:
    """A table of three small files."""
    table = create_table(str(tmp_path / "t"), ROWS.schema, record_key="id")
    for start in range(0, 150, 50):
        write_hudi(table, ROWS.slice(start, 50), operation="insert", options={"hoodie.parquet.small.file.limit": "0"})
    return tmp_path / "t"


def items(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(run(capsys, "cluster", *arguments, "-o", "json"))["items"]
    return found


def test_it_tells_what_would_be_done_and_changes_nothing(scattered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(scattered.rglob("*"))
    assert main(["cluster", str(scattered)]) == 0
    assert "no clustering waits, and none is due; --now" in capsys.readouterr().err
    (told,) = items(capsys, scattered, "--now")
    assert (told["fileGroups"], told["filesBefore"], told["filesAfter"]) == (3, 3, 1)
    assert told["bytesRead"]
    assert "3 file groups" in str(told["details"])
    assert sorted(scattered.rglob("*")) == before


def test_now_is_not_advised_to_who_gave_it(scattered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", str(scattered), "--now", "--yes"]) == 0
    capsys.readouterr()
    for verb, said in (
        ("cluster", "no clustering waits, and nothing is left to cluster\n"),
        ("archive", "nothing may leave yet\n"),
    ):
        assert main([verb, str(scattered), "--now"]) == 0
        assert capsys.readouterr().err.endswith(said)


def test_a_plan_is_made_and_executed_apart(scattered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (planned,) = items(capsys, scattered, "--now", "--schedule", "--yes")
    (waits,) = items(capsys, scattered)
    assert (waits["instant"], waits["done"]) == (planned["instant"], "waits for its execution")
    (done,) = items(capsys, scattered, "--yes")
    assert (done["instant"], done["filesAfter"], done["rowsWritten"]) == (planned["instant"], 1, 150)
    assert len(json.loads(run(capsys, "files", scattered, "-o", "json"))["items"]) == 1


def test_options_decide_when(scattered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (done,) = items(capsys, scattered, "--yes", "--option", "hoodie.clustering.async.max.commits=3")
    assert done["filesBefore"] == 3
