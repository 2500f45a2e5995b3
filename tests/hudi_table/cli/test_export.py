"""`hudictl export`: what it writes, what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table import create_table, open_table
from hudi_table.cli import main

ROWS = pa.table({"id": ["a", "b", "c"], "city": ["x", "y", "x"], "n": [1, 2, 3]})


@pytest.fixture
def base(tmp_path: Path) -> str:
    made = create_table(str(tmp_path / "t"), ROWS.schema, record_key="id")
    made.upsert(ROWS)
    return str(tmp_path / "t")


def exported(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["export", *arguments, "-o", "json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_all_rows_then_what_changed(base: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = exported(capsys, base, str(tmp_path / "a"), "--partition-by", "city", "--filter", "n < 3")
    assert (first["rows"], first["files"], first["target"]) == (2, 2, str(tmp_path / "a"))
    assert pq.ParquetFile(next((tmp_path / "a" / "city=y").iterdir())).read().to_pylist() == [{"id": "b", "n": 2}]
    open_table(base).upsert(pa.table({"id": ["b"], "city": ["y"], "n": [20]}))
    more = ("--query", "incremental", "--since", str(first["nextSince"]), "--format", "csv", "--columns", "id,n")
    second = exported(capsys, base, str(tmp_path / "b"), *more)
    assert second["rows"] == 1
    (path,) = (tmp_path / "b").glob("*.csv")
    assert path.read_text() == '"id","n"\n"b",20\n'


def test_it_says_what_it_wrote(base: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", base, str(tmp_path / "a")]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["Target", "Rows", "Files", "Next"]
    assert main(["export", base, str(tmp_path / "a")]) == 1
    assert "is not empty, _SUCCESS is there: export into another folder" in capsys.readouterr().err


def test_what_the_table_or_the_target_lacks_is_named(
    base: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", base, str(tmp_path / "a"), "--partition-by", "nope"]) == 2
    assert "'nope', which is no column of the rows: id, city, n" in capsys.readouterr().err
    assert main(["export", base, str(tmp_path / "a"), "--filter", "n < 3", "--query", "cdc"]) == 2
    assert "--filter does not go with --query cdc" in capsys.readouterr().err
    for query in ("incremental", "cdc"):
        assert main(["export", base, str(tmp_path / "a"), "--query", query, "--limit", "2"]) == 2
        assert "limit is 2 and only some changes would be exported" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
