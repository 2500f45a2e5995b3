"""Streams of rows between tasks: every row once, in its order, in streams of a bounded size."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_spark.routing.numbering import Placed
from hudi_spark.source_files import packing
from hudi_spark.source_files.scan import FileScan, Part
from hudi_table.errors import InvalidDataError
from hudi_table.index.base import Slot
from hudi_table.index.hashing.bucket import BucketIndex
from hudi_table.model.table.config import PartitionField, TableConfig, TableType
from hudi_table.write.keygen.table_keys import TableKeys
from tests.hudi_spark.source_files.files import flat_rows, packed, read, written

COLUMNS = pa.schema([("id", pa.string()), ("ts", pa.int64())])


@dataclass(frozen=True)
class ByOrdering:
    """Rows go to the task that their ordering value says, of so many; some go to none."""

    tasks: int

    def of(self, rows: pa.RecordBatch) -> Any:
        numbers = rows.column("ts").to_numpy() % (self.tasks + 1)
        return np.where(numbers == self.tasks, -1, numbers).astype(np.int32)


def scan_of(path: str, columns: pa.Schema = COLUMNS) -> FileScan:
    """All files of a folder, each a split."""
    splits = []
    for file in sorted(Path(path).glob("*.parquet")):
        state = file.stat()
        groups = tuple(range(pq.read_metadata(file).num_row_groups))
        splits.append((Part(str(file), state.st_size, state.st_mtime_ns // 1_000_000, groups),))
    return FileScan(tuple(splits), columns, tuple(columns.names), pa.schema([]), None)


def test_each_task_gets_its_rows_in_their_order(tmp_path):
    path = written(tmp_path / "files", flat_rows(rows=500), flat_rows(500, 300), row_group_size=70)
    streams = packed(scan_of(path), ByOrdering(3))
    assert [number for number, _ in streams] == [0, 1, 2] * 2
    for number, rows in streams:
        assert rows["ts"].to_pylist() == list(range(number, 300 if rows["id"][0].as_py() >= "k0500" else 500, 4))


def test_what_is_held_and_handed_on_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "WINDOW_BYTES", 20_000)
    monkeypatch.setattr(packing, "PAYLOAD_BYTES", 2_000)
    table = flat_rows(rows=5000)
    streams = packed(scan_of(written(tmp_path / "files", table)), ByOrdering(2))
    assert len(streams) > 20
    assert max(rows.nbytes for _, rows in streams) < 4_000
    for number in range(2):
        found = [ts for one, rows in streams if one == number for ts in rows["ts"].to_pylist()]
        assert found == list(range(number, 5000, 3))


def test_one_row_may_be_larger_than_a_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "PAYLOAD_BYTES", 10)
    path = written(tmp_path / "files", pa.table({"id": ["a" * 100, "b" * 100], "ts": [0, 0]}))
    assert [len(rows) for _, rows in packed(scan_of(path), ByOrdering(1))] == [1, 1]


def test_a_file_that_changed_meanwhile_ends_the_write(tmp_path):
    path = written(tmp_path / "files", flat_rows())
    scan = scan_of(path)
    os.utime(f"{path}/0.parquet", (1, 1))
    with pytest.raises(InvalidDataError, match=r"0\.parquet was changed"):
        read(scan)


def test_a_damaged_page_ends_the_write(tmp_path):
    table = pa.table({"id": [f"key {number:06d}" for number in range(4000)], "ts": range(4000)})
    path = written(tmp_path / "files", table, compression=None, use_dictionary=False, write_page_checksum=True)
    file = Path(path, "0.parquet")
    scan = scan_of(path)
    damaged = file.read_bytes().replace(b"key 001000", b"key 00100X")
    file.write_bytes(damaged)
    os.utime(file, ns=(scan.splits[0][0].modified * 1_000_000,) * 2)
    with pytest.raises(OSError, match="CRC"):
        read(scan)


def test_rows_are_numbered_by_slot_and_not_at_all_where_it_has_no_task():
    config = TableConfig(
        name="t", type=TableType.COPY_ON_WRITE, record_key=("id",), partition_by=(PartitionField("city"),)
    )
    index = BucketIndex(2, ("id",), ("id",))
    rows = pa.record_batch({"id": [f"k{n}" for n in range(40)], "city": ["x", "y"] * 20})
    places = {Slot("x", bucket=0): 5, Slot("x", bucket=1): 6, Slot("y", bucket=0): 7}
    found = Placed(TableKeys.of(config), index, places).of(rows).tolist()
    wanted = []
    for key, city in zip(*(rows.column(name).to_pylist() for name in ("id", "city")), strict=True):
        wanted.append(places.get(Slot(city, bucket=int(index.buckets_of(pa.array([key]), city)[0])), -1))
    assert found == wanted
    assert set(found) == {5, 6, 7, -1}
