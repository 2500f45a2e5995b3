"""An export, and a copy, while the table is written, compacted and cleaned: the rows of one moment,
or an error that says how to keep that moment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table import ExpiredError, HudiTable, create_table, open_table
from hudi_table.cli import main
from hudi_table.importing import import_table
from hudi_table.read.scan import Scan

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("n", pa.int64())])
CITIES = 24
"""More than a scan reads ahead."""
KEEP = {"hoodie.clean.commits.retained": "1"}


def rows(value: int) -> pa.Table:
    return pa.table({"id": range(CITIES), "city": [f"c{i}" for i in range(CITIES)], "n": [value] * CITIES}, SCHEMA)


@pytest.fixture(params=["CopyOnWrite", "MergeOnRead"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    made = create_table(str(tmp_path / "t"), SCHEMA, record_key="id", partition_by="city", type=request.param)
    made.upsert(rows(0))
    made.upsert(rows(1))
    return made


def gone_on(table: HudiTable, *, cleaned: bool) -> None:
    """What a driver does in a while: nothing of what was there is needed by the newest state."""
    for value in (2, 3):
        table.upsert(rows(value))
        if table.context.config.type.value == "MergeOnRead":
            table.compact(force=True)
        if cleaned:
            table.clean(KEEP, force=True)


class Meanwhile(Scan):
    """A scan beside which the table goes on, each time once its first row has come."""

    cleaned = True

    @classmethod
    def of(cls, scan: Scan, *, cleaned: bool = True) -> Meanwhile:
        made = cls(scan.context, scan._request)
        made.cleaned = cleaned
        return made

    def to_batches(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self._beside(super().to_batches()))

    def _beside(self, found: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(found):
            if number == 0:
                gone_on(open_table(self.context.base_path), cleaned=self.cleaned)
            yield batch


def exported(folder: Path) -> dict[int, int]:
    found = [pq.read_table(path).to_pylist() for path in folder.glob("*.parquet")]
    return {row["id"]: row["n"] for part in found for row in part}


ALL_ONE = dict.fromkeys(range(CITIES), 1)


def test_what_is_written_and_compacted_amid_an_export_is_not_in_it(table: HudiTable, tmp_path: Path) -> None:
    Meanwhile.of(table.scan(), cleaned=False).export(str(tmp_path / "out"))
    assert exported(tmp_path / "out") == ALL_ONE
    assert set(table.scan(["n"]).to_arrow()["n"].to_pylist()) == {3}


def test_an_export_whose_files_are_cleaned_names_the_savepoint_that_keeps_them(
    table: HudiTable, tmp_path: Path
) -> None:
    with pytest.raises(ExpiredError, match="reads as of a savepoint") as error:
        Meanwhile.of(table.scan()).export(str(tmp_path / "out"))
    assert f"hudictl savepoint {table.base_path} --create" in str(error.value)
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def test_an_export_and_a_copy_of_a_savepoint_end_beside_cleans(
    table: HudiTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = table.base_path
    assert main(["savepoint", base, "--create", "-o", "json"]) == 0
    instant = json.loads(capsys.readouterr().out)["items"][0]["instant"]
    done = Meanwhile.of(table.scan(as_of=instant)).export(str(tmp_path / "out"))
    assert exported(tmp_path / "out") == ALL_ONE
    table.scan(query="incremental", since=done.next_since).export(str(tmp_path / "next"))
    assert exported(tmp_path / "next") == dict.fromkeys(range(CITIES), 3)
    assert import_table(tmp_path / "copy", Meanwhile.of(table.scan(as_of=instant))).rows == CITIES
    assert set(open_table(tmp_path / "copy").scan(["n"]).to_arrow()["n"].to_pylist()) == {1}
    for form in ("csv", "hudi"):
        assert main(["export", base, str(tmp_path / form), "--as-of", instant, "--format", form]) == 0
    assert main(["savepoint", base, "--delete", instant, "--writers-stopped"]) == 0
