"""With `hoodie.bloom.index.use.metadata` tasks look keys up in filters of the metadata table: files
that cannot hold any are not opened, by no process, the metadata table is listed by the driver
alone, and rows go where the footers would send them.

What one listing gives to any engine: tests/hudi_table/index/test_stored_filters.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hudi_spark
from hudi_table.api import HudiTable
from hudi_table.index import stored_filters
from hudi_table.metadata.port import open_context
from hudi_table.model.names import METADATA_TABLE
from hudi_table.table.store.ports import Objects, Storage
from tests.hudi_table.index.test_bloom import filled, key_of
from tests.hudi_table.index.test_stored_filters import BY_METADATA, EACH, FILES, damaged, missing
from tests.support.written import contents, rows

pytestmark = pytest.mark.spark

ROW = "id string, city string, value long, ts long, _hoodie_is_deleted boolean"


class Noted:
    """A storage of which the driver and every task note in one file what they open and list."""

    def __init__(self, inner: Storage, notes: str, who: str) -> None:
        self._inner, self._notes, self._who = inner, notes, who

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open_read(self, path: str) -> Any:
        self._note("open", path)
        return self._inner.open_read(path)

    def list(self, prefix: str = "", **more: Any) -> Objects:
        self._note("list", prefix)
        return self._inner.list(prefix, **more)

    def reopen(self) -> Callable[[], Noted]:
        return partial(_in_task, self._inner.reopen(), self._notes)

    def _note(self, call: str, path: str) -> None:
        line = f"{self._who} {call} {path}\n".encode()
        file = os.open(self._notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line)
        os.close(file)


def _in_task(inner: Callable[[], Storage], notes: str) -> Noted:
    return Noted(inner(), notes, "task")


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    """Six files of fifty keys, all of nearly the same range, and their filters in a metadata
    table."""
    made = filled(FILES, EACH, uri=str(tmp_path / "t"))
    made.build_metadata(["bloom_filters", "column_stats"])
    return made


def upserted(spark: SparkSession, table: HudiTable, *numbers: int) -> set[str]:
    """The base files that an upsert of these keys opened; checks what it left."""
    kept = {key: (key, city, value) for key, city, value in contents(table)}
    expected = sorted((kept | {key_of(n): (key_of(n), "x", -n) for n in numbers}).values())
    before = {info.path for info in table.context.storage.list("x")}
    notes = Path(table.context.base_path).with_name("notes")
    notes.unlink(missing_ok=True)
    noted: Any = Noted(table.context.storage, str(notes), "driver")
    frame = spark.createDataFrame([(key_of(n), "x", -n, 1, None) for n in numbers], ROW)
    hudi_spark.write(frame, HudiTable(open_context(noted)), options=BY_METADATA)
    assert contents(table) == expected
    steps = [line.split(" ", 2) for line in notes.read_text().splitlines()]
    assert {who for who, call, path in steps if call == "list" and path.startswith(METADATA_TABLE)} == {"driver"}
    return {path for _, call, path in steps if call == "open" and path in before}


def test_no_file_is_opened_that_holds_none_of_the_keys(
    spark: SparkSession, table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_filters, "FILES_AT_ONCE", 2)
    assert len(upserted(spark, table, 7, 7 + FILES, FILES * EACH + 1)) == 1
    assert len(upserted(spark, table, 8, 9)) == 2, "filters of a later commit"


def test_filters_are_asked_for_every_key_where_no_ranges_are_ready(spark: SparkSession, tmp_path: Path) -> None:
    table = filled(FILES, EACH, uri=str(tmp_path / "t"))
    table.build_metadata(["bloom_filters"])
    assert len(upserted(spark, table, 7)) == 1


@pytest.mark.parametrize("spoil", [damaged, missing])
def test_footers_are_asked_where_filters_are_not_to_be_had(
    spark: SparkSession, table: HudiTable, spoil: Callable[[HudiTable], None]
) -> None:
    spoil(table)
    assert len(upserted(spark, table, 7)) == FILES


def test_a_base_file_with_logs_is_not_opened_either(spark: SparkSession, tmp_path: Path) -> None:
    table = filled(FILES, EACH, uri=str(tmp_path / "t"), type="MergeOnRead")
    table.build_metadata(["bloom_filters", "column_stats"])
    table.upsert(rows(*((key_of(n), "x", -n) for n in (1, 2, 3))), options=BY_METADATA)
    assert len([path for path in upserted(spark, table, 2, 2 + FILES, 4) if path.endswith(".parquet")]) == 2
