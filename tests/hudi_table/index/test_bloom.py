"""The bloom indexes read no file that cannot hold a key, and are never wrong for it.

Aspects: which files are opened and read; filters in what every writer and service leaves; files
without a filter; damaged filters; options. Behaviour that all indexes share: test_conformance.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.codec.bloom.filters import BloomFilter, BloomFilterSpec
from hudi_table.codec.parquet import BLOOM, read_footer
from hudi_table.errors import CorruptTableError, InvalidOptionError, InvalidRequestError, InvariantError
from hudi_table.index.base import Index, Keys, Lookup, Routed
from hudi_table.index.bloom import BloomIndex
from hudi_table.index.filters import FileFilter, OpenBase
from hudi_table.index.simple import SimpleIndex
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from tests.support.recording import RecordingStorage, Trace
from tests.support.unsealed import without_check_sums
from tests.support.written import contents, keys, new_table, rows, slices

NO_PACKING = {"hoodie.parquet.small.file.limit": "0"}
SMALL = {"hoodie.index.bloom.num_entries": "1000", "hoodie.index.bloom.fpp": "0.000001"}


def key_of(number: int) -> str:
    """Keys that no range of a file tells apart: numbers come in the order of their hash-like
    digits."""
    return f"{number * 2_654_435_761 % 2**32:08x}"


def filled(files: int, each: int, **more: Any) -> HudiTable:
    """A table of partition x with so many files, keys spread over all."""
    table = new_table(index="Bloom", **more)
    for number in range(files):
        made = [(key_of(n), "x", n) for n in range(number, files * each, files)]
        table.insert(rows(*made), options=NO_PACKING | SMALL)
    return table


@pytest.fixture(scope="module")
def table() -> HudiTable:
    """Eight files of 250 keys, all of nearly the same range."""
    return filled(8, 250)


def asked(record_keys: list[str], partition: str = "x") -> Keys:
    return Keys(pa.array(record_keys, pa.string()), (partition,), np.zeros(len(record_keys), dtype=np.int32))


def route(table: HudiTable, index: Index, record_keys: list[str], storage: Storage | None = None) -> Routed:
    lookup = Lookup(storage or table.context.storage, slices(table), LocalEngine(2))
    return index.route(asked(record_keys), lookup)


def opened_files(table: HudiTable, index: Index, record_keys: list[str]) -> int:
    """How many files a lookup opens."""
    trace = Trace()
    route(table, index, record_keys, RecordingStorage(table.context.storage, trace))
    paths = [step.key for step in trace.steps if step.call == "open_read"]
    assert len(paths) == len(set(paths)), "a file was opened twice"
    return len(paths)


class Fetched:
    """Filters that are known without opening a file, as a metadata table knows them; counts the
    files that are read."""

    at_once = 1

    def __init__(self, table: HudiTable) -> None:
        self.known: dict[str, FileFilter] = {}
        for item in slices(table):
            assert item.base is not None
            with table.context.storage.open_read(item.base.path) as source:
                footer = read_footer(source)
            self.known[item.base.path] = FileFilter(footer.min_key, footer.max_key, footer.bloom)

    def filters_of(self, slices: Any) -> Any:
        paths = {item.base.path for item in slices}
        known = {path: found for path, found in self.known.items() if path in paths}

        def filter_of(file: OpenBase) -> FileFilter:
            return known[file.base.path]

        return filter_of


@pytest.mark.parametrize("is_global", [False, True])
def test_rows_go_where_the_simple_index_sends_them(table: HudiTable, is_global: bool) -> None:
    sought = [key_of(n) for n in range(0, 2_500, 3)] + ["absent", "", "zz"]
    bloom = route(table, BloomIndex(is_global=is_global), sought)
    simple = route(table, SimpleIndex(is_global=is_global), sought)
    assert bloom.slots == simple.slots
    assert bloom.codes.tolist() == simple.codes.tolist()
    assert (bloom.codes > 0).sum() == len([n for n in range(0, 2_500, 3) if n < 2_000])


def test_a_file_whose_filter_holds_no_key_is_not_opened_where_filters_come_from_elsewhere(table: HudiTable) -> None:
    index = BloomIndex(filters=Fetched(table))
    assert opened_files(table, index, [key_of(n) for n in (0, 8, 16)]) == 1
    assert opened_files(table, index, [key_of(n) for n in (0, 1, 2)]) == 3
    assert opened_files(table, index, [key_of(n) for n in range(2_000, 2_400)]) == 0


def test_a_file_whose_footer_holds_the_filter_is_opened_once(table: HudiTable) -> None:
    assert opened_files(table, BloomIndex(), [key_of(n) for n in (3, 11)]) == 8


def test_files_of_other_partitions_are_opened_for_a_global_index_alone() -> None:
    table = new_table(index="GlobalBloom")
    for city in ("x", "y", "z"):
        table.insert(rows((f"{city}1", city, 1), (f"{city}9", city, 9)), options=SMALL)
    assert opened_files(table, BloomIndex(), ["x1"]) == 1
    assert opened_files(table, BloomIndex(is_global=True), ["x1"]) == 3


def test_ranges_may_be_left_aside_and_filters_alone_asked(table: HudiTable) -> None:
    sought = [key_of(n) for n in range(1_990, 2_010)]
    assert route(table, BloomIndex(prune_by_ranges=False), sought).codes.tolist() == (
        route(table, BloomIndex(), sought).codes.tolist()
    )


def footers(table: HudiTable) -> list[bool]:
    """Of every visible base file whether it has a filter that holds all its keys."""
    found = []
    for item in slices(table):
        assert item.base is not None
        with table.context.storage.open_read(item.base.path) as source:
            stored = pq.read_table(source, columns=["_hoodie_record_key"]).column(0)
            bloom = read_footer(source).bloom()
        found.append(bloom is not None and bool(bloom.might_contain(stored).all()))
    return found


@pytest.mark.parametrize("index", ["Bloom", "GlobalBloom"])
def test_every_file_that_a_write_or_a_service_leaves_has_a_filter(index: str) -> None:
    table = new_table(index=index, type="MergeOnRead")
    table.insert(rows(*((key_of(n), "x", n) for n in range(50))), options=SMALL)
    table.upsert(rows((key_of(3), "x", 33)), options=SMALL)
    assert any(item.logs for item in slices(table))
    assert table.compact(SMALL, force=True)
    assert footers(table) == [True]
    table.insert(rows(("other", "x", 1)), options=NO_PACKING | SMALL)
    assert table.cluster(SMALL, force=True)
    assert footers(table) == [True]
    table.upsert(rows((key_of(3), "x", 34), ("other", "x", 2)), options=SMALL)
    assert {("other", "x", 2), (key_of(3), "x", 34)} <= set(contents(table))


def test_a_file_that_lost_all_its_rows_has_a_filter() -> None:
    table = new_table(index="Bloom")
    table.insert(rows(("a", "x", 1)), options=SMALL)
    table.delete(rows(("a", "x", 1)), options=SMALL)
    assert contents(table) == []
    assert footers(table) == [True]


def test_files_without_a_filter_are_read_in_full_and_get_one_when_they_are_rewritten() -> None:
    table = new_table(index="Simple")
    table.insert(rows(("a", "x", 1), ("b", "x", 2)))
    assert footers(table) == [False]
    table.use_index("Bloom")
    again = open_table(table.base_path)
    assert again.context.config.index is not None
    assert again.context.config.index.type.value == "Bloom"
    again.upsert(rows(("b", "x", 20), ("c", "x", 3)), options=SMALL)
    assert contents(again) == [("a", "x", 1), ("b", "x", 20), ("c", "x", 3)]
    assert footers(again) == [True]


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ("Simple", "GlobalBloom"),
        ("GlobalSimple", "Bloom"),
        ("Bloom", "GlobalBloom"),
        ("Bloom", "Bucket"),
        ("Simple", "Trie"),
        ({"type": "Bucket", "buckets": 2}, "Bloom"),
    ],
)
def test_no_index_becomes_one_that_means_another_thing_by_a_key(stored: Any, wanted: str) -> None:
    table = new_table(index=stored)
    before = table.context.storage.get(".hoodie/hoodie.properties")
    with pytest.raises(InvalidRequestError, match=wanted):
        table.use_index(wanted)
    assert table.context.storage.get(".hoodie/hoodie.properties") == before


def test_a_filter_too_full_to_rule_anything_out_costs_time_and_no_row() -> None:
    full = {
        "hoodie.index.bloom.num_entries": "1",
        "hoodie.index.bloom.fpp": "0.5",
        "hoodie.bloom.index.filter.type": "simple",
    }
    table = new_table(index="Bloom")
    for number in range(3):
        table.insert(rows(*((key_of(n), "x", 0) for n in range(number, 300, 3))), options=NO_PACKING | full)
    assert all(footers(table))
    table.upsert(rows(*((key_of(n), "x", n) for n in range(0, 600, 2))), options=full)
    assert len(contents(table)) == 300 + 150
    table.delete(keys(*((key_of(n), "x") for n in range(600))))
    assert contents(table) == []


def footer_of(table: HudiTable) -> tuple[BloomFilter, pa.Array]:
    """The filter of the one file of a table, and the record keys that it holds."""
    (item,) = slices(table)
    assert item.base is not None
    with table.context.storage.open_read(item.base.path) as source:
        found = read_footer(source).bloom()
        stored = pq.ParquetFile(source).read(["_hoodie_record_key"]).column(0).combine_chunks()
    assert found is not None
    return found, stored


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
def test_a_rewrite_that_keeps_all_keys_goes_on_with_the_stored_filter(kind: str) -> None:
    options = {"hoodie.bloom.index.filter.type": kind, "hoodie.index.bloom.num_entries": "100"}
    table, spec = new_table(index="Bloom"), BloomFilterSpec(kind, 100)
    table.insert(rows(*((key_of(n), "x", n) for n in range(80))), options=options)
    before, _ = footer_of(table)
    table.upsert(rows((key_of(3), "x", 1), (key_of(70), "x", 2)), options=options)
    assert footer_of(table)[0].to_bytes() == before.to_bytes()
    table.upsert(rows((key_of(3), "x", 3), *((key_of(n), "x", n) for n in range(100, 160))), options=options)
    found, stored = footer_of(table)
    assert len(stored) == 140
    assert found.to_bytes() == BloomFilter.from_keys(stored, spec).to_bytes()
    assert found.might_contain(stored).all()


@pytest.mark.parametrize("change", ["delete", "flagged delete", "other options", "damaged"])
def test_a_rewrite_that_loses_keys_or_cannot_go_on_makes_the_filter_anew(change: str) -> None:
    options = {"hoodie.parquet.bloom.filter.enabled": "true", "hoodie.index.bloom.num_entries": "100"}
    table, spec, row = new_table(index="Simple"), BloomFilterSpec(num_entries=100), (key_of(3), "x", 9)
    table.insert(rows(*((key_of(n), "x", n) for n in range(80))), options=options)
    if change == "delete":
        table.delete(keys(row[:2]), options=options)
    elif change == "flagged delete":
        table.upsert(rows((*row, 2, True), (key_of(4), "x", 9)), options=options)
    elif change == "other options":
        spec = BloomFilterSpec(num_entries=200)
        table.upsert(rows(row), options=options | {"hoodie.index.bloom.num_entries": "200"})
    else:
        damage_filter(table)
        table.upsert(rows(row), options=options)
    found, stored = footer_of(table)
    assert len(stored) == (79 if "delete" in change else 80)
    assert found.to_bytes() == BloomFilter.from_keys(stored, spec).to_bytes()


def damage_filter(table: HudiTable) -> str:
    """Spoil the filter of the one file of a table, whose footer has no check sum, as with another
    engine's. Returns its path."""
    (item,) = slices(table)
    assert item.base is not None
    data = without_check_sums(table.context.storage.get(item.base.path))
    at = data.index(BLOOM.encode()) + len(BLOOM) + 8
    table.context.storage.put(item.base.path, data[:at] + b"*" + data[at + 1 :])
    return item.base.path


