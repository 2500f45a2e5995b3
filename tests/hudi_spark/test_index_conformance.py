"""Where Spark takes a road of its own to the index, it comes to what the local engine comes to.

Matrix: {each index of `tests/support/indexes.py`} × {copy-on-write, merge-on-read}: the same writes go to two tables, to one through
Spark and to the other through the local engine, and both hold the same rows after each of them.

Omitted: what `tests/hudi_table/index/test_conformance.py` holds every index to on the local engine.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import hudi_spark
from hudi_table.model.table_config import TableType
from hudi_table.table.storage import open_storage
from tests.support.crashes import read
from tests.support.indexes import SUBJECTS, TYPES, Case, Subject

pytestmark = pytest.mark.spark

STEPS: tuple[tuple[str, list[tuple[str, str, int]]], ...] = (
    ("insert", [("a", "x", 1), ("b", "x", 2), ("c", "y", 3), ("a:b", "x", 4), ("é,中", "y", 5)]),
    ("upsert", [("a", "x", 10), ("a:b", "x", 11), ("n", "z", 12), ("é,中", "y", 13)]),
    ("upsert", [("a", "y", 20), ("c", "new", 21), ("m", "x", 22)]),
    ("upsert", []),
    ("delete", [("b", "x", 0), ("c", "y", 0), ("nobody", "x", 0)]),
    ("upsert", [("b", "x", 30), ("a", "x", 31), ("c", "y", 32)]),
)


@contextlib.contextmanager
def by_value(module: str) -> Iterator[None]:
    """A package that only this process has goes to the tasks whole; where it is installed there, its name does."""
    if not module:
        yield
        return
    loaded = importlib.import_module(module)
    cloudpickle.register_pickle_by_value(loaded)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(loaded)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.value)
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_spark_finds_keys_as_the_local_engine_does(
    spark: SparkSession, tmp_path: Path, subject: Subject, kind: TableType, caplog: pytest.LogCaptureFixture
) -> None:
    case = Case(subject, kind if kind in subject.types else subject.types[0])
    with subject.standing(), by_value(subject.module):
        tables = [case.new_table(open_storage(str(tmp_path / name))) for name in ("spark", "local")]
        for operation, items in STEPS:
            frame = spark.createDataFrame(items, "id string, city string, value long")
            hudi_spark.write(frame, tables[0].context.base_path, operation, options=subject.written)
            case.write(tables[1], operation, *items)
            found, expected = (read(table.context.storage) for table in tables)
            assert found == expected, f"{operation} of {items}"
        assert not [record for record in caplog.records if record.name == "hudi_table"], (
            "an index was not told of a commit"
        )
