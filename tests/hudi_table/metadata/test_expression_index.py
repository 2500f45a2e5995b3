"""Indexes of expressions: every write keeps them, the doctor finds what is wrong in one, and what
cannot be kept exactly is dropped by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, downgrade_table, open_table, upgrade_table
from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.codec.metadata.keys import file_group_index
from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.definitions import DEFINITIONS
from hudi_table.metadata.expression_index.functions import UnknownValueError, bound_function
from hudi_table.metadata.lifecycle import MetadataDroppedWarning
from hudi_table.metadata.reading import merged_of, slice_parts
from hudi_table.metadata.table import MetadataTable
from hudi_table.metadata.validate import differences
from hudi_table.model.metadata_table import ExpressionPartition, partition_named
from hudi_table.model.names import METADATA_TABLE
from hudi_table.model.table.properties import METADATA_DROPPED
from hudi_table.table.timeline.active import load_timeline
from tests.support import golden

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("name", pa.string()),
        ("born", pa.date32()),
        ("seconds", pa.int64()),
        ("ts", pa.int64()),
    ]
)
UPPER, BORN, SEEN, LOWER = (f"expr_index_{name}" for name in ("by_upper", "by_born", "by_seen", "by_id"))
ASKED = [
    f"{UPPER}=upper(name)",
    f"{BORN}=date_add(born) days=3",
    f"{SEEN}=from_unixtime(seconds) format='yyyy-MM-dd HH:mm'",
    f"{LOWER}=lower(id) using bloom_filters",
]
LOGGED = ASKED[:3]
"""Those of a merge-on-read table, of which Hudi has no bloom filters."""
KINDS = [(version, kind) for version in (8, 9) for kind in ("CopyOnWrite", "MergeOnRead")]
TYPES = pytest.mark.parametrize(("version", "kind"), KINDS)


def numbered(numbers: range, version: int, city: str = "") -> pa.Table:
    found = [
        {
            "id": f"k{n:03d}",
            "city": city or ("nyc" if n % 2 else "par"),
            "name": None if n % 5 == 4 else f"é{n:02d}ß{version}",
            "born": n * 100 - 500,
            "seconds": n * 86_400 * version,
            "ts": version,
        }
        for n in numbers
    ]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def made(base: Path, version: int, kind: Any, **more: Any) -> HudiTable:
    given = {"record_key": "id", "partition_by": ["city"], "ordering_fields": "ts"} | more
    return create_table(base, SCHEMA, type=kind, version=version, **given)


def with_indexes(base: Path, version: int, kind: Any, **more: Any) -> HudiTable:
    table = made(base, version, kind, **more)
    table.insert(numbered(range(12), 1))
    assert table.build_metadata(asked_of(kind))
    return open_table(base)


def asked_of(kind: str) -> list[str]:
    return ASKED if kind == "CopyOnWrite" else LOGGED


def entries(table: HudiTable, name: str) -> list[dict[str, Any]]:
    """The entries of an index, those of files as of partitions."""
    found = MetadataTable.load(table.context, load_timeline(table.context))
    assert found is not None
    assert name in found.partitions.ready
    groups = found.groups[name]
    parts = [merged_of(name, slice_parts(found, group.latest)) for group in groups]
    for number, part in enumerate(parts):
        assert set(file_group_index(part["key"], len(groups)).tolist()) <= {number}
    rows: list[dict[str, Any]] = pa.concat_tables(parts).to_pylist()
    return rows


def bounds(table: HudiTable, name: str, kind: int) -> dict[str, tuple[Any, Any]]:
    """Of each file (`kind` 3) or partition (6) the least and the greatest value."""
    told = [row["stats"] for row in entries(table, name) if row["type"] == kind]
    return {stats["file_name"]: (_plain(stats["min"]), _plain(stats["max"])) for stats in told}


def _plain(bound: dict[str, Any] | None) -> Any:
    if bound is None:
        return None
    return bound["bytes"].decode() if bound["bytes"] is not None else bound["number"]


def assert_kept(base: Path) -> HudiTable:
    table = open_table(base)
    asked = {name.partition("=")[0] for name in asked_of(table.context.config.type.value)}
    assert asked <= set(table.context.config.metadata_partitions)
    assert differences(table.context) == []
    return table


@pytest.mark.thinned("values")
@TYPES
def test_every_operation_keeps_the_bounds_and_the_filters(tmp_path: Path, version: int, kind: str) -> None:
    base = tmp_path / "t"
    table = with_indexes(base, version, kind)
    seen = assert_kept(base)
    assert bounds(seen, UPPER, 6) == {"nyc": ("É01SS1", "É11SS1"), "par": ("É00SS1", "É10SS1")}
    assert bounds(seen, BORN, 6) == {"nyc": (-397, 603), "par": (-497, 503)}
    assert bounds(seen, SEEN, 6)["nyc"] == ("1970-01-02 00:00", "1970-01-12 00:00")
    table.upsert(numbered(range(4, 16), 2))
    assert_kept(base)
    table.delete(numbered(range(6, 9), 3))
    assert_kept(base)
    table.write(numbered(range(40, 43), 1, "par"), operation="insert_overwrite")
    assert_kept(base)
    table.write(numbered(range(50, 53), 1), operation="bulk_insert")
    seen = assert_kept(base)
    assert bounds(seen, UPPER, 6)["nyc"] == ("É01SS1", "É51SS1")
    if kind == "MergeOnRead":
        open_table(base).compact(force=True)
        assert_kept(base)
        open_table(base).upsert(numbered(range(50, 53), 4))
        assert_kept(base)
    before = {name: entries(open_table(base), name) for name in (UPPER, BORN, SEEN)}
    compact_metadata(open_table(base).context, 1)
    seen = assert_kept(base)
    assert {name: entries(seen, name) for name in before} == before
    seen.cluster(force=True)
    assert_kept(base)
    open_table(base).write(None, operation="delete_partition", partitions=["nyc"])
    assert_kept(base)
    open_table(base).clean(force=True)
    seen = assert_kept(base)
    there = {info.path.rpartition("/")[2] for info in seen.context.storage.list() if "/.hoodie" not in info.path}
    assert set(bounds(seen, UPPER, 3)) <= there
    if kind == "CopyOnWrite":
        filters = [row["bloom"] for row in entries(seen, LOWER)]
        assert filters
        assert all(BloomFilter.parse(each["filter"], each["type"]).row_count == 1 for each in filters)


@pytest.mark.thinned("values")
@TYPES
def test_a_rollback_or_restore_drops_them_with_the_metadata_table_and_they_are_built_again(
    tmp_path: Path, version: int, kind: str
) -> None:
    base = tmp_path / "t"
    table = with_indexes(base, version, kind)
    saved = table.savepoint()
    table.upsert(numbered(range(4, 16), 2))
    table.upsert(numbered(range(2), 3))
    last = load_timeline(open_table(base).context).last_commit
    assert last is not None
    open_table(base).rollback(last.time, writers_stopped=True)
    assert open_table(base).context.config.metadata_partitions == ()
    open_table(base).build_metadata()
    seen = assert_kept(base)
    seen.restore(saved.instant, writers_stopped=True)
    open_table(base).build_metadata()
    seen = assert_kept(base)
    assert bounds(seen, UPPER, 6)["nyc"] == ("É01SS1", "É11SS1")


@pytest.mark.parametrize("name", ["expr_index_idx_dt", "expr_index_idx_bl"])
def test_hudi_s_own_goes_on(tmp_path: Path, name: str) -> None:
    base = golden.unpack("v9_expr_stats", tmp_path).base
    table = open_table(base)
    assert differences(table.context) == []
    theirs = entries(table, name)
    data = table.scan().to_arrow()
    some = data.slice(0, 3).drop_columns([each for each in data.column_names if each.startswith("_hoodie")])
    some = some.set_column(some.schema.get_field_index("ts"), "ts", pa.array([90_000] * 3, pa.int64()))
    table.write(some, operation="upsert", options={"hoodie.index.type": "SIMPLE"})
    seen = open_table(base)
    assert name in seen.context.config.metadata_partitions
    assert differences(seen.context) == []
    assert {row["key"] for row in theirs} < {row["key"] for row in entries(seen, name)}
    compact_metadata(seen.context, 1)
    assert differences(open_table(base).context) == []


@pytest.mark.parametrize(("version", "then"), [(8, 9), (9, 8)])
def test_they_go_along_to_another_version_with_the_metadata_table(tmp_path: Path, version: int, then: int) -> None:
    base = tmp_path / "t"
    with_indexes(base, version, "MergeOnRead")
    (upgrade_table if then > version else downgrade_table)(base, to=then)
    seen = open_table(base)
    assert not seen.context.config.metadata_partitions
    seen.build_metadata()
    noted = json.loads(seen.context.storage.get(DEFINITIONS))["indexDefinitions"]
    assert noted[UPPER]["version"] == {8: "V1", 9: "V2"}[then]
    seen.upsert(numbered(range(4), 3))
    assert_kept(base)


def test_a_value_that_not_every_java_knows_drops_the_index_by_its_name(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = with_indexes(base, 9, "CopyOnWrite")
    odd = numbered(range(1), 2).set_column(2, "name", pa.array(["\u10d0"]))
    with pytest.warns(MetadataDroppedWarning, match=rf"{UPPER}: its expression meets the character U\+10D0"):
        table.upsert(odd)
    seen = open_table(base)
    assert set(seen.context.config.metadata_partitions) == {"files", BORN, SEEN, LOWER}
    assert UPPER not in json.loads(seen.context.storage.get(DEFINITIONS))["indexDefinitions"]
    assert UPPER in seen.context.config.extra[METADATA_DROPPED]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            {"indexFunction": "regexp_extract"},
            r"its expression is of regexp_extract\(…\); an index is kept of date_add",
        ),
        ({"indexOptions": {"expr": "upper", "fpp": "0.1"}}, "its expression has the option fpp"),
        ({"sourceFields": ["seconds"]}, r"its expression is of upper\(…\) over a column of type int64"),
        ({"sourceFields": ["gone"]}, "its column 'gone' is not there"),
        ({"sourceFields": ["name", "id"]}, "this release does not keep it"),
        ({"indexType": "other"}, "neither column_stats nor bloom_filters"),
        (
            {"indexFunction": "to_date", "indexType": "bloom_filters", "sourceFields": ["born"], "indexOptions": {}},
            "date32",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value),
)
def test_one_of_hudi_s_that_is_not_kept_is_dropped_by_the_next_write(
    tmp_path: Path, changed: dict[str, Any], why: str
) -> None:
    base = tmp_path / "t"
    table = with_indexes(base, 9, "CopyOnWrite")
    noted = json.loads(table.context.storage.get(DEFINITIONS))
    noted["indexDefinitions"][UPPER] |= changed
    table.context.storage.put(DEFINITIONS, json.dumps(noted).encode())
    assert differences(open_table(base).context) == []
    with pytest.warns(MetadataDroppedWarning, match=f"{UPPER}: .*{why}" if "this release" not in why else why):
        open_table(base).upsert(numbered(range(3), 2))
    assert set(open_table(base).context.config.metadata_partitions) == {"files", BORN, SEEN, LOWER}


@TYPES
def test_the_doctor_finds_entries_that_leave_rows_out(tmp_path: Path, version: int, kind: str) -> None:
    base = tmp_path / "t"
    table = with_indexes(base, version, kind)
    storage = table.context.storage
    table.upsert(numbered(range(30), 2))
    for info in storage.list(f"{METADATA_TABLE}/{UPPER}"):
        if "0-0-0" not in info.path and ".log." in info.path:
            storage.delete(info.path)
    (found,) = [item for item in differences(open_table(base).context) if item.path == UPPER]
    assert "lacks" in found.what


def test_the_doctor_finds_other_bounds_and_filters(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = with_indexes(base, 9, "CopyOnWrite")
    noted = json.loads(table.context.storage.get(DEFINITIONS))
    noted["indexDefinitions"][UPPER] |= {"indexFunction": "lower", "indexOptions": {"expr": "lower"}}
    noted["indexDefinitions"][LOWER] |= {"indexFunction": "upper", "indexOptions": {"expr": "upper"}}
    table.context.storage.put(DEFINITIONS, json.dumps(noted).encode())
    found = {item.path: item.what for item in differences(open_table(base).context)}
    assert found == {
        UPPER: "lacks 0 entries, and 4 have other bounds than the rows",
        LOWER: "has filters of 2 files that lack values of their rows",
    }


def test_one_is_made_and_dropped_by_its_name(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 9, "MergeOnRead")
    table.insert(numbered(range(5), 1))
    assert table.create_index("by_upper", "upper(name)")
    assert not open_table(base).create_index("by_upper", "upper(name)")
    assert not open_table(base).build_metadata([UPPER])
    noted = json.loads(table.context.storage.get(DEFINITIONS))["indexDefinitions"][UPPER]
    assert noted == {
        "indexName": UPPER,
        "indexType": "column_stats",
        "indexFunction": "upper",
        "sourceFields": ["name"],
        "indexOptions": {"expr": "upper"},
        "version": "V2",
    }
    assert open_table(base).drop_index("by_upper")
    seen = open_table(base)
    assert seen.context.config.metadata_partitions == ("files",)
    assert METADATA_DROPPED not in seen.context.config.extra


def test_what_the_table_cannot_have_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, "CopyOnWrite")
    table.insert(numbered(range(4), 1))
    before = sorted(info.path for info in table.context.storage.list())
    refused = {
        "expr_index_x": "say of which expression, expr_index_x=<function>",
        "expr_index_x=name": "is of 'name', which is no expression",
        "expr_index_x=upper(name) of it": "which is no expression",
        "expr_index_x=upper(nobody)": "has no column 'nobody'; there are id, city",
        "expr_index_a-b=upper(name)": "named by letters, digits and `_`, not 'a-b'",
    }
    for name, why in refused.items():
        with pytest.raises(InvalidRequestError, match=why):
            table.build_metadata([name])
    unsupported = {
        "expr_index_x=regexp_extract(name)": r"is of regexp_extract\(…\); an index is kept of",
        "expr_index_x=upper(seconds)": "over a column of type int64; it is kept of strings",
        "expr_index_x=date_format(born) format='EEE'": "has the format 'EEE'",
        "expr_index_x=date_add(born) days=many": "needs a whole number as option days, and has 'many'",
        "expr_index_x=upper(name) days=1": "has the option days",
        "expr_index_x=to_date(born) using bloom_filters": "bloom filters are kept of strings and ints",
    }
    for name, why in unsupported.items():
        with pytest.raises(UnsupportedTableError, match=why):
            table.build_metadata([name])
    assert sorted(info.path for info in table.context.storage.list()) == before
    table.build_metadata([ASKED[0], "record_index", "secondary_index_s=name"])
    with pytest.raises(InvalidRequestError, match=r"is of upper\(name\) using column_stats, not 'lower\(name\)'"):
        table.create_index("by_upper", "lower(name)")
    with pytest.raises(InvalidRequestError, match="the column 'name' has the index expr_index_by_upper"):
        table.create_index("by_lower", "lower(name)")
    with pytest.raises(InvalidRequestError, match="secondary_index_s has the name of expr_index_s"):
        table.create_index("s", "lower(id)")
    logged = made(tmp_path / "logged", 9, "MergeOnRead")
    logged.insert(numbered(range(2), 1))
    with pytest.raises(UnsupportedTableError, match="fails where a merge-on-read table has one"):
        logged.create_index("by_id", "lower(id) using bloom_filters")
    old = made(tmp_path / "old", 6, "CopyOnWrite")
    old.insert(numbered(range(2), 1))
    with pytest.raises(UnsupportedTableError, match="table versions 8 and 9, and the table has version 6"):
        old.create_index("by_upper", "upper(name)")


def test_values_are_those_of_spark() -> None:
    """Measured; `tests/interop/test_expression_index.py` compares with Spark itself."""
    cases: list[tuple[str, dict[str, str], pa.Array, list[Any]]] = [
        ("upper", {}, pa.array(["straße", None, "é"]), ["STRASSE", None, "É"]),
        ("lower", {}, pa.array(["ÉCOLE", None]), ["école", None]),
        ("length", {}, pa.array(["é中😀", ""]), [3, 0]),
        ("trim", {}, pa.array([" a\t ", "\u00a0"]), ["a\t", "\u00a0"]),
        ("ltrim", {"trimString": "xy"}, pa.array(["yxa"]), ["a"]),
        ("rtrim", {}, pa.array([" a "]), [" a"]),
        ("substring", {"pos": "-2", "len": "1"}, pa.array(["é中😀", "a", None]), ["中", "", None]),
        ("substring", {"pos": "0", "len": "2"}, pa.array(["é中😀"]), ["é中"]),
        ("substring", {"pos": "2", "len": "0"}, pa.array(["abc", None]), ["", None]),
        ("from_unixtime", {}, pa.array([-1, None, 2**63 - 1]), ["1969-12-31 23:59:59", None, "1969-12-31 23:59:59"]),
        ("from_unixtime", {"format": "yyyy/MM"}, pa.array([253402300800, -62167219201]), ["+10000/01", "-0001/12"]),
    ]
    for name, options, values, expected in cases:
        kind, compute = bound_function(name, options, values.type)
        found = compute(values)
        assert found.type == kind
        assert found.to_pylist() == expected, name
    for text in ("Σ", "\u10d0", "\U00010597", "\u0378"):
        with pytest.raises(UnknownValueError, match="whose other case depends on the release of Java"):
            bound_function("lower" if text == "Σ" else "upper", {}, pa.string())[1](pa.array([text]))


def test_days_and_instants_are_taken_apart_as_spark_does() -> None:
    days = pa.array([0, None, -719_529, 2_932_897], pa.int32()).view(pa.date32())
    micros = pa.array([-1, None], pa.int64()).view(pa.timestamp("us", tz="UTC"))
    cases: list[tuple[str, dict[str, str], pa.Array, list[int | str | None]]] = [
        ("year", {}, days, [1970, None, -1, 10_000]),
        ("month", {}, days, [1, None, 12, 1]),
        ("day", {}, days, [1, None, 31, 1]),
        ("hour", {}, micros, [23, None]),
        ("date_add", {"days": "2147483647"}, days, [2**31 - 1, None, 2**31 - 1 - 719_529, -(2**31) + 2_932_896]),
        ("date_sub", {"days": "1"}, micros, [-2, None]),
        ("to_date", {}, micros, [-1, None]),
        ("date_format", {"format": "yyyy-MM-dd'T'HH.mm:ss"}, micros, ["1969-12-31T23.59:59", None]),
        ("date_format", {"format": "yyyyMMdd"}, days, ["19700101", None, "-00011231", "+100000101"]),
    ]
    for name, options, values, expected in cases:
        kind, compute = bound_function(name, options, values.type)
        found = compute(values)
        assert found.type == kind
        plain = found.view(pa.int32()) if pa.types.is_date32(kind) else found
        assert plain.to_pylist() == expected, name


def test_a_partition_of_such_an_index_is_known_by_its_name() -> None:
    assert isinstance(partition_named(UPPER), ExpressionPartition)
    assert partition_named(UPPER).prefix == "expr-index-by-upper-"
    with pytest.raises(ValueError, match="is no partition of the metadata table"):
        ExpressionPartition("files")
