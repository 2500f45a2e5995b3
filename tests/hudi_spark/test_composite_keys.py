"""Composite keys: the rule in Arrow and the rule in Spark's columns give one verdict of the same
keys."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_spark.routing.composite_keys import doubts
from hudi_spark.routing.key_columns import record_key_column
from hudi_table.api import create_table
from hudi_table.errors import InvalidDataError
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.keys.record_keys import record_keys
from hudi_table.write.keygen.composite_keys import doubtful_keys

pytestmark = pytest.mark.spark

FIELDS = ("a", "b", "c_d")
# The values of a row and whether its text may be another row's too; None: they hold a word for a null or an empty text.
CASES: dict[tuple[str | None, str | None, str | None], bool | None] = {
    ("x", "y", "z"): False,
    ("x,b:y", "y", "z"): True,
    ("x", "y,b:", "z"): True,
    ("x", "y,c_d:", "z"): True,
    ("x", "y,c:d", "z,cXd:"): False,
    ("x,b", "b:y", ",b"): False,
    (",b:,b:", "y", "z"): True,
    (",B:", "y,a:", "z"): False,
    ("é,b:", "\U0001f600", "z"): True,
    (None, "", "z"): False,
    (",b:", None, ""): True,
    ("__null__", "y", "z"): None,
    ("x", "__empty__", "z,b:"): None,
}


def test_arrow_and_spark_doubt_the_same_keys(spark, tmp_path):
    schema = pa.schema([(name, pa.string()) for name in FIELDS])
    config = create_table(f"{tmp_path}/t", schema, record_key=list(FIELDS)).context.config
    rows = [(number, *values) for number, values in enumerate(CASES)]
    frame = spark.createDataFrame(rows, "n int, a string, b string, c_d string")
    frame = frame.withColumn(RECORD_KEY, record_key_column(frame, config))
    counts = doubts(frame, config)
    found = frame.groupBy("n").agg(*(count.alias(name) for name, count in counts.items())).collect()
    words = [name for name in counts if name.startswith("word")]
    by_spark = {row["n"]: None if any(row[name] for name in words) else bool(row["doubtful"]) for row in found}

    def by_arrow(values):
        batch = pa.record_batch([pa.array([value], pa.string()) for value in values], schema=schema)
        try:
            return doubtful_keys(batch, config, record_keys(batch, config), None) is not None
        except InvalidDataError:
            return None

    assert [by_arrow(values) for values in CASES] == list(CASES.values())
    assert [by_spark[number] for number in range(len(CASES))] == list(CASES.values())
