"""Where Spark takes a road of its own to the index, it comes to what the local engine comes to.

Matrix: {each index of `tests/support/indexes.py`} × {copy-on-write, merge-on-read}: the same writes
go to two tables, to one through Spark and to the other through the local engine, and both hold the
same rows after each of them. Of a record index also: keys that stay in their partition, and a table
that has none. Of bloom indexes also: filters of the metadata table.

`make test` takes each road of Spark's once (`LONG` says what it leaves to `make test-full`):
copy-on-write where a hash says all; merge-on-read where keys are looked up, since keys of logs are
found beside those of base files.

Omitted: what `tests/hudi_table/index/test_conformance.py` holds every index to on the local engine.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import hudi_spark
from hudi_table.api import open_table
from hudi_table.arguments import OperationName
from hudi_table.index.record_index import RecordIndex
from hudi_table.model.table.config import TableType
from hudi_table.table.store.opening import open_storage
from tests.support.crashes import read
from tests.support.indexes import MOVES, SMALL_FILTER, SUBJECTS, Case, Subject

pytestmark = pytest.mark.spark

WITHOUT = {"hoodie.metadata.enable": "false"}
"""What leaves a table without an index to ask."""
STEPS: tuple[tuple[OperationName, list[tuple[str, str, int]]], ...] = (
    ("insert", [("a", "x", 1), ("b", "x", 2), ("c", "y", 3), ("a:b", "x", 4), ("é,中", "y", 5)]),
    ("upsert", [("a", "y", 20), ("c", "new", 21), ("m", "x", 22), ("a:b", "x", 11), ("n", "z", 12), ("é,中", "y", 13)]),
    ("upsert", []),
    ("delete", [("b", "x", 0), ("c", "y", 0), ("nobody", "x", 0)]),
    ("upsert", [("b", "x", 30), ("a", "x", 31), ("c", "y", 32)]),
)


@contextlib.contextmanager
def by_value(module: str) -> Iterator[None]:
    """A package that only this process has goes to the tasks whole; where it is installed there,
    its name does."""
    if not module:
        yield
        return
    loaded = importlib.import_module(module)
    cloudpickle.register_pickle_by_value(loaded)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(loaded)


LONG = pytest.mark.at_scale(2)


def every_case() -> Iterator[Any]:
    for subject in SUBJECTS:
        # The external index goes the way of the one of another package: with both of these its global one is enough.
        alone = subject.types[-1] if subject.name not in ("bucket", "bucket-by-partition") else TableType.COPY_ON_WRITE
        for kind in subject.types:
            kept = kind is alone and subject.name != "external"
            yield pytest.param(Case(subject, kind), marks=() if kept else LONG, id=f"{subject}-{kind.value}")


@pytest.mark.parametrize("case", list(every_case()))
def test_spark_finds_keys_as_the_local_engine_does(
    spark: SparkSession, tmp_path: Path, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    agrees(spark, tmp_path, case)
    assert not [record for record in caplog.records if record.name == "hudi_table"], "an index was not told of a commit"


COME_BACK = ("simple", "global-simple", "bloom", "custom")
"""Indexes that may find a key in several files, each on a road of its own."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG if name == "bloom" else ()) for name in COME_BACK])
def test_a_key_that_comes_back_after_its_deletion_comes_back_once(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Two files hold each key, and a log deletes it in one of them, or in both."""
    (subject,) = (subject for subject in SUBJECTS if subject.name == name)
    case = Case(subject, TableType.MERGE_ON_READ)
    apart = dict(subject.written) | {"hoodie.parquet.small.file.limit": "0"}
    with subject.standing(), by_value(subject.module):
        table = case.new_table(open_storage(str(tmp_path)))
        for value, operation in enumerate(("insert", "delete", "insert")):
            case.write(table, operation, ("a", "x", value), ("b", "x", value), options=apart)
        case.write(table, "delete", ("b", "x", 3))
        frame = spark.createDataFrame(
            [("a", "x", 9), ("b", "x", 9), ("n", "x", 9)], "id string, city string, value long"
        )
        hudi_spark.write(frame, table.context.base_path, "upsert", options=apart)
        found = table.scan(["id", "city", "value"]).to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in found) == [("a", "x", 9), ("b", "x", 9), ("n", "x", 9)]


RECORD_INDEXES = (
    (Case(Subject("stays", "RecordIndex", is_global=True), TableType.MERGE_ON_READ), LONG),
    # Tasks ask it without shards, since a key stays where it is found.
    (Case(Subject("stays-unasked", "RecordIndex", is_global=True, written=WITHOUT), TableType.COPY_ON_WRITE), ()),
    # Tasks search files as those of a simple index do.
    (Case(Subject("by-partition-unasked", "PartitionedRecordIndex", written=WITHOUT), TableType.MERGE_ON_READ), LONG),
    (
        Case(
            Subject("moves-unasked", "RecordIndex", is_global=True, created=MOVES, written=WITHOUT),
            TableType.COPY_ON_WRITE,
        ),
        LONG,
    ),
)


@pytest.mark.filterwarnings("ignore::hudi_table.index.record_index.RecordIndexWarning")
@pytest.mark.parametrize("case", [pytest.param(case, marks=marks, id=str(case)) for case, marks in RECORD_INDEXES])
def test_a_record_index_leaves_keys_where_they_are_and_is_done_without_as_locally(
    spark: SparkSession, tmp_path: Path, case: Case
) -> None:
    agrees(spark, tmp_path, case)


@pytest.mark.parametrize(
    ("index", "searched"),
    [(RecordIndex(is_global=False), True), (RecordIndex(moves=True), True), (RecordIndex(moves=False), False)],
    ids=["by-partition", "moves", "stays"],
)
def test_without_a_record_index_tasks_search_files_unless_a_key_stays_where_it_is_found(
    index: RecordIndex, searched: bool
) -> None:
    assert (index.in_tasks([]).search is not None) is searched


BY_METADATA = SMALL_FILTER | {
    "hoodie.bloom.index.use.metadata": "true",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
STORED_FILTERS = (
    # What tasks do with those of one partition, logs included, stands in test_stored_filters.py.
    pytest.param(
        Case(Subject("stored-filters", "Bloom", created=SMALL_FILTER, written=BY_METADATA), TableType.MERGE_ON_READ),
        marks=LONG,
    ),
    Case(
        Subject("stored-filters", "GlobalBloom", is_global=True, created=SMALL_FILTER, written=BY_METADATA),
        TableType.COPY_ON_WRITE,
    ),
)


@pytest.mark.parametrize("case", STORED_FILTERS, ids=str)
def test_filters_of_the_metadata_table_send_keys_where_they_do_locally(
    spark: SparkSession, tmp_path: Path, case: Case
) -> None:
    agrees(spark, tmp_path, case)
    assert open_table(str(tmp_path / "spark")).context.config.metadata_partitions


def agrees(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    """The same writes on both roads come to the same rows."""
    subject = case.subject
    with subject.standing(), by_value(subject.module):
        tables = [case.new_table(open_storage(str(tmp_path / name))) for name in ("spark", "local")]
        for operation, items in STEPS:
            frame = spark.createDataFrame(items, "id string, city string, value long")
            hudi_spark.write(frame, tables[0].context.base_path, operation, options=subject.written)
            case.write(tables[1], operation, *items)
            found, expected = (read(table.context.storage) for table in tables)
            assert found == expected, f"{operation} of {items}"
