"""Indexes of secondary keys: every write keeps them, filters go by them, and the doctor finds what
is wrong in one."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import HudiTable, create_table, downgrade_table, open_table, upgrade_table
from hudi_table.codec.metadata.keys import record_keys_of, secondary_keys, secondary_prefixes, secondary_prefixes_of
from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.definitions import DEFINITIONS
from hudi_table.metadata.lifecycle import MetadataDroppedWarning
from hudi_table.metadata.reading import read_entries
from hudi_table.metadata.secondary_index import build
from hudi_table.metadata.secondary_index.lookup import SecondaryGroups
from hudi_table.metadata.table import MetadataTable
from hudi_table.metadata.validate import differences
from hudi_table.model.metadata_table import SecondaryPartition
from hudi_table.model.names import METADATA_TABLE, PROPERTIES, RECORD_KEY
from hudi_table.model.table.properties import METADATA_DROPPED
from hudi_table.table.timeline.active import load_timeline
from tests.support import golden

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("name", pa.string()), ("n", pa.int32()), ("ts", pa.int64())]
)
NAME = "secondary_index_by_name"
KINDS = [(version, kind) for version in (8, 9) for kind in ("CopyOnWrite", "MergeOnRead")]
TYPES = pytest.mark.parametrize(("version", "kind"), KINDS)
ODD = ["a$b", "\\", "", None, "x\0y", "é中", "line\nend", "$", "plain"]


def rows(*items: tuple[str, str, str | None, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in items], schema=SCHEMA)


def numbered(numbers: range, version: int, city: str = "") -> pa.Table:
    found = [
        (f"k{n:03d}", city or ("nyc" if n % 2 else "par"), ODD[(n + version) % len(ODD)], n * version, version)
        for n in numbers
    ]
    return rows(*found)


def made(base: Path, version: int, kind: Any, *, index: Any = None, **more: Any) -> HudiTable:
    chosen = {"index": index} if index else {}
    given = {"record_key": "id", "partition_by": ["city"], "ordering_fields": "ts"} | chosen | more
    return create_table(base, SCHEMA, type=kind, version=version, **given)


def with_index(base: Path, version: int, kind: Any, **more: Any) -> HudiTable:
    table = made(base, version, kind, **more)
    table.insert(numbered(range(12), 1))
    table.build_metadata(["record_index"])
    assert table.create_index("by_name", "name")
    return open_table(base)


def pairs(table: HudiTable, name: str = NAME) -> list[str]:
    """The keys of the index, sorted."""
    found = MetadataTable.load(table.context, load_timeline(table.context))
    assert found is not None
    assert name in found.partitions.ready
    entries = read_entries(found, SecondaryPartition(name))
    assert entries is not None
    return sorted(entries["key"].to_pylist())


def stored(table: HudiTable, column: str = "name") -> list[str]:
    """The pairs of the rows that a reader sees."""
    seen = table.scan(columns=[RECORD_KEY, column]).to_arrow()
    return sorted(secondary_keys(seen[column].cast(pa.string()), seen[RECORD_KEY]).to_pylist())


def assert_kept(base: Path) -> HudiTable:
    table = open_table(base)
    assert pairs(table) == stored(table)
    assert differences(table.context) == []
    return table


def test_a_pair_is_taken_apart_as_it_was_put_together() -> None:
    values = pa.array([value for value, _ in itertools.product(ODD, ODD)], pa.string())
    keys = pa.array([key or "none" for _, key in itertools.product(ODD, ODD)], pa.string())
    made_of = secondary_keys(values, keys)
    assert len(made_of.unique()) == len(made_of) - len(ODD)  # "" and None are keys of two names here, "none" of one
    assert record_keys_of(made_of).equals(keys)
    assert secondary_prefixes_of(made_of).equals(secondary_prefixes(values))
    assert secondary_keys(pa.array(["a$\\"]), pa.array(["k$1"])).to_pylist() == ["a\\$\\\\$k\\$1"]
    assert secondary_keys(pa.array([None], pa.string()), pa.array(["k"])).to_pylist() == ["\0$k"]


@pytest.mark.thinned("values")
@TYPES
def test_every_operation_keeps_the_pairs(tmp_path: Path, version: int, kind: str) -> None:
    base = tmp_path / "t"
    table = with_index(base, version, kind)
    assert_kept(base)
    table.upsert(numbered(range(4, 16), 2))
    assert_kept(base)
    table.upsert(numbered(range(2), 0))
    assert_kept(base)
    table.delete(numbered(range(6, 9), 3))
    assert_kept(base)
    table.write(numbered(range(40, 43), 1, "par"), operation="insert_overwrite")
    assert_kept(base)
    table.write(numbered(range(50, 53), 1), operation="bulk_insert")
    assert_kept(base)
    if kind == "MergeOnRead":
        open_table(base).compact(force=True)
        assert_kept(base)
        open_table(base).upsert(numbered(range(50, 53), 4))
        assert_kept(base)
    compact_metadata(open_table(base).context, 1)
    assert_kept(base)
    open_table(base).write(None, operation="delete_partition", partitions=["nyc"])
    assert_kept(base)
    open_table(base).clean(force=True)
    assert_kept(base)


@pytest.mark.thinned("values")
@TYPES
def test_random_writes_keep_the_pairs(tmp_path: Path, version: int, kind: str) -> None:
    chosen = random.Random(f"{version}{kind}")
    base = tmp_path / "t"
    with_index(base, version, kind)
    for step in range(2, 12):
        numbers = [chosen.randrange(30) for _ in range(6)]
        some = pa.concat_tables([numbered(range(n, n + 1), chosen.randrange(step + 1)) for n in sorted(set(numbers))])
        table = open_table(base)
        if chosen.random() < 0.3:
            table.delete(some)
        else:
            table.upsert(some)
        assert_kept(base)


@pytest.mark.thinned("pairs")
@TYPES
@pytest.mark.parametrize("values", [["a$b"], ["\\", "plain"], ["nobody"], ["x\0y", "é中", ""]], ids=repr)
def test_a_filter_opens_the_files_alone_that_have_rows_with_the_values(
    tmp_path: Path, version: int, kind: str, values: list[str]
) -> None:
    base = tmp_path / "t"
    table = with_index(base, version, kind, partition_by=["city"])
    for n in range(60, 66):
        table.write(numbered(range(n, n + 1), 1, f"c{n}"), operation="insert")
    table.upsert(numbered(range(3), 5))
    seen = open_table(base)
    whole = seen.scan().to_arrow()
    expected = whole.filter(pc.is_in(whole["name"], pa.array(values)))
    found = seen.scan(filter=pc.field("name").isin(values))
    assert sorted(found.to_arrow()["id"].to_pylist()) == sorted(expected["id"].to_pylist())
    assert {item.partition for item in found.plan.slices} == set(expected["city"].to_pylist())
    if len(values) == 1:
        one = seen.scan(filter=f"name = '{values[0]}'").to_arrow()
        assert sorted(one["id"].to_pylist()) == sorted(expected["id"].to_pylist())


def test_an_index_of_numbers_is_kept_and_asked(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 9, "MergeOnRead")
    table.insert(numbered(range(12), 1))
    assert table.build_metadata(["record_index", "secondary_index_by_n=n", "secondary_index_by_ts=ts"])
    table.upsert(numbered(range(5), 7))
    seen = open_table(base)
    assert pairs(seen, "secondary_index_by_n") == stored(seen, "n")
    assert pairs(seen, "secondary_index_by_ts") == stored(seen, "ts")
    assert seen.scan(filter="n = 14").to_arrow()["id"].to_pylist() == ["k002"]


def test_it_is_built_by_way_of_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t", 9, "CopyOnWrite")
    table.insert(numbered(range(500), 1))
    table.build_metadata(["record_index"])
    monkeypatch.setattr(build.recorded_pairs, "__defaults__", (64,))
    assert table.create_index("by_name", "name")
    assert not table.create_index("by_name", "name")
    assert_kept(tmp_path / "t")


def test_what_the_table_cannot_have_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, "CopyOnWrite")
    table.insert(numbered(range(4), 1))
    before = sorted(info.path for info in table.context.storage.list())
    with pytest.raises(UnsupportedTableError, match="needs the record index, and the table has none"):
        table.create_index("by_name", "name")
    with pytest.raises(InvalidRequestError, match=r"has no column 'nobody'; there are id, city, name, n, ts"):
        table.build_metadata(["record_index", "secondary_index_x=nobody"])
    with pytest.raises(InvalidRequestError, match="named by letters, digits and `_`, not 'a-b'"):
        table.create_index("a-b", "name")
    with pytest.raises(InvalidRequestError, match="say of which column, secondary_index_x=<column>"):
        table.build_metadata(["record_index", "secondary_index_x"])
    assert sorted(info.path for info in table.context.storage.list()) == before
    table.build_metadata(["record_index"])
    table.create_index("by_name", "name")
    with pytest.raises(InvalidRequestError, match=f"the index {NAME} is of the column 'name', not 'n': drop it first"):
        table.create_index("by_name", "n")


def test_columns_of_other_types_tables_of_version_6_and_record_indexes_by_partition_are_refused(tmp_path: Path) -> None:
    wide = SCHEMA.append(pa.field("real", pa.float64()))
    table = create_table(tmp_path / "wide", wide, record_key="id", version=9)
    table.insert(numbered(range(2), 1).append_column("real", pa.array([1.0, 2.0])))
    table.build_metadata(["record_index"])
    with pytest.raises(
        UnsupportedTableError, match=r"column 'real' has the type double: .* string, int, bigint, boolean"
    ):
        table.create_index("by_real", "real")
    table = made(tmp_path / "old", 6, "CopyOnWrite")
    table.insert(numbered(range(2), 1))
    with pytest.raises(UnsupportedTableError, match="table versions 8 and 9, and the table has version 6"):
        table.create_index("by_name", "name")
    table = made(tmp_path / "parts", 9, "CopyOnWrite")
    table.insert(numbered(range(2), 1))
    table.build_metadata(["partitioned_record_index"])
    with pytest.raises(UnsupportedTableError, match="needs a global record index, and the table's is by partition"):
        table.create_index("by_name", "name")


@TYPES
def test_a_dropped_index_goes_with_its_definition_and_can_be_made_again(
    tmp_path: Path, version: int, kind: str
) -> None:
    base = tmp_path / "t"
    table = with_index(base, version, kind)
    assert table.drop_index("by_name")
    assert not table.drop_index("by_name")
    seen = open_table(base)
    assert NAME not in seen.context.config.metadata_partitions
    assert METADATA_DROPPED not in seen.context.config.extra
    assert NAME not in json.loads(seen.context.storage.get(DEFINITIONS))["indexDefinitions"]
    assert not seen.context.storage.list(f"{METADATA_TABLE}/{NAME}")
    assert seen.create_index("by_name", "name")
    assert_kept(base)


def test_one_whose_column_goes_is_dropped_and_the_others_stay(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = with_index(base, 9, "CopyOnWrite")
    noted = json.loads(table.context.storage.get(DEFINITIONS))
    noted["indexDefinitions"][NAME]["sourceFields"] = ["city", "name"]
    table.context.storage.put(DEFINITIONS, json.dumps(noted).encode())
    with pytest.warns(MetadataDroppedWarning, match=f"{NAME}: this release does not keep it"):
        table.upsert(numbered(range(3), 2))
    assert set(open_table(base).context.config.metadata_partitions) == {"files", "record_index"}


def test_what_is_left_of_an_index_that_is_not_whole_is_not_asked(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = with_index(base, 9, "CopyOnWrite", index={"type": "Simple"})
    table.insert(numbered(range(60, 66), 1, "far"))

    def asked() -> SecondaryGroups | None:
        context = open_table(base).context
        return SecondaryGroups.load(context, load_timeline(context), SecondaryPartition(NAME))

    def found() -> list[str]:
        return sorted(open_table(base).scan(filter="name = 'plain'").to_arrow()["id"].to_pylist())

    whole, groups = found(), asked()
    assert groups is not None
    assert len(groups.slices) > 1
    storage = table.context.storage
    first = f"/{groups.slices[0].file_id}"
    gone = [info.path for info in storage.list(f"{METADATA_TABLE}/{NAME}") if first in info.path.replace("/.", "/")]
    kept = {path: storage.get(path) for path in gone}
    assert kept
    for path in kept:
        storage.delete(path)
    assert asked() is None
    assert found() == whole
    for path, body in kept.items():
        storage.put(path, body)
    assert asked() is not None
    properties = storage.get(PROPERTIES).decode()
    assert f",{NAME}" in properties
    storage.put(PROPERTIES, properties.replace(f",{NAME}", "").encode())
    assert asked() is None, "another engine has dropped it and left its definition and its files"
    assert found() == whole


@TYPES
def test_the_doctor_finds_a_missing_and_a_stale_pair(tmp_path: Path, version: int, kind: str) -> None:
    base = tmp_path / "t"
    table = with_index(base, version, kind)
    storage = table.context.storage
    assert differences(table.context) == []
    lost = [info.path for info in storage.list(f"{METADATA_TABLE}/{NAME}") if info.path.endswith(".hfile")]
    kept = {path: storage.get(path) for path in lost}
    table.upsert(numbered(range(12), 2))
    assert differences(open_table(base).context) == []
    logs = [info.path for info in storage.list(f"{METADATA_TABLE}/{NAME}") if "0-0-0" not in info.path]
    assert kept
    assert logs
    for path in logs:
        storage.delete(path)
    found = {item.what for item in differences(open_table(base).context) if item.path == NAME}
    assert len(found) == 1
    assert "lacks" in next(iter(found))
    assert "holds" in next(iter(found))


def test_hudi_s_own_goes_on(tmp_path: Path) -> None:
    base = golden.unpack("v8_rli_sec", tmp_path).base
    table = open_table(base)
    theirs = "secondary_index_idx_name"
    assert pairs(table, theirs) == stored(table)
    data = table.scan().to_arrow()
    some = data.slice(0, 3).drop_columns([name for name in data.column_names if name.startswith("_hoodie")])
    place = some.schema.get_field_index("name")
    some = some.set_column(place, some.schema.field(place), pa.array(["new", None, "name0_0"]))
    some = some.set_column(some.schema.get_field_index("ts"), "ts", pa.array([9000] * 3, pa.int64()))
    table.write(some, operation="upsert", options={"hoodie.index.type": "SIMPLE"})
    seen = open_table(base)
    assert pairs(seen, theirs) == stored(seen)
    assert differences(seen.context) == []
    seen.delete(some.slice(0, 1), options={"hoodie.index.type": "SIMPLE"})
    seen = open_table(base)
    assert pairs(seen, theirs) == stored(seen)
    compact_metadata(seen.context, 1)
    seen = open_table(base)
    assert pairs(seen, theirs) == stored(seen)
    assert differences(seen.context) == []


@pytest.mark.parametrize(("version", "then"), [(8, 9), (9, 8)])
def test_one_goes_along_to_another_version_with_the_metadata_table(tmp_path: Path, version: int, then: int) -> None:
    base = tmp_path / "t"
    with_index(base, version, "MergeOnRead")
    (upgrade_table if then > version else downgrade_table)(base, to=then)
    seen = open_table(base)
    assert seen.context.config.version == then
    assert not seen.context.config.metadata_partitions
    seen.build_metadata(["record_index"])
    noted = json.loads(seen.context.storage.get(DEFINITIONS))["indexDefinitions"]
    assert noted[NAME]["version"] == {8: "V1", 9: "V2"}[then]
    seen.upsert(numbered(range(4), 3))
    assert_kept(base)
    seen.drop_metadata()
    open_table(base).build_metadata(["column_stats"])
    assert json.loads(seen.context.storage.get(DEFINITIONS))["indexDefinitions"].keys() == {
        "column_stats",
        "record_index",
    }


def test_writers_that_do_not_wait_for_each_other_drop_it(tmp_path: Path) -> None:
    base = tmp_path / "t"
    with_index(base, 9, "MergeOnRead", index={"type": "Bucket", "buckets": 2})
    options = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
    with pytest.warns(MetadataDroppedWarning, match=f"{NAME}: writers that do not wait for each other"):
        open_table(base).upsert(numbered(range(3), 2), options=options)
    seen = open_table(base)
    assert NAME not in seen.context.config.metadata_partitions
    assert differences(seen.context) == []


def test_a_column_that_a_write_widens_is_kept(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 9, "CopyOnWrite")
    table.insert(numbered(range(6), 1))
    table.build_metadata(["record_index", "secondary_index_by_n=n"])
    place = SCHEMA.get_field_index("n")
    wide = numbered(range(3), 2).set_column(place, "n", pa.array([2**40, 2**41, 1]))
    open_table(base).upsert(wide)
    seen = open_table(base)
    assert pairs(seen, "secondary_index_by_n") == stored(seen, "n")
    assert differences(seen.context) == []


def test_one_of_hudi_s_of_another_type_is_no_fault_and_goes_with_the_next_write(tmp_path: Path) -> None:
    base = golden.unpack("v8_rli_sec", tmp_path).base
    table = open_table(base)
    noted = json.loads(table.context.storage.get(DEFINITIONS))
    noted["indexDefinitions"]["secondary_index_idx_name"]["sourceFields"] = ["price"]
    table.context.storage.put(DEFINITIONS, json.dumps(noted).encode())
    assert differences(open_table(base).context) == []
    assert open_table(base).scan(filter="price = 1.5").count() >= 0
    data = table.scan().to_arrow().slice(0, 1)
    with pytest.warns(
        MetadataDroppedWarning, match="its column 'price' has the type double; an index is kept of string"
    ):
        open_table(base).write(data, operation="upsert", options={"hoodie.index.type": "SIMPLE"})
    assert "secondary_index_idx_name" not in open_table(base).context.config.metadata_partitions
