"""Filters on the record key open only the file groups that the record index tells, and never change
rows.

Matrix: {one key field, two} × {copy-on-write, merge-on-read}: random tables and filters beside a
full scan; the past, incremental and read-optimised queries; a commit between snapshot and index;
keys that nobody has; what a filter leaves of the key. Omitted: tables of Hudi
(`tests/interop/test_record_index.py`), other indexes (`test_buckets.py`, `test_column_ranges.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.model.table.config import TableConfig, TableType
from hudi_table.read.filter.predicates import Filter
from hudi_table.read.pruning.record_keys import possible_record_keys
from hudi_table.table.store.ports import Storage
from hudi_table.write.checks.create_table import TableSpec, create
from tests.support.crashes import new_store, opened
from tests.support.scale import scaled

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("city", pa.string()), ("value", pa.int64())])
APART = {"hoodie.parquet.small.file.limit": "0", "hoodie.record.index.update.partition.path": "true"}
BOTH = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
CITIES = ("x", "y", "z")


def rows(*items: tuple[str, int, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in items], schema=SCHEMA)


def begun(kind: str, key: str | list[str] = "id", *, files: int = 4) -> Storage:
    """A table with a file or more for each of its writes, and keys of each in all cities."""
    store = new_store()
    create(store, TableSpec(SCHEMA, key, partition_by=["city"], index="RecordIndex", name="t", type=kind))
    for number in range(files):
        batch = rows(*((f"{number}:{n}", n, CITIES[n % 3], number) for n in range(6)))
        opened(store).write(batch, operation="upsert", options=APART)
    return store


def files(table: HudiTable, text: str, **more: Any) -> int:
    return len(table.scan(filter=text, **more).plan_files())


@BOTH
def test_a_key_opens_the_file_group_that_holds_it(kind: str) -> None:
    table = opened(begun(kind))
    assert len(table.scan().plan_files()) == 12
    assert files(table, "id = '2:4'") == 1
    assert table.scan(filter="id = '2:4'").to_arrow()["value"].to_pylist() == [2]
    assert files(table, "id in ('2:4', '0:0', '3:3')") == 3
    assert files(table, "id = '2:4' and value > 7") == 1
    assert files(table, "id = '2:4' or id = '1:1'") == 2
    assert files(table, "id = 'nobody'") == 0
    assert table.scan(filter="id = 'nobody'").count() == 0


def test_what_leaves_the_key_open_opens_every_file() -> None:
    table = opened(begun("CopyOnWrite"))
    for text in ("id > '2:4'", "id = '2:4' or value = 1", "id <> '2:4'", "value = 1", "id is null"):
        assert files(table, text) == 12, text


def test_all_fields_of_a_key_are_needed() -> None:
    table = opened(begun("CopyOnWrite", ["id", "n"]))
    assert files(table, "id = '2:4' and n = 4") == 1
    assert table.scan(filter="id = '2:4' and n = 4").count() == 1
    assert files(table, "id in ('2:4', '1:1') and n in (1, 4)") == 2
    assert files(table, "id = '2:4'") == 12


@BOTH
def test_the_past_and_its_changes_are_read_as_if_there_were_no_index(kind: str) -> None:
    store = begun(kind)
    before = opened(store).history().to_pylist()[0]["instant"]
    opened(store).write(rows(("2:4", 4, "z", 9)), operation="upsert", options=APART)
    opened(store).write(rows(("0:0", 0, "x", 0)), operation="delete", options=APART)
    table = opened(store)
    assert table.scan(filter="id = '2:4'").to_arrow()["city"].to_pylist() == ["z"]
    assert table.scan(filter="id = '0:0'").count() == 0
    assert table.scan(filter="id = '2:4'", as_of=before).to_arrow()["city"].to_pylist() == ["y"]
    assert table.scan(filter="id = '0:0'", as_of=before).count() == 1
    assert files(table, "id = '0:0'", as_of=before) == 12
    changed = table.scan(filter="id = '2:4'", query="incremental", since=before)
    assert changed.to_arrow()["city"].to_pylist() == ["z"]


def test_base_files_alone_hold_keys_where_the_index_has_them_no_more() -> None:
    store = begun("MergeOnRead")
    opened(store).write(rows(("2:4", 4, "z", 9)), operation="upsert", options=APART)
    table = opened(store)
    assert table.scan(filter="id = '2:4'").count() == 1
    found = table.scan(filter="id = '2:4'", query="read_optimized").to_arrow()["city"].to_pylist()
    assert "y" in found


class Late:
    """A store on which somebody writes when the index is first looked into, and compacts it."""

    def __init__(self, store: Storage, then: Callable[[], object]) -> None:
        self._store = store
        self._then: Callable[[], object] | None = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def list(self, prefix: str = "", **more: Any) -> Any:
        if prefix.startswith(".hoodie/metadata") and self._then is not None:
            then, self._then = self._then, None
            then()
        return self._store.list(prefix, **more)


def test_an_index_that_is_ahead_of_the_snapshot_is_not_believed() -> None:
    store = begun("CopyOnWrite")

    def meanwhile() -> None:
        opened(store).write(rows(("2:4", 4, "z", 9)), operation="upsert", options=APART)
        compact_metadata(opened(store).context, 1)

    late: Any = Late(store, meanwhile)
    found = opened(late).scan(filter="id = '2:4'").to_arrow().to_pylist()
    assert [(row["city"], row["value"]) for row in found] == [("y", 2)]
    assert opened(store).scan(filter="id = '2:4'").to_arrow()["city"].to_pylist() == ["z"]


def test_the_keys_of_a_filter_are_those_that_writers_make() -> None:
    def keys(fields: tuple[str, ...], text: str) -> list[str] | None:
        config = TableConfig("t", TableType.COPY_ON_WRITE, fields)
        asked = Filter.of(text)
        assert asked is not None
        found = possible_record_keys(asked.bind(SCHEMA), config, SCHEMA)
        return None if found is None else sorted(found.to_pylist())

    assert keys(("id",), "id = 'a:b'") == ["a:b", "id:a:b"]
    assert keys(("n",), "n in (1, 2)") == ["1", "2", "n:1", "n:2"]
    assert keys(("id", "n"), "id = 'a' and n in (1, 2)") == ["id:a,n:1", "id:a,n:2"]
    assert keys(("id", "n"), "id = 'a'") is None
    assert keys(("id",), "id = ''") is None
    many = ", ".join(f"'{n}'" for n in range(10_001))
    assert keys(("id",), f"id in ({many})") is None


@BOTH
@pytest.mark.parametrize("fields", ["id", ["id", "n"]], ids=["one", "two"])
def test_rows_are_those_of_a_full_scan_and_files_those_that_hold_the_keys(
    kind: str, fields: str | list[str], figure: Callable[[int, str], None]
) -> None:
    chance = random.Random(f"{kind}-{fields}")
    store = begun(kind, fields, files=2)
    known = [(f"{number}:{n}", n) for number in range(2) for n in range(6)]
    examples = scaled(6)
    for number in range(examples):
        picked = chance.sample(known, 3)
        batch = [(key, n, chance.choice(CITIES), number) for key, n in picked]
        if number % 3 == 2:
            opened(store).write(rows(*batch[:1]), operation="delete", options=APART)
        else:
            fresh = (f"new:{number}", number)
            known.append(fresh)
            opened(store).write(rows(*batch, (*fresh, "x", number)), operation="upsert", options=APART)
        _agrees(opened(store), chance, known, fields)
    figure(examples, "filters on keys")


def _agrees(table: HudiTable, chance: random.Random, known: list[tuple[str, int]], fields: str | list[str]) -> None:
    asked = chance.sample([*known, ("nobody", 1)], chance.randrange(1, 4))
    text = f"id in ({', '.join(repr(key) for key, _ in asked)})"
    if fields != "id":
        text += f" and n in ({', '.join(str(n) for _, n in asked)})"
    if chance.random() < 0.3:
        text += f" and city = '{chance.choice(CITIES)}'"
    everything = table.scan(meta=True).to_arrow()
    ids, numbers = {key for key, _ in asked}, {n for _, n in asked}
    wanted = [
        row
        for row in everything.to_pylist()
        if row["id"] in ids and (fields == "id" or row["n"] in numbers) and _in_city(row, text)
    ]
    scan = table.scan(filter=text, meta=True)
    key = lambda row: (row["id"], row["n"])  # noqa: E731 - used twice, here alone
    assert sorted(scan.to_arrow().to_pylist(), key=key) == sorted(wanted, key=key), text
    held = {row["_hoodie_file_name"].partition("_")[0] for row in everything.to_pylist() if row["id"] in ids}
    assert len(scan.plan_files()) <= max(1, len(held)), text


def _in_city(row: dict[str, Any], text: str) -> bool:
    return "city" not in text or f"city = '{row['city']}'" in text
