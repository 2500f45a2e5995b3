"""Indexes of expressions beside Hudi: its own that we go on with, ours that it goes on with, on
copy-on-write and merge-on-read tables of versions 8 and 9.

After each step Hudi finds by the index the rows that are there, where a failure of skipping fails
its scan, so do we, and the bounds in the index are those of the rows (`differences`). Matrix:
{1.0.2 on version 8, 1.1.1 and 1.2.0 on 9} × {copy-on-write, merge-on-read} × {Hudi's, ours}; then
each function that is kept, of texts, numbers, dates and instants as Spark itself computes it; and
reads of ours by indexes that Hudi made in the furthest time zones.

Omitted: numbers of texts and dates (`length`, `year`, …), by whose bounds Hudi cannot filter
(docs/reference/compatibility.md).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_table.api import open_table
from hudi_table.arguments import TableTypeName
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.expression_index.functions import UnknownValueError, bound_function
from hudi_table.metadata.validate import differences
from tests.interop.test_data_skipping import COLUMNS, STATISTICS, Held, asked, create_indexes, written
from tests.interop.test_later_versions import ORACLE
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop]

FEW = {name: COLUMNS[name] for name in ("i32", "i64", "text", "day", "at")}
ASKED = {
    "by_upper": ("column_stats", "text", "upper", ""),
    "by_added": ("column_stats", "day", "date_add", "days='3'"),
    "by_month": ("column_stats", "i64", "from_unixtime", "format='yyyy-MM'"),
    "by_id": ("bloom_filters", "id", "upper", ""),
}
"""Hudi has no bloom filters of logs: the last one is of copy-on-write tables alone."""
LONG = pytest.mark.at_scale(2)
PAIRS = [pytest.param("1.0.2", 8, marks=LONG), (ORACLE, 9), pytest.param("1.2.0", 9, marks=LONG)]


def made_by_hudi(oracle: HudiOracle, held: Held, names: list[str]) -> None:
    """`CREATE INDEX` of each of them."""
    made = []
    for index in names:
        using, column, function, options = ASKED[index]
        more = f", {options}" if options else ""
        made.append(f"{index} ON {{table}} USING {using}({column}) OPTIONS(expr='{function}'{more})")
    create_indexes(oracle, held, made)
    # `CREATE TABLE` of 1.0.2 drops what tells the index of the table's keys.
    open_table(held.base).mend()


def conditions(held: Held) -> dict[str, list[str]]:
    """Filters by the expressions, with the keys of the rows that meet them."""
    told = [(key, row) for key, row in held.rows.items() if row["text"] is not None]
    some = sorted({row["text"] for _, row in told})[:: max(1, len(told) // 2)]
    found = {f"upper(`text`) = upper('{text}')": [key for key, row in told if row["text"] == text] for text in some}
    found["upper(`text`) IN ('NOBODY', upper('t13 é中'))"] = [
        key for key, row in told if row["text"] == FEW["text"].value(13)
    ]
    for number in (5, 21):
        day = FEW["day"].value(number)
        found[f"date_add(`day`, 3) = date_add(DATE'{day}', 3)"] = [key for key, row in told if row["day"] == day]
        seconds = FEW["i64"].value(number)
        found[f"from_unixtime(`i64`, 'yyyy-MM') = from_unixtime({seconds}, 'yyyy-MM')"] = [
            key for key, row in told if row["i64"] == seconds
        ]
    for key in ("k05", "k13", "k99"):
        found[f"upper(id) = upper('{key}')"] = [key] if key in held.rows else []
    return {condition: sorted(keys) for condition, keys in found.items()}


def assert_found(oracle: HudiOracle, held: Held, where: str) -> None:
    """Hudi finds every row by the indexes, and they hold the bounds of the rows."""
    table = open_table(held.base)
    names = list(ASKED) if held.kind == "CopyOnWrite" else list(ASKED)[:-1]
    assert {f"expr_index_{name}" for name in names} <= set(table.context.config.metadata_partitions), where
    assert differences(table.context) == [], where
    expected = conditions(held)
    found = asked(oracle, held, list(expected), "strict")
    wrong = {each: (found[each], keys) for each, keys in expected.items() if found[each] != keys}
    assert not wrong, f"{where}, found and expected: {wrong}"
    assert_found_by_us(held, where)


def assert_found_by_us(held: Held, where: str) -> int:
    """How many files our reads have left out."""
    table, spared = open_table(held.base), 0
    whole, slices = table.scan(["id", *FEW]).to_arrow(), len(table.scan().plan.slices)
    for column in ("text", "day", "i64", "id", "at"):
        values = whole[column].drop_null().unique()
        for value in (*values[:3], *values[-3:]):
            asked_for = [pc.field(column) == value]
            if column in ("day", "at"):
                asked_for += [pc.field(column) >= value, pc.field(column) < value]
            for one in asked_for:
                scan, expected = table.scan(["id"], filter=one), whole.filter(one)["id"].to_pylist()
                assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(expected), f"{where}: {one}"
                spared += slices - len(scan.plan.slices)
    return spared


@pytest.mark.parametrize("whose", ["Hudi's", "ours"])
@pytest.mark.parametrize("kind", get_args(TableTypeName))
@pytest.mark.parametrize(("release", "version"), PAIRS)
def test_indexes_go_on_on_both_sides(
    tmp_path: Path,
    start: Callable[[str], HudiOracle],
    release: str,
    version: int,
    kind: TableTypeName,
    whose: str,
) -> None:
    oracle = start(release)
    held = written(tmp_path / "table", version, kind, FEW, **STATISTICS)
    names = list(ASKED) if kind == "CopyOnWrite" else list(ASKED)[:-1]
    if whose == "ours":
        asked_for = [
            f"expr_index_{name}={function}({column}) using {using} {options}"
            for name in names
            for using, column, function, options in [ASKED[name]]
        ]
        open_table(held.base).build_metadata(asked_for)
    else:
        held.write_by(oracle, range(22, 26), 3)
        made_by_hudi(oracle, held, names)
    assert_found(oracle, held, "made")
    held.write(range(4, 9), 4)
    gone = held._table([held.rows[key] for key in ("k05", "k20")])
    open_table(held.base).delete(gone)
    held.rows = {key: row for key, row in held.rows.items() if key not in ("k05", "k20")}
    assert_found(oracle, held, "our upsert and delete")
    # 1.0.2 fails to make column statistics of a log with such a row without values: none is in this range.
    held.write_by(oracle, range(11, 15), 5)
    assert_found(oracle, held, "Hudi's upsert after ours")
    if kind == "MergeOnRead":
        open_table(held.base).compact(force=True)
    compact_metadata(open_table(held.base).context, 1)
    open_table(held.base).clean({"hoodie.cleaner.commits.retained": "1"}, force=True)
    assert_found(oracle, held, "our compactions and clean")
    held.write_by(oracle, range(4, 8), 6)
    assert_found(oracle, held, "Hudi's upsert after that")


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12", "America/New_York"])
def test_reads_of_ours_find_every_row_by_an_index_of_a_session_in_another_zone(
    tmp_path: Path, start: Callable[[str], HudiOracle], zone: str
) -> None:
    oracle = start(ORACLE)
    held = written(tmp_path / "table", 9, "CopyOnWrite", FEW)
    open_table(held.base).build_metadata(["files"])
    oracle.run(f"SET spark.sql.session.timeZone={zone}")
    try:
        of_day = "by_at ON {table} USING column_stats(`at`) OPTIONS(expr='date_format', format='yyyy-MM-dd')"
        of_hour = "by_i64 ON {table} USING column_stats(i64) OPTIONS(expr='from_unixtime', format='yyyy-MM-dd HH')"
        create_indexes(oracle, held, [of_day, of_hour])
    finally:
        oracle.run("RESET spark.sql.session.timeZone")
    names = set(open_table(held.base).context.config.metadata_partitions)
    assert {"expr_index_by_at", "expr_index_by_i64"} <= names
    assert differences(open_table(held.base).context), "the bounds are those of another zone"
    assert_found_by_us(held, zone)


CASES: list[tuple[str, str, dict[str, str], str]] = [
    *((name, "text", {}, f"{name}(text)") for name in ("upper", "lower", "length", "trim", "ltrim", "rtrim")),
    ("trim", "text", {"trimString": "aé😀"}, "trim(BOTH 'aé😀' FROM text)"),
    *(
        ("substring", "text", {"pos": str(place), "len": str(length)}, f"substring(text, {place}, {length})")
        for place in (0, 1, 3, -1, -3, -9, 100, 2147483647, -2147483647)
        for length in (0, -1, 1, 2, 7, 2147483647)
    ),
    *(
        ("from_unixtime", column, {"format": form}, f"from_unixtime({column}, '{form}')")
        for column in ("i64", "i32")
        for form in ("yyyy-MM-dd HH:mm:ss", "yyyy", "MM/dd")
    ),
    ("from_unixtime", "i64", {}, "from_unixtime(i64)"),
    *(
        ("date_format", column, {"format": form}, f"date_format({column}, '{form}')")
        for column in ("day", "at")
        for form in ("yyyy-MM-dd HH:mm:ss", "yyyyMMdd")
    ),
    *((name, at, {}, f"{name}({at})") for name in ("year", "month", "day", "to_date") for at in ("day", "at")),
    ("hour", "at", {}, "hour(at)"),
    *(
        (name, column, {"days": days}, f"{name}({column}, {days})")
        for name in ("date_add", "date_sub")
        for column in ("day", "at")
        for days in ("3", "-3", "2147483647")
    ),
]


def odd_rows() -> pa.Table:
    """Letters that have another case, texts of several, and numbers to both ends of their types."""
    chosen = random.Random(19)
    letters = [chr(code) for code in range(1, 0x1FFFF) if not 0xD800 <= code < 0xE000]
    cased = [each for each in letters if each.upper() != each or each.lower() != each]
    pool = [*cased, *" \t\nab0é中ß😀\u0301\u00a0\u3000$"]
    texts = ["", " ", "  a ", "\ta ", *cased]
    texts += ["".join(chosen.choices(pool, k=chosen.randrange(7))) for _ in range(6000)]
    count, ends = len(texts), [0, -1, 2**63 - 1, -(2**63), 253402300800, 253402300799, -62135596801, -62167219201]

    def numbers(least: int, most: int) -> list[int | None]:
        near = [number for number in ends if least <= number <= most]
        wide = [chosen.randint(least, most) for _ in range(2000)]
        usual = [chosen.randint(max(least, -(10**12)), min(most, 10**12)) for _ in range(count)]
        return [None, least, most, *near, *wide, *usual][:count]

    days = pa.array(numbers(-106_000_000, 106_000_000), pa.int32()).view(pa.date32())
    micros = pa.array(numbers(-(2**63), 2**63 - 1), pa.int64()).view(pa.timestamp("us", tz="UTC"))
    columns = {
        "row": pa.array(range(count)),
        "text": pa.array(texts, pa.string()),
        "i64": pa.array(numbers(-(2**63), 2**63 - 1), pa.int64()),
        "i32": pa.array(numbers(-(2**31), 2**31 - 1), pa.int32()),
        "day": days,
        "at": micros,
    }
    return pa.table(columns)


def test_values_are_those_of_spark_or_refused(tmp_path: Path, start: Callable[[str], HudiOracle]) -> None:
    oracle, rows = start(ORACLE), odd_rows()
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path)
    for side in ("Read", "Write"):
        oracle.run(f"SET spark.sql.parquet.datetimeRebaseModeIn{side}=CORRECTED")
    statement = ", ".join(f"{sql} AS c{number}" for number, (_, _, _, sql) in enumerate(CASES))
    try:
        found = oracle.sql(f"SELECT row, {statement} FROM parquet.`{path}`").sort_by("row")
    finally:
        for side in ("Read", "Write"):
            oracle.run(f"RESET spark.sql.parquet.datetimeRebaseModeIn{side}")
    for number, (name, column, options, sql) in enumerate(CASES):
        kind, compute = bound_function(name, options, rows.schema.field(column).type)
        values, theirs = rows[column].combine_chunks(), found[f"c{number}"].combine_chunks()
        told = told_of(compute, values) if name in ("upper", "lower") else pa.array([True] * len(values))
        ours = compute(values.filter(told))
        assert ours.type == kind, sql
        assert ours.equals(theirs.filter(told).cast(kind)), sql
        assert pc.mean(told.cast(pa.int8())).as_py() > 0.5, sql


def told_of(compute: Callable[[pa.Array], pa.Array], texts: pa.Array) -> pa.Array:
    """The texts whose other case is told."""

    def is_told(place: int) -> bool:
        try:
            compute(texts.slice(place, 1))
        except UnknownValueError:
            return False
        return True

    return pa.array([is_told(place) for place in range(len(texts))])


@pytest.mark.parametrize("release", [ORACLE, pytest.param("1.2.0", marks=LONG)])
def test_hudi_asks_an_index_of_an_expression_for_every_filter_on_its_column(
    tmp_path: Path, start: Callable[[str], HudiOracle], release: str
) -> None:
    """And finds no row, by its own index as by ours."""
    oracle = start(release)
    held = written(tmp_path / "table", 9, "CopyOnWrite", FEW, **STATISTICS)
    plain = f"`text` = '{FEW['text'].value(13)}'"
    assert asked(oracle, held, [plain], "strict") == {plain: ["k13"]}
    held.write_by(oracle, range(22, 26), 3)
    made_by_hudi(oracle, held, ["by_upper"])
    assert asked(oracle, held, [plain], "fallback") == {plain: []}
    open_table(held.base).drop_index("by_upper")
    assert asked(oracle, held, [plain], "strict") == {plain: ["k13"]}
    open_table(held.base).create_index("by_upper", "upper(text)")
    assert asked(oracle, held, [plain], "fallback") == {plain: []}
