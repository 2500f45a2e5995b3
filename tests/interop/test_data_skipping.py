"""Data skipping by Hudi over tables that we wrote: a filter on any column finds all its rows
and no other.

Matrix: {1.1.1, 1.2.0} × {version 6, by the statistics that we keep; 8 and 9, by those that Hudi
builds, before and after our next write} × {copy-on-write, merge-on-read} × columns of every type of
the golden tables × {=, <, >=, is null, is not null}. On versions 8 and 9 also a secondary index and
one of an expression, which Hudi makes and we keep. Files that no row of a filter is in are damaged:
who opens them fails.

Skipping is strict, so that an index that fails is seen: by default Hudi reads everything then.
Omitted: NaN, of which Hudi's own statistics tell wrongly (docs/reference/compatibility.md, case
33).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import create_table, open_table
from hudi_table.arguments import TableTypeName
from hudi_table.metadata.definitions import DEFINITIONS
from tests.interop import ours
from tests.interop.test_later_versions import ORACLE
from tests.support.hudi_oracle import HudiFailedError, HudiOracle

pytestmark = [
    pytest.mark.interop,
    pytest.mark.at_scale(2),
    pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning"),
]

Value = Callable[[int], Any]


@dataclass(frozen=True)
class Column:
    """A column whose values grow with a row's number, and how SQL writes one of them."""

    type: pa.DataType
    value: Value
    literal: Callable[[Any], str]


def cast(kind: str) -> Callable[[Any], str]:
    return lambda value: f"CAST('{value}' AS {kind})"