def test_a_damaged_filter_is_told_with_its_file() -> None:
    damaged = filled(1, 10)
    path = damage_filter(damaged)
    with pytest.raises(CorruptTableError, match="bloom filter") as caught:
        damaged.upsert(rows((key_of(1), "x", 1)), options=SMALL)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("index", "options", "named"),
    [
        ("Bloom", {"hoodie.parquet.bloom.filter.enabled": "false"}, "bloom.filter.enabled"),
        ("GlobalBloom", {"hoodie.bloom.index.update.partition.path": "false"}, "update.partition.path"),
        ("GlobalSimple", {"hoodie.simple.index.update.partition.path": "false"}, "update.partition.path"),
        ("Bloom", {"hoodie.bloom.index.use.treebased.filter": "maybe"}, "treebased"),
        ("Bloom", {"hoodie.index.type": "SIMPLE"}, "contradicts"),
    ],
)
def test_options_that_the_index_cannot_follow_are_refused_before_anything_is_written(
    index: str, options: dict[str, str], named: str
) -> None:
    table = new_table(index=index)
    with pytest.raises(InvalidOptionError, match=named):
        table.upsert(rows(("a", "x", 1)), options=options)
    assert contents(table) == []


def test_whether_ranges_are_compared_changes_no_result() -> None:
    table = filled(2, 20)
    options = {"hoodie.bloom.index.prune.by.ranges": "false", **SMALL}
    table.upsert(rows(*((key_of(n), "x", -n) for n in range(50))), options=options)
    assert contents(table) == sorted((key_of(n), "x", -n) for n in range(50))


def test_the_index_is_stored_under_the_name_that_hudi_reads() -> None:
    for index, name in (("Bloom", "BLOOM"), ("GlobalBloom", "GLOBAL_BLOOM")):
        properties = new_table(index=index).context.storage.get(".hoodie/hoodie.properties").decode()
        assert f"hoodie.index.type={name}\n" in properties


def test_a_bloom_index_asks_for_a_snapshot() -> None:
    with pytest.raises(InvariantError):
        BloomIndex().route(asked(["a"]))
