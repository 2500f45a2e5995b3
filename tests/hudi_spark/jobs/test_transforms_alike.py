"""Every expression that a transform may hold without Spark gives the values that Spark gives, on
rows that are chosen to tell the two apart."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_spark.jobs.ingest_spark import transformed as by_spark
from hudi_table.errors import HudiError
from hudi_table.services.transforming.steps import transformed

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "i": pa.array([1, -7, None, 2_000_000_000], pa.int32()),
        "l": pa.array([10, -3, None, 9_007_199_254_740_993], pa.int64()),
        "d": pa.array([1.5, -2.5, None, 1e3], pa.float64()),
        "m": pa.array([Decimal("1.99"), Decimal("-2.50"), None, Decimal("0.05")], pa.decimal128(10, 2)),
        "s": pa.array(["aB", "", None, "  x é "]),
        "w": pa.array(["12", " -3 ", None, "+4"]),
        "t": pa.array([datetime(2013, 1, 2, 3, 4, 5, 600_000, UTC), datetime(1969, 12, 31, 23, 59, 59, 0, UTC), None,
                       datetime(2024, 2, 29, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        "y": pa.array([date(2013, 1, 2), date(1969, 12, 31), None, date(2024, 2, 29)]),
        "b": pa.array([True, False, None, True]),
        "r": pa.array([{"x": 1, "z": "q"}, {"x": None, "z": ""}, None, {"x": 3, "z": "v"}]),
        "v": pa.array([b"ab", b"", None, "é".encode()], pa.binary()),
        "a": pa.array([["p", "q"], [], None, ["u"]], pa.list_(pa.string())),
    }
)  # fmt: skip
EXPRESSIONS = [
    "cast(d as int)", "cast(d as bigint)", "cast(m as int)", "cast(m as bigint)", "cast(w as int)", "cast(w as bigint)", "cast(l as string)",
    "cast(i as smallint)", "cast(b as int)", "cast(m as string)", "cast(y as string)", "cast(t as string)", "cast(b as string)",
    "cast(v as string)", "cast(w as double)", "cast(i as double)", "cast(m as double)", "cast(d as decimal(10,0))", "cast(m as decimal(4,1))",
    "cast(w as decimal(5,2))", "cast(t as date)", "cast(y as timestamp)", "cast('2013-01-02 03:04:05' as timestamp)", "cast(s as int)", "cast(l as int)",
    "cast('2013-01-02' as date)", "to_date(t)", "i + 1", "l - i", "l * 2", "i / 2", "l / d", "i % 4", "-i", "l % 0", "i / 0", "m + 1", "d * d", "abs(i)",
    "m / 2", "i = l", "d > 1", "s <=> null", "s is null", "not b", "i in (1, -7)", "i not in (1, null)", "i between 0 and 5", "s like 'a%'", "s like '%é_'",
    "b and i > 0", "b or i > 0", "case when i > 0 then 'p' when i < 0 then 'n' end", "if(i > 0, 'p', 'n')", "coalesce(i, 0)", "nvl(s, 'none')", "nullif(i, 1)",
    "greatest(i, l)", "least(i, 5)", "concat(s, '-', i)", "concat(s, t)", "concat_ws('-', s, i, null, y)", "s || w", "upper(s)", "lower(s)", "length(s)",
    "replace(s, 'a', 'xx')", "substring(s, 0, 2)", "substring(s, 2, 2)", "substring(s, 3)", "md5(s)", "sha2(s, 256)", "date_format(t, 'yyyyMMddHH')",
    "date_format(y, 'yyyy-MM-dd HH:mm:ss')", "year(t)", "month(y)", "day(t)", "named_struct('k', i, 'o', s)", "struct(i, s)", "r.x", "r.z", "r", "a",
    "timestamp_millis(i)", "timestamp_micros(i)", "timestamp_seconds(i)", "i <=> l", "true", "cast(null as int)", "'it''s'", "'a\\nb'", "'tab\\\\x'", '"q"',"i div 2", "date'2020-01-02'", "s like 'a_'", "1.5", "3000000000", "concat(d, 'x')",
    "cast(d as string)", "cast(t as bigint)", "cast(a as string)",
]  # fmt: skip
STATEMENTS = [
    "select a.* except (v) from source a where i > 0",
    "select * except (a, v) from source where b",
    "select i, explode(a) e from source",
    "select b, count(*) n, min(l) low, max(s) high, count(i) m from source group by b having count(*) > 0",
    "select i from (select *, row_number() over (partition by b order by i desc) n from source) where n = 1",
    "select i from source qualify row_number() over (partition by b order by i) = 1",
    "with x as (select distinct b from source) select b from x union all select null",
    "select I from SOURCE where S = 'aB'",
]


def of_spark(spark: SparkSession, sql: str) -> Any:
    try:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        frame = spark.createDataFrame(ROWS)
        return by_spark(spark, frame, [{"sql": sql}]).toArrow().to_pylist()
    except (PySparkException, HudiError) as error:
        return error


def of_duckdb(sql: str) -> Any:
    try:
        with transformed(ROWS, [{"sql": sql}], None) as found:
            return found.read_all().to_pylist()
    except HudiError as error:
        return error


def plain(value: Any) -> Any:
    """A value whose type is no matter: a whole number of any width, an instant in any zone."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_gives_what_spark_gives_or_is_refused(spark: SparkSession, expression: str) -> None:
    for row in range(ROWS.num_rows):
        where = ["i = 1", "i = -7", "i is null", "i = 2000000000"][row]
        sql = f"select {expression} as o from source where {where}"
        ours, theirs = of_duckdb(sql), of_spark(spark, sql)
        if isinstance(ours, HudiError):
            continue  # said, not silent
        assert not isinstance(theirs, Exception), f"{expression}: ours {ours}, Spark refuses: {theirs}"
        found = [plain(each.get("o")) for each in ours]
        assert found == [plain(each["o"]) for each in theirs], expression


REFUSED = [
    "l % 0",
    "i / 0",
    "'it''s'",
    "i div 2",
    "concat(d, 'x')",
    "cast(d as string)",
    "cast(t as bigint)",
    "cast(a as string)",
    "m / 2",
]


@pytest.mark.parametrize("expression", [each for each in EXPRESSIONS if each not in REFUSED])
def test_an_expression_is_taken_on_some_row(expression: str) -> None:
    """So that the comparison compares something."""
    found = [
        of_duckdb(f"select {expression} as o from source where {where}")
        for where in ("i = 1", "i = -7", "i is null", "i = 2000000000")
    ]
    assert any(not isinstance(each, HudiError) for each in found), found


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_gives_the_rows_that_spark_gives(spark: SparkSession, sql: str) -> None:
    ours, theirs = of_duckdb(sql), of_spark(spark, sql)
    assert not isinstance(ours, HudiError), ours
    assert sorted(map(repr, map(plain, ours))) == sorted(map(repr, map(plain, theirs)))