DAY, NOON = date(1969, 12, 20), datetime(1969, 12, 31, 20, 0, 0, 1, tzinfo=UTC)
COLUMNS = {
    "yes": Column(pa.bool_(), lambda n: n >= 12, lambda value: str(value).lower()),
    "i32": Column(pa.int32(), lambda n: n * 10 - 100, cast("INT")),
    "i64": Column(pa.int64(), lambda n: n * 2**40 - 2**43, cast("BIGINT")),
    "f32": Column(pa.float32(), lambda n: n / 4 - 3, cast("FLOAT")),
    "f64": Column(pa.float64(), lambda n: n / 8 - 1.5, cast("DOUBLE")),
    "text": Column(pa.string(), lambda n: f"t{n:02d} é中", lambda value: f"'{value}'"),
    "bytes": Column(pa.binary(), lambda n: bytes([n, 255, 0]), lambda value: f"X'{value.hex()}'"),
    "day": Column(pa.date32(), lambda n: DAY + timedelta(days=n), lambda value: f"DATE'{value}'"),
    "at": Column(
        pa.timestamp("us", tz="UTC"),
        lambda n: NOON + timedelta(minutes=17 * n),
        lambda value: f"TIMESTAMP'{value.strftime('%Y-%m-%d %H:%M:%S.%f')} UTC'",
    ),
    "d1": Column(pa.decimal128(1, 0), lambda n: Decimal(n // 3 - 4), cast("DECIMAL(1,0)")),
    "d9": Column(pa.decimal128(9, 2), lambda n: Decimal(n * 125 - 1000).scaleb(-2), cast("DECIMAL(9,2)")),
    "d18": Column(pa.decimal128(18, 3), lambda n: Decimal(n * 10**14 - 10**15).scaleb(-3), cast("DECIMAL(18,3)")),
    "d30": Column(pa.decimal128(30, 15), lambda n: Decimal(n * 10**28 - 10**29).scaleb(-15), cast("DECIMAL(30,15)")),
}
WIDE = {
    "d38": Column(pa.decimal128(38, 10), lambda n: Decimal(n * 10**36 - 10**37).scaleb(-10), cast("DECIMAL(38,10)"))
}
"""A decimal that no statistics hold: a table with one has none for anybody."""
Columns = Mapping[str, Column]
SMALL = {"hoodie.parquet.small.file.limit": "0"}
STATISTICS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
STATISTICS_OF_OURS = {key: value for key, value in STATISTICS.items() if "partition" not in key}
RECORD_INDEX = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
"""As 1.0 names it and as 1.1 does. A write of Hudi's without it drops the record index, by which it
finds what a secondary index names."""
SKIPPING = STATISTICS | {"hoodie.enable.data.skipping": "true"}
NO_BYTES = "HeapByteBuffer cannot be cast to class"
INDEXED = {"column_stats", "record_index", "secondary_index_by_text", "expr_index_by_upper"}
AT_ONCE = 10
"""So many scans are one statement."""
MODE = "hoodie.fileIndex.dataSkippingFailureMode"
Rows = dict[str, dict[str, Any]]


def rows(numbers: range, version: int, columns: Columns) -> list[dict[str, Any]]:
    """A row each; one number in seven has no values, and a later version those of the number after
    the next."""
    return [
        {"id": f"k{n:02d}", "city": "nyc" if n < 12 else "par", "ts": version}
        | {name: None if n % 7 == 3 else each.value(n + 2 * (version - 1)) for name, each in columns.items()}
        for n in numbers
    ]


def schema_of(columns: Columns) -> pa.Schema:
    typed = [(name, each.type) for name, each in columns.items()]
    return pa.schema([("id", pa.string()), ("city", pa.string()), *typed, ("ts", pa.int64())])


def filters(held: Rows, columns: Columns) -> Iterator[tuple[str, set[str]]]:
    """Conditions on each column, with the keys of the rows that meet them."""
    for name, column in columns.items():
        having = {key: row[name] for key, row in held.items() if row[name] is not None}
        yield f"`{name}` IS NULL", held.keys() - having.keys()
        yield f"`{name}` IS NOT NULL", set(having)
        few, equal, many = (column.value(number) for number in (1, 13, 20))
        yield f"`{name}` < {column.literal(few)}", {key for key, each in having.items() if each < few}
        yield f"`{name}` = {column.literal(equal)}", {key for key, each in having.items() if each == equal}
        yield f"`{name}` >= {column.literal(many)}", {key for key, each in having.items() if each >= many}
    text = COLUMNS["text"].value(13)
    yield f"upper(`text`) = upper('{text}')", {key for key, row in held.items() if row["text"] == text}


def assert_filters(oracle: HudiOracle, held: Held, where: str, *, fails: str = "") -> None:
    """Every condition, each a scan of its own. `fails`: the column whose filters Hudi cannot
    evaluate."""
    expected = {
        condition: sorted(keys)
        for condition, keys in filters(held.rows, held.columns)
        if not fails or f"`{fails}`" not in condition
    }
    found = asked(oracle, held, list(expected), "strict")
    wrong = {each: (found[each], keys) for each, keys in expected.items() if found[each] != keys}
    assert not wrong, f"{where}, found and expected: {wrong}"
    if fails:
        column = held.columns[fails]
        for mode in ("strict", "fallback"):
            with pytest.raises(HudiFailedError, match=NO_BYTES):
                asked(oracle, held, [f"`{fails}` = {column.literal(column.value(13))}"], mode)


def asked(oracle: HudiOracle, held: Held, conditions: list[str], mode: str) -> dict[str, list[str]]:
    """The keys that Hudi finds for each condition. `mode`: whether a failure of skipping fails the
    scan (strict), or is to have everything read (fallback, Hudi's own)."""
    name = f"skipped_{held.base.parent.name}".replace("-", "_")
    options = ", ".join(f"`{key}` '{value}'" for key, value in SKIPPING.items())
    oracle.run(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING hudi OPTIONS (path '{held.base}', {options})")
    scans = [f"SELECT {n} AS n, id FROM {name} WHERE {condition}" for n, condition in enumerate(conditions)]
    oracle.run(f"SET {MODE}={mode}")
    try:
        parts = [scans[first : first + AT_ONCE] for first in range(0, len(scans), AT_ONCE)]
        found = [row for part in parts for row in oracle.sql(" UNION ALL ".join(part)).to_pylist()]
    finally:
        oracle.run(f"RESET {MODE}")
    return {each: sorted(row["id"] for row in found if row["n"] == n) for n, each in enumerate(conditions)}


def assert_files_are_skipped(oracle: HudiOracle, base: Path) -> None:
    """Files whose every row is too small are damaged: only who skips them reads on."""
    told = {key.replace(".", "__"): value for key, value in SKIPPING.items()}
    condition = "i32 >= 100"
    before = sorted(oracle.read(base, where=condition, **told)["id"].to_pylist())
    files = [path for path in base.rglob("*.parquet") if ".hoodie" not in path.parts]
    small = {
        path: path.read_bytes() for path in files if "k00" in pq.read_table(path, columns=["id"])["id"].to_pylist()
    }
    assert small
    for path in small:
        path.write_bytes(b"PAR1 damaged PAR1")
    assert sorted(oracle.read(base, where=condition, **told)["id"].to_pylist()) == before
    with pytest.raises(HudiFailedError):
        oracle.read(base, where=condition, **(told | {"hoodie__enable__data__skipping": "false"}))
    for path, whole in small.items():
        path.write_bytes(whole)


@dataclass
class Held:
    """A table of ours, and the rows that it holds."""

    base: Path
    version: int
    kind: TableTypeName
    columns: Columns
    rows: Rows = field(default_factory=dict)

    def write(self, numbers: range, version: int, **options: str) -> None:
        """One upsert of ours."""
        data = rows(numbers, version, self.columns)
        ours.write(self.base, "upsert", self._table(data), options=SMALL | options)
        self.rows |= {row["id"]: row for row in data}

    def write_by(self, oracle: HudiOracle, numbers: range, version: int, **options: str) -> None:
        """One of Hudi's, which builds the metadata table."""
        data = rows(numbers, version, self.columns)
        told = {
            "hoodie.table.name": "table",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.kind == "MergeOnRead" else "COPY_ON_WRITE",
            "hoodie.write.table.version": str(self.version),
            "hoodie.index.type": "SIMPLE",
            "hoodie.compact.inline": "false",
        }
        oracle.write(self.base, self._table(data), told | SMALL | STATISTICS | options)
        self.rows |= {row["id"]: row for row in data}

    def _table(self, data: list[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(data, schema=schema_of(self.columns))


def written(base: Path, version: int, kind: TableTypeName, columns: Columns = COLUMNS, **options: str) -> Held:
    """Four files of six rows, of which some were written again."""
    create_table(
        base, schema_of(columns), record_key="id", partition_by="city", ordering_fields="ts", type=kind, version=version
    )
    held = Held(base, version, kind, columns)
    for first in range(0, 24, 6):
        held.write(range(first, first + 6), 1, **options)
    held.write(range(8, 11), 2)
    held.write(range(20, 22), 2)
    return held


@pytest.fixture
def oracle(request: pytest.FixtureRequest, start: Callable[[str], HudiOracle]) -> HudiOracle:
    """The release that the test's parameter names."""
    return start(request.param)


RELEASES = pytest.mark.parametrize("oracle", [ORACLE, "1.2.0"], indirect=True)
KINDS = pytest.mark.parametrize("kind", get_args(TableTypeName))


@pytest.mark.parametrize("version", [6, 8, 9])
@KINDS
@RELEASES
def test_filters_on_every_column_by_statistics_that_we_keep(
    tmp_path: Path, oracle: HudiOracle, kind: TableTypeName, version: int
) -> None:
    held = written(tmp_path / "table", version, kind, COLUMNS, **STATISTICS)
    assert partitions(held) == {"files", "column_stats"} | ({"partition_stats"} if version > 6 else set())
    assert_filters(oracle, held, "ours", fails=fails_at(version))
    assert_files_are_skipped(oracle, held.base)


@RELEASES
def test_a_decimal_without_statistics_leaves_filters_on_every_column_right(tmp_path: Path, oracle: HudiOracle) -> None:
    held = written(tmp_path / "table", 6, "MergeOnRead", COLUMNS | WIDE, **STATISTICS_OF_OURS)
    assert_filters(oracle, held, "ours")


@pytest.mark.parametrize("version", [8, 9])
@KINDS
@RELEASES
def test_filters_on_every_column_of_our_later_tables_by_statistics_and_indexes_of_hudi(
    tmp_path: Path, oracle: HudiOracle, kind: TableTypeName, version: int
) -> None:
    fails = fails_at(version)
    held = written(tmp_path / "table", version, kind)
    held.write_by(oracle, range(22, 26), 3)
    indexed(oracle, held)
    assert_filters(oracle, held, "Hudi's", fails=fails)
    assert_files_are_skipped(oracle, held.base)
    held.write(range(4, 9), 4)
    kept = {"files", "partition_stats"} | INDEXED
    assert partitions(held) == kept
    assert json.loads((held.base / DEFINITIONS).read_text())["indexDefinitions"].keys() <= partitions(held)
    assert_filters(oracle, held, "our write after Hudi's", fails=fails)
    assert_files_are_skipped(oracle, held.base)
    held.write_by(oracle, range(18, 28), 5, **RECORD_INDEX)
    assert partitions(held) == kept
    assert_filters(oracle, held, "Hudi's write after ours", fails=fails)


@RELEASES
def test_hudi_cannot_go_by_a_secondary_index_once_a_write_of_its_own_has_dropped_the_record_index(
    tmp_path: Path, oracle: HudiOracle
) -> None:
    """With or without a write of ours before it."""
    few = {name: COLUMNS[name] for name in ("i32", "text")}
    held = written(tmp_path / "table", 9, "CopyOnWrite", few)
    held.write_by(oracle, range(22, 26), 3)
    indexed(oracle, held, expression=False)
    condition = f"`text` = '{few['text'].value(13)}'"
    assert asked(oracle, held, [condition], "strict") == {condition: ["k13"]}
    for number in (4, 6):
        held.write_by(oracle, range(20, 24), number)
        assert partitions(held) & INDEXED == {"column_stats", "secondary_index_by_text"}
        keys = sorted(dict(filters(held.rows, few))[condition])
        assert "k13" in keys
        assert asked(oracle, held, [condition], "fallback") == {condition: keys}
        with pytest.raises(HudiFailedError, match="Record index is not initialized"):
            asked(oracle, held, [condition], "strict")
        held.write(range(2, 6), number + 1)
        assert not partitions(held) & (INDEXED - {"column_stats"})
        assert_filters(oracle, held, "our write, which drops the index")
        indexed(oracle, held, expression=False)


def fails_at(version: int) -> str:
    """The column whose filters Hudi cannot evaluate by statistics of this version."""
    return "bytes" if version == 9 else ""


def partitions(held: Held) -> set[str]:
    return set(open_table(held.base).context.config.metadata_partitions)


def indexed(oracle: HudiOracle, held: Held, *, expression: bool = True) -> None:
    """Hudi makes an index of a secondary key and one of an `expression`."""
    made = ["record_index ON {table} (id)", "by_text ON {table} (text)"]
    if expression:
        made.append("by_upper ON {table} USING column_stats(text) OPTIONS(expr='upper')")
    create_indexes(oracle, held, made)
    assert partitions(held) >= (INDEXED if expression else INDEXED - {"expr_index_by_upper"})


def create_indexes(oracle: HudiOracle, held: Held, indexes: Iterable[str]) -> None:
    """`CREATE INDEX` of Hudi's, of each, on `{table}`."""
    name = f"indexed_{held.base.parent.name}".replace("-", "_")
    told = STATISTICS | {
        "hoodie.write.table.version": str(held.version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    }
    oracle.run(f"CREATE TABLE {name} USING hudi LOCATION '{held.base}'")
    for key, value in told.items():
        oracle.run(f"SET {key}={value}")
    try:
        for index in indexes:
            oracle.run(f"CREATE INDEX {index.format(table=name)}")
    finally:
        for key in told:
            oracle.run(f"RESET {key}")
        oracle.run(f"DROP TABLE {name}")
