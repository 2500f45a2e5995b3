"""Tasks look for the markers of earlier writes, where the options ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hudi_spark
from hudi_table.errors import WriteConflictError
from tests.hudi_table.write.test_conflicts import Meanwhile
from tests.hudi_table.write.test_early_conflicts import AHEAD, EARLY
from tests.support.written import INDEXES, contents, new_table, rows


@pytest.mark.parametrize("index", INDEXES)
def test_a_write_ends_whose_file_group_an_earlier_one_has_begun_to_change(
    spark: SparkSession, tmp_path: Path, index: str
) -> None:
    table = new_table(str(tmp_path / "t"), index=INDEXES[index])
    table.upsert(rows(("a", "x", 1), ("b", "y", 2)))

    def later() -> None:
        with pytest.raises(WriteConflictError, match=AHEAD):
            hudi_spark.write(spark.createDataFrame(rows(("a", "x", 20))), table, "upsert", options=EARLY)
        hudi_spark.write(spark.createDataFrame(rows(("b", "y", 20))), table, "upsert", options=EARLY)

    table.upsert(rows(("a", "x", 10)), engine=Meanwhile(later))
    assert contents(table) == [("a", "x", 10), ("b", "y", 20)]
