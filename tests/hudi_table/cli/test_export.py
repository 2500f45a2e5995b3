"""`hudictl export`: what it writes, what it says, what it refuses, and what it does where replies
are lost."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table import create_table, open_table
from hudi_table.cli import main
from hudi_table.errors import UnavailableError
from hudi_table.read.output.export import export
from tests.support.faults import Fault, FaultPlan, FaultyStorage
from tests.support.tables import memory_storage

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


def test_a_reply_that_is_lost_ends_it_with_what_to_do_and_that_of_the_last_file_is_asked_for_again() -> None:
    def exported_to(store: FaultyStorage) -> None:
        export(ROWS.to_reader(), store, "parquet", ["city"], {}, lambda: "1")

    def lost(at: int) -> FaultyStorage:
        return FaultyStorage(memory_storage(), FaultPlan(at, Fault.LOST_REPLY, only=lambda call: call.writes))

    exported_to(counted := lost(99))
    for call in counted.plan.calls[:-1]:
        with pytest.raises(UnavailableError, match="the store did not confirm a request"):
            exported_to(lost(call.number))
    exported_to(lost(len(counted.plan.calls)))
