"""What a transform gives without Spark beside what Spark gives, of rows that are chosen to tell the
two apart."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_spark.jobs.ingest_spark import arrow_schema, in_spark_types
from hudi_table.codec.conform import conform
from hudi_table.errors import HudiError
from hudi_table.services.transforming.by_row import Places
from hudi_table.services.transforming.dialect import to_duckdb
from hudi_table.services.transforming.duckdb import Database
from hudi_table.services.transforming.steps import transformed

COUNT = 40
NULLS = 6
_TEXTS = [
    "", " ", "aB", "ab", "a", "  x é ", "éÉ", "ßtraße", "İ", "日本", "😀a", "e\u0301", "a,b,,c,", "a\tb", "\\", "%_", "a.b", "null", "0",
]  # fmt: skip
_NUMBERS = [
    "12",
    " -3 ",
    "+4",
    "007",
    "1.5",
    "-2.50",
    "1e3",
    "99999999999",
    "abc",
    "",
    "1_000",
    "0x1F",
    "NaN",
    "inf",
    "Infinity",
    "1d",
    ".5",
    "5.",
    "- 1",
]
_MOMENTS = [
    "2024-01-01T10:00:00+02:00", "2024-01-01 10:00:00", "2024-01-01", "2024-01-01T10:00:00Z", "2024-1-2", "1969-12-31 23:59:59.999999",
    "2024-02-30", "infinity", "epoch", "2024-01-01 10:00", "10:00", "0001-01-01", "2024", "2024-01", " 2024-01-01 ", "2024-01-01T10:00:00.1234567Z",
    "2024-01-01 10:00:00 Europe/Berlin", "2024-01-01 10:00:00-08", "99999-01-01", "2024-06-30 23:59:60", "2024-01-01 24:00:00", "today", "",
    "2024-01-01 10:00:00 UTC", "-2024-01-01", "2024-01-01 BC", "2024/01/01", "20240101", "2024-01-01T10", "2024-01-01 1:2:3", "2024-01-01 10:00:00+0200",
]  # fmt: skip
_POOLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "y": (pa.int8(), [0, 1, -1, 7, 127, -128]),
    "h": (pa.int16(), [0, 1, -7, 32767, -32768]),
    "i": (pa.int32(), [0, 1, -7, 2, 5, 2_000_000_000, 2**31 - 1, -(2**31)]),
    "l": (pa.int64(), [0, 10, -3, 9_007_199_254_740_993, 2**63 - 1, -(2**63), 1_700_000_000_123, -1]),
    "f": (pa.float32(), [0.0, -0.0, 0.1, -2.5, 1e30, math.nan, math.inf, 16_777_216.0]),
    "d": (pa.float64(), [0.0, -0.0, 1.5, -2.5, 2.5, 1e3, 0.1, 1e-7, 1e300, math.nan, -math.inf, 9_007_199_254_740_993.0, 1.005, 0.5]),
    "m": (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("1.99"), Decimal("-2.50"), Decimal("0.05"), Decimal("99999999.99"), Decimal("-0.01")]),
    "k": (pa.decimal128(30, 10), [Decimal("0E-10"), Decimal("1.0000000001"), Decimal("-12345678901234567890.0000000001")]),
    "s": (pa.string(), _TEXTS),
    "w": (pa.string(), _NUMBERS),
    "z": (pa.string(), _MOMENTS),
    "t": (pa.timestamp("us", "UTC"), [
        datetime(2013, 1, 2, 3, 4, 5, 600_000, UTC), datetime(1969, 12, 31, 23, 59, 59, 0, UTC), datetime(2024, 2, 29, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), datetime(1500, 3, 1, 12, 30, 0, 1, UTC),
    ]),
    "n": (pa.timestamp("us"), [datetime.fromisoformat(each) for each in ("2013-01-02T03:04:05.600", "1969-12-31T23:59:59", "2024-02-29")]),
    "e": (pa.date32(), [date(2013, 1, 2), date(1969, 12, 31), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(2024, 12, 30)]),
    "b": (pa.bool_(), [True, False]),
    "v": (pa.binary(), [b"", b"ab", "é".encode(), b"\xff", b"a\x00"]),
    "a": (pa.list_(pa.string()), [["p", "q"], [], ["u", None], [None], ["a b", ""]]),
    "g": (pa.list_(pa.int32()), [[1, 2], [], [None], [-7, 0, 7]]),
    "r": (pa.struct([("x", pa.int32()), ("z", pa.string())]), [{"x": 1, "z": "q"}, {"x": None, "z": ""}, {"x": -3, "z": "é"}]),
}  # fmt: skip


def _rows() -> pa.Table:
    """Each column of a pool twice, as `i` and `i2`; every value and a null is there, the rest is
    drawn."""
    drawn = random.Random(20_240_229)
    columns: dict[str, pa.Array] = {"id": pa.array(range(COUNT), pa.int64())}
    for name, (kind, pool) in _POOLS.items():
        for suffix in ("", "2"):
            values = [None, *pool, *drawn.choices([None, *pool], k=COUNT - len(pool) - 1)]
            drawn.shuffle(values)
            columns[name + suffix] = pa.array(values, kind)
    return pa.table(columns)


ROWS = _rows()


@dataclass(frozen=True, slots=True)
class Answer:
    """What an expression gives of the rows at `places`, in order; `refused`: why it gives nothing
    of any row, "" if it does."""

    kind: pa.DataType | None
    values: dict[int, Any]
    refused: str = ""


def ours(expression: str, database: Database, rows: pa.Table = ROWS) -> Answer:
    """Without Spark, of those rows that each by itself can be asked."""
    try:
        select = to_duckdb(f"select id, {expression} as o from source")
        database.rows(select, rows.slice(0, 0).to_reader()).read_all()
    except HudiError as error:
        return Answer(None, {}, error.message)

    def asked(places: Places, *, every: bool) -> pa.Table:
        text = (
            select.text
            if every
            else select.text.replace('"id", ', '"id", TRY(', 1).replace(" AS o FROM", ") AS o FROM")
        )
        return database.rows(replace(select, text=text), rows.take(pa.array(places)).to_reader()).read_all()

    places, kept = np.arange(len(rows)), np.arange(len(rows))
    try:
        found = asked(places, every=True)
    except HudiError as error:
        # TRY gives null of a value that fails, and of one that is null: of those some are asked alone.
        try:
            null = asked(places, every=False)["o"].is_null().to_numpy()
        except HudiError:  # DuckDB cannot TRY what may raise an error by itself
            null = np.zeros(len(rows), bool)
        asked_alone = places if not null.any() else places[null][:NULLS]
        fails = _failing(asked_alone, lambda some: asked(some, every=True))
        kept = np.setdiff1d(np.union1d(places[~null], asked_alone), fails)
        if not len(kept):
            return Answer(None, {}, error.message)
        found = asked(kept, every=True)
    return Answer(found.schema.field("o").type, dict(zip(kept.tolist(), _values(found["o"]), strict=True)))


def _failing(places: Places, asked: Callable[[Places], pa.Table]) -> list[int]:
    found = []
    for place in places.tolist():
        try:
            asked(np.array([place]))
        except HudiError:
            found.append(place)
    return found


def of_statement(spark: SparkSession, sql: str) -> tuple[list[str], list[str]]:
    """The rows that come out without Spark and of Spark, each in words, in one order."""
    _source(spark)
    with transformed(ROWS, [{"sql": sql}], None) as reader:
        mine = reader.read_all()
    found = (mine, spark.sql(sql).toArrow())
    one, other = (sorted(repr(_plain(row)) for row in each.to_pylist()) for each in found)
    return one, other


def _source(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    schema, target = in_spark_types(ROWS.schema)
    spark.createDataFrame(conform(ROWS, target), schema).coalesce(1).createOrReplaceTempView("source")


def theirs(spark: SparkSession, wanted: Sequence[tuple[str, Answer]]) -> Iterator[tuple[str, Answer, Answer]]:
    """Spark, of those rows that are answered without it."""
    _source(spark)
    asked: list[tuple[str, Answer, pa.DataType]] = []
    for expression, answer in wanted:
        try:
            kind = arrow_schema(spark.sql(f"select {expression} as o from source")).field("o").type
            asked.append((expression, answer, kind))
        except PySparkException as error:
            yield expression, answer, Answer(None, {}, _first(error))
    for start in range(0, len(asked), 40):
        yield from _asked(spark, asked[start : start + 40])


def _asked(spark: SparkSession, some: list[tuple[str, Answer, pa.DataType]]) -> Iterator[tuple[str, Answer, Answer]]:
    columns = [
        f"case when id in ({', '.join(map(str, answer.values))}) then {expression} end as o{number}"
        for number, (expression, answer, _) in enumerate(some)
    ]
    try:
        found = spark.sql(f"select id, {', '.join(columns)} from source").toArrow().sort_by("id")
    except PySparkException as error:
        if len(some) == 1:
            yield some[0][0], some[0][1], Answer(some[0][2], {}, _first(error))
            return
        for half in (some[: len(some) // 2], some[len(some) // 2 :]):
            yield from _asked(spark, half)
        return
    for number, (expression, answer, kind) in enumerate(some):
        values = _values(found[f"o{number}"])
        yield expression, answer, Answer(kind, {place: values[place] for place in answer.values})


def _first(error: PySparkException) -> str:
    return str(error).strip().splitlines()[0]


def differences(mine: Answer, spark: Answer) -> list[str]:
    """In words, each with the number of its row."""
    if spark.refused:
        if all(value is None for value in mine.values.values()):
            return []  # such as a cast that no value can be taken by
        return [f"Spark refuses it: {spark.refused[:200]}"]
    found = [] if mine.kind == spark.kind else [f"{mine.kind}, of Spark {spark.kind}"]
    return found + [
        f"row {place}: {value!r}, of Spark {spark.values[place]!r}"
        for place, value in mine.values.items()
        if repr(_plain(value)) != repr(_plain(spark.values[place])) and value != spark.values[place]
    ]


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Moments as numbers: Python has none behind the year 9999."""
    moments = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    if moments:
        column = column.cast(pa.int64() if pa.types.is_timestamp(column.type) else pa.int32())
    found: list[Any] = column.to_pylist()
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value
