"""Indexes of secondary keys by the type of their column: of which types they are kept and asked, in
which version of such an index, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import HudiTable, create_table, downgrade_table, open_table
from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.metadata.definitions import DEFINITIONS
from hudi_table.metadata.lifecycle import MetadataDroppedWarning
from hudi_table.metadata.reading import read_entries
from hudi_table.metadata.secondary_index.pairs import is_kind
from hudi_table.metadata.table import MetadataTable
from hudi_table.metadata.validate import differences
from hudi_table.model.metadata_table import SecondaryPartition
from hudi_table.model.names import METADATA_TABLE
from hudi_table.model.table.properties import METADATA_PARTITIONS_INFLIGHT
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.properties import replace_properties
from tests.hudi_table.metadata.test_secondary_index import SCHEMA, assert_kept, numbered, with_index

NAME = "secondary_index_by_value"
DAY, NOON = date(1969, 12, 30), datetime(1969, 12, 31, 23, 0, 0, 1, tzinfo=UTC)
MICROS = pa.timestamp("us", tz="UTC")
Value = Callable[[int], Any]
KEPT: list[tuple[int, pa.DataType, Value, list[str]]] = [
    (8, MICROS, lambda n: NOON + timedelta(hours=n), ["-3599999999", "1", "3600000001"]),
    (9, MICROS, lambda n: NOON + timedelta(hours=n), ["-3599999999", "1", "3600000001"]),
    (8, pa.bool_(), lambda n: n > 0, ["false", "true", "true"]),
    (9, pa.bool_(), lambda n: n > 0, ["false", "true", "true"]),
    (9, pa.date32(), lambda n: DAY + timedelta(days=n), ["-2", "-1", "0"]),
]
"""Table version, type, the value of a number, and the texts of those of 0, 1 and 2."""
OF_KINDS = pytest.mark.parametrize(("version", "type_", "value", "texts"), KEPT, ids=lambda each: str(each)[:20])
REFUSED = [
    (pa.float32(), 1.5, "float"),
    (pa.float64(), 1.5, "double"),
    (pa.decimal128(9, 2), Decimal("1.50"), r"decimal128\(9, 2\)"),
    (pa.binary(), b"x", "binary"),
]


def schema_of(type_: pa.DataType) -> pa.Schema:
    typed = [("id", pa.string()), ("city", pa.string()), ("value", type_), ("other", pa.string()), ("ts", pa.int64())]
    return pa.schema(typed)


def rows(type_: pa.DataType, values: dict[int, Any], ts: int = 1) -> pa.Table:
    """A row each, in a partition of its own."""
    found = [
        {"id": f"k{n}", "city": f"c{n}", "value": value, "other": f"o{n}", "ts": ts} for n, value in values.items()
    ]
    return pa.Table.from_pylist(found, schema=schema_of(type_))


def made(base: Path, version: int, type_: pa.DataType, values: dict[int, Any], kind: Any = "CopyOnWrite") -> HudiTable:
    table = create_table(
        base,
        schema_of(type_),
        record_key="id",
        partition_by=["city"],
        ordering_fields="ts",
        type=kind,
        version=version,
    )
    table.insert(rows(type_, values))
    table.build_metadata(["record_index"])
    return table


def pairs(base: Path) -> list[str]:
    """The keys of the index, sorted."""
    ctx = open_table(base).context
    found = MetadataTable.load(ctx, load_timeline(ctx))
    assert found is not None
    entries = read_entries(found, SecondaryPartition(NAME))
    assert entries is not None
    return sorted(entries["key"].to_pylist())


def opened(base: Path, condition: Any) -> tuple[list[str], list[str]]:
    """The keys of the rows that a filter finds, and the partitions whose files it opens."""
    scan = open_table(base).scan(filter=condition)
    return sorted(scan.to_arrow()["id"].to_pylist()), sorted(item.partition for item in scan.plan.slices)


@OF_KINDS
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_an_index_of_booleans_moments_or_days_is_kept_and_asked(
    tmp_path: Path, version: int, type_: pa.DataType, value: Value, texts: list[str], kind: str
) -> None:
    base = tmp_path / "t"
    table = made(base, version, type_, {0: value(0), 1: value(1), 2: value(2), 3: None}, kind)
    assert table.create_index("by_value", "value")
    assert pairs(base) == sorted([*(f"{text}$k{n}" for n, text in enumerate(texts)), "\0$k3"])
    table.upsert(rows(type_, {0: value(2), 1: None, 3: value(0)}, 2))
    assert pairs(base) == sorted([f"{texts[2]}$k0", "\0$k1", f"{texts[2]}$k2", f"{texts[0]}$k3"])
    assert differences(open_table(base).context) == []
    # The statistics of columns are not there: what is left out is left out by this index.
    assert opened(base, pc.field("value") == pa.scalar(value(2), type_)) == (["k0", "k2"], ["c0", "c2"])
    assert opened(base, pc.field("value").isin(pa.array([value(0)], type_))) == (["k3"], ["c3"])
    if type_ == MICROS:
        seconds = pa.scalar(value(2).replace(microsecond=0), pa.timestamp("s", tz="UTC"))
        assert opened(base, pc.field("value") == seconds) == ([], [])
    open_table(base).delete(rows(type_, {0: value(2)}, 3))
    assert differences(open_table(base).context) == []
    assert opened(base, pc.field("value") == pa.scalar(value(2), type_)) == (["k2"], ["c2"])


def test_a_filter_asks_it_in_words_too(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 9, pa.date32(), {n: DAY + timedelta(days=n) for n in range(3)})
    table.create_index("by_value", "value")
    assert opened(base, "value = '1969-12-31'") == (["k1"], ["c1"])
    # A day is compared with a moment as its midnight: another text, of which the index knows nothing.
    moment = pa.scalar(-86_400_000_000, pa.timestamp("us"))
    assert opened(base, pc.field("value") == moment) == (["k1"], ["c0", "c1", "c2"])


@pytest.mark.parametrize(("type_", "value", "named"), REFUSED, ids=lambda each: str(each)[:20])
def test_an_index_of_another_type_is_refused_by_name_before_anything_is_written(
    tmp_path: Path, type_: pa.DataType, value: Any, named: str
) -> None:
    base = tmp_path / "t"
    table = made(base, 9, type_, {0: value})
    before = sorted(info.path for info in table.context.storage.list())
    kinds = "kept of string, int, bigint, boolean and timestamp, and in version 2 of such an index of date"
    with pytest.raises(
        UnsupportedTableError, match=rf"column 'value' has the type {named}: .* {kinds}; name another column, or let"
    ):
        table.create_index("by_value", "value")
    assert sorted(info.path for info in table.context.storage.list()) == before


def test_an_index_of_days_on_version_8_is_refused_and_tells_the_upgrade(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 8, pa.date32(), {0: DAY})
    before = sorted(info.path for info in table.context.storage.list())
    with pytest.raises(
        UnsupportedTableError, match=r"has the type date32\[day\]: .*; upgrade the table first, which has version 8"
    ):
        table.create_index("by_value", "value")
    assert sorted(info.path for info in table.context.storage.list()) == before


def test_an_index_of_days_does_not_go_along_to_version_8(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 9, pa.date32(), {n: DAY + timedelta(days=n) for n in range(3)})
    table.create_index("by_value", "value")
    downgrade_table(base, to=8)
    table = open_table(base)
    table.build_metadata(["record_index"])
    assert "record_index" in open_table(base).context.config.metadata_partitions
    assert NAME not in open_table(base).context.config.metadata_partitions
    assert opened(base, "value = '1969-12-31'")[0] == ["k1"]


def test_one_of_days_in_version_1_is_not_asked_and_goes_with_the_next_write(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 9, pa.date32(), {n: DAY + timedelta(days=n) for n in range(3)})
    table.create_index("by_value", "value")
    storage = table.context.storage
    noted = json.loads(storage.get(DEFINITIONS))
    noted["indexDefinitions"][NAME]["version"] = "V1"
    storage.put(DEFINITIONS, json.dumps(noted).encode())
    assert opened(base, "value = '1969-12-31'") == (["k1"], ["c0", "c1", "c2"])
    with pytest.warns(MetadataDroppedWarning, match=r"its column 'value' has the type date32\[day\]; an index is kept"):
        open_table(base).upsert(rows(pa.date32(), {0: DAY}, 2))
    assert NAME not in open_table(base).context.config.metadata_partitions


@pytest.mark.parametrize("begun", [False, True], ids=["ready", "begun"])
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_of_several_on_a_merge_on_read_table_none_is_asked(tmp_path: Path, kind: str, begun: bool) -> None:
    base = tmp_path / "t"
    values = {n: n > 0 for n in range(3)}
    table = made(base, 9, pa.bool_(), values, kind)
    table.create_index("by_value", "value")
    assert opened(base, "other = 'o1'") == (["k1"], ["c0", "c1", "c2"])
    assert opened(base, "value = false") == (["k0"], ["c0"])
    if begun:
        replace_properties(table.context, {METADATA_PARTITIONS_INFLIGHT: "secondary_index_by_other"})
    else:
        table.create_index("by_other", "other")
    whole = ["c0", "c1", "c2"]
    several = kind == "MergeOnRead"
    assert opened(base, "value = false") == (["k0"], whole if several else ["c0"])
    if begun:
        return
    assert opened(base, "other = 'o1'") == (["k1"], whole if several else ["c1"])
    # A write of Hudi's left this one as it was: the pair of the row that it wrote is missing.
    ctx = open_table(base).context
    for info in ctx.storage.list(f"{METADATA_TABLE}/{NAME}"):
        if several and info.path.endswith(".hfile"):
            ctx.storage.delete(info.path)
    assert opened(base, "value = true")[0] == ["k1", "k2"]
    open_table(base).drop_index("by_other")


def test_moments_without_a_zone_or_of_milliseconds_are_of_no_kind() -> None:
    """Tables of Hudi's have them; Spark holds the latter as microseconds, and Avro does not."""
    kinds = [pa.timestamp("us"), pa.timestamp("ms", tz="UTC"), pa.timestamp("ns", tz="UTC"), MICROS]
    assert [is_kind(kind, whole=False) for kind in kinds] == [False, False, False, True]


def test_a_meta_column_is_no_column_of_an_index(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, pa.bool_(), {0: True})
    with pytest.raises(InvalidRequestError, match="the table has no column '_hoodie_record_key'"):
        table.create_index("by_value", "_hoodie_record_key")


@pytest.mark.parametrize("version", [8, 9])
def test_it_is_kept_by_a_write_to_logs_that_widens_the_ordering_column(tmp_path: Path, version: int) -> None:
    base = tmp_path / "t"
    table = with_index(base, version, "MergeOnRead", ordering_fields="n")
    wide = numbered(range(3), 2).set_column(SCHEMA.get_field_index("n"), "n", pa.array([2**40, 2**41, 0]))
    table.upsert(wide)
    assert_kept(base)
