"""The files that writes leave: sizes, packing, codecs, filters, key ranges, order, parts, metadata
tables dropped."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.codec.parquet import BaseFileFooter, read_footer
from hudi_table.metadata.lifecycle import MetadataDroppedWarning
from hudi_table.model.names import METADATA_TABLE
from hudi_table.table.timeline.properties import read_properties, replace_properties
from hudi_table.write.handles import base_file
from tests.support.unsealed import without_check_sums
from tests.support.written import INDEXES, SCHEMA, contents, last_commit, meta_rows, new_table, rows, slices

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def noise(count: int, *, prefix: str = "k", city: str = "x") -> pa.Table:
    """Rows whose keys and values do not compress, so that sizes can be foretold."""
    chance = random.Random(f"{prefix}{city}")
    names = ["".join(chance.choices(LETTERS, k=30)) for _ in range(count)]
    return rows(*((f"{prefix}{name}", city, chance.randrange(1 << 60)) for name in names))


def footers(table: HudiTable) -> list[BaseFileFooter]:
    found = []
    for item in slices(table):
        assert item.base is not None
        found.append(read_footer(pa.BufferReader(table.context.storage.get(item.base.path))))
    return found


def sizes(table: HudiTable) -> list[int]:
    return sorted(item.base.size for item in slices(table) if item.base)


def small(target: int, limit: int = 0) -> dict[str, str]:
    return {"hoodie.parquet.max.file.size": str(target), "hoodie.parquet.small.file.limit": str(limit)}


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert", "insert_overwrite"])
def test_new_files_end_near_the_target_size(operation) -> None:
    table = new_table()
    table.write(noise(10_000), operation=operation, options=small(100_000))
    assert len(contents(table)) == 10_000
    assert len(sizes(table)) > 3
    assert max(sizes(table)) < 300_000
    assert len({item.file_id for item in slices(table)}) == len(slices(table))


def test_a_file_that_grows_past_the_target_rolls_over_to_another_group() -> None:
    # Rows compress to nothing in the first commit, so that the second expects them to be as small.
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    table = new_table(partition_by=(), schema=schema)
    count = 60_000
    plain = pa.table({"id": [f"a{i}" for i in range(count)], "text": ["x" * 20] * count})
    table.write(plain, operation="bulk_insert", options={"hoodie.parquet.compression.codec": "uncompressed"})
    chance = random.Random(1)
    texts = ["".join(chance.choices(LETTERS, k=600)) for _ in range(2_000)]
    data = pa.table({"id": [f"k{i}" for i in range(2_000)], "text": texts})
    before = len(slices(table))
    options = small(200_000) | {"hoodie.lakeops.row.group.rows": "100"}
    result = table.write(data, operation="bulk_insert", options=options)
    assert result.files_written == len(slices(table)) - before > 2
    assert max(stat.file_size_in_bytes for stat in last_commit(table).stats) < 400_000
    assert len({stat.path.split("_")[1] for stat in last_commit(table).stats}) == 1, "one task wrote all"
    assert table.scan().count() == count + 2_000
    assert sum(stat.num_inserts for stat in last_commit(table).stats) == 2_000


def test_new_rows_go_into_small_files_of_their_partition() -> None:
    table = new_table()
    table.insert(noise(100, prefix="a"))
    table.insert(noise(100, prefix="b", city="y"))
    before = {item.file_id for item in slices(table)}
    result = table.insert(noise(50, prefix="c"))
    assert {item.file_id for item in slices(table)} == before
    assert (result.rows_inserted, result.rows_written, result.partitions) == (50, 150, ("x",))
    assert last_commit(table).stats[0].prev_commit != "null"


def test_a_file_above_the_limit_takes_no_new_rows() -> None:
    table = new_table()
    table.insert(noise(100, prefix="a"))
    table.insert(noise(10, prefix="b"), options=small(1_000_000, limit=10))
    assert len(slices(table)) == 2


def test_a_bulk_insert_packs_nothing() -> None:
    table = new_table()
    table.insert(noise(100, prefix="a"))
    table.write(noise(10, prefix="b"), operation="bulk_insert")
    assert len(slices(table)) == 2


@pytest.mark.parametrize("by_option", [True, False])
@pytest.mark.parametrize("mode", ["global", "partition"])
def test_a_sorted_bulk_insert_orders_the_rows_of_every_file(mode, by_option) -> None:
    table = new_table()
    asked = {"hoodie.bulkinsert.sort.mode": mode.upper()} if by_option else {}
    argument = {} if by_option else {"sort_mode": mode}
    table.write(noise(5_000), operation="bulk_insert", options=small(60_000) | asked, **argument)
    assert len(slices(table)) > 2
    for item in slices(table):
        assert item.base is not None
        keys = pq.read_table(pa.BufferReader(table.context.storage.get(item.base.path)))[
            "_hoodie_record_key"
        ].to_pylist()
        assert keys == sorted(keys)
    if mode == "global":
        ranges = sorted((f.min_key, f.max_key) for f in footers(table) if f.min_key and f.max_key)
        assert all(left[1] < right[0] for left, right in pairwise(ranges))


def test_footers_tell_the_range_of_keys() -> None:
    table = new_table()
    table.insert(rows(("b", "x", 1), ("d", "x", 1), ("a", "x", 1)))
    assert [(f.min_key, f.max_key, f.rows) for f in footers(table)] == [("a", "d", 3)]
    table.delete(pa.table({"id": ["a"], "city": ["x"]}))
    assert [(f.min_key, f.max_key, f.rows) for f in footers(table)] == [("b", "d", 2)]


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
def test_a_bloom_filter_is_written_on_request_and_holds_every_key(kind: str) -> None:
    options = {
        "hoodie.parquet.bloom.filter.enabled": "true",
        "hoodie.bloom.index.filter.type": kind,
        "hoodie.index.bloom.num_entries": "500",
    }
    table = new_table()
    table.insert(noise(200), options=options)
    table.upsert(rows(("other", "x", 1)), options=options)
    (footer,) = footers(table)
    assert footer.bloom_type == kind
    keys = pa.array(list(meta_rows(table)))
    bloom = footer.bloom()
    assert bloom is not None
    assert bloom.might_contain(keys).all()
    assert not bloom.might_contain(pa.array(["never written"])).any()


def test_a_filter_of_an_unknown_type_gives_way_to_one_of_ours() -> None:
    options = {"hoodie.parquet.bloom.filter.enabled": "true"}
    table = new_table()
    table.insert(noise(20), options=options)
    (item,) = slices(table)
    assert item.base is not None
    data = without_check_sums(table.context.storage.get(item.base.path))
    assert data.count(b"DYNAMIC_V0") == 1
    table.context.storage.put(item.base.path, data.replace(b"DYNAMIC_V0", b"DYNAMIC_V9"))
    table.upsert(rows(("other", "x", 1)), options=options)
    (footer,) = footers(table)
    bloom = footer.bloom()
    assert bloom is not None
    assert bloom.might_contain(pa.array(list(meta_rows(table)))).all()


def test_no_bloom_filter_is_written_unless_asked_for() -> None:
    table = new_table()
    table.insert(noise(10))
    assert footers(table)[0].bloom_text is None


@pytest.mark.parametrize(
    ("name", "written"), [("gzip", "GZIP"), ("SNAPPY", "SNAPPY"), ("uncompressed", "UNCOMPRESSED"), (None, "ZSTD")]
)
def test_files_have_the_codec_that_the_options_name(name: str | None, written: str) -> None:
    table = new_table()
    table.insert(noise(10), options={} if name is None else {"hoodie.parquet.compression.codec": name})
    metadata = footers(table)[0].metadata
    assert metadata is not None
    assert metadata.row_group(0).column(0).compression == written


@pytest.mark.parametrize("index", list(INDEXES))
def test_a_memory_budget_of_next_to_nothing_changes_no_row(index: str) -> None:
    roomy, tight = (new_table(index=INDEXES[index], ordering_fields="ts") for _ in range(2))
    chance = random.Random(2)
    for step in range(4):
        drawn = [
            (
                f"k{chance.randrange(300)}",
                chance.choice("xyz"),
                chance.randrange(100),
                chance.randrange(5),
                chance.random() < 0.1,
            )
            for _ in range(400)
        ]
        for table, budget in ((roomy, 1 << 30), (tight, 2_000)):
            result = table.write(rows(*drawn), operation="upsert", max_memory=budget)
            table.write(rows((f"new{step}", "x", 1)), operation="bulk_insert", sort_mode="partition", max_memory=budget)
            assert result.rows_written > 0
        assert contents(roomy) == contents(tight)


def test_rows_come_from_a_stream_batch_by_batch() -> None:
    taken: list[int] = []

    def batches() -> Any:
        for number in range(50):
            taken.append(number)
            yield rows((f"k{number}", "x", number)).to_batches()[0]

    table = new_table()
    table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    assert len(taken) == 50
    assert len(contents(table)) == 50


def test_a_metadata_table_that_is_not_kept_is_dropped_before_the_first_write() -> None:
    table = new_table()
    storage = table.context.storage
    replace_properties(table.context, {"hoodie.table.metadata.partitions": "files,partition_stats"})
    storage.put(f"{METADATA_TABLE}/.hoodie/hoodie.properties", b"hoodie.table.name=t_metadata")
    storage.put(f"{METADATA_TABLE}/files/files-0000-0_0-0-0_1.hfile", b"stale")
    with pytest.warns(MetadataDroppedWarning, match="partition_stats"):
        table.insert(noise(3))
    assert read_properties(storage, table.context.clock)["hoodie.table.metadata.partitions"] == ""
    assert storage.list(METADATA_TABLE) == []


def test_a_metadata_table_that_another_writer_spoilt_meanwhile_is_dropped_too() -> None:
    table = new_table()
    table.insert(noise(3, prefix="a"))
    other = open_table(table.base_path)
    replace_properties(other.context, {"hoodie.table.metadata.partitions": "files"})
    table.context.storage.put(
        f"{METADATA_TABLE}/.hoodie/hoodie.properties", b"hoodie.table.name=t_metadata\nhoodie.table.version=6"
    )
    with pytest.warns(MetadataDroppedWarning, match="files is named as ready and is half-built"):
        table.insert(noise(3, prefix="b"))
    assert read_properties(table.context.storage, table.context.clock)["hoodie.table.metadata.partitions"] == ""
    assert table.context.storage.list(METADATA_TABLE) == []


@pytest.mark.parametrize("index", ["bucket", "simple"])
def test_columns_of_few_values_keep_every_value_through_rewrites(index: str) -> None:
    schema = pa.schema([("id", pa.string()), ("carrier", pa.string()), ("kind", pa.string()), ("note", pa.string())])
    table = new_table(
        index=INDEXES[index], schema=schema, partition_by=(), ordering_fields="kind", merge_mode="EventTime"
    )

    def row(number: int, step: int) -> tuple[str, str | None, str, str]:
        carrier = None if number % 5 == 0 else f"carrier {number % 3} {step}"
        return f"k{number}", carrier, f"kind {step}", f"note {number} {step}"

    expected: dict[str, tuple[str, str | None, str, str]] = {}
    for step, numbers in enumerate((range(3_000), range(0, 3_000, 7), range(2_900, 3_100), range(0, 3_100, 2))):
        drawn = [row(number, step) for number in numbers]
        expected |= {item[0]: item for item in drawn}
        columns = [pa.array(column, pa.string()) for column in zip(*drawn, strict=True)]
        table.upsert(pa.Table.from_arrays(columns, schema=schema))
    found = table.scan().to_arrow()
    assert {item["id"]: tuple(item.values()) for item in found.to_pylist()} == expected
    group = footers(table)[0].metadata.row_group(0)  # type: ignore[union-attr]
    dictionaries = {
        group.column(i).path_in_schema: group.column(i).has_dictionary_page for i in range(group.num_columns)
    }
    assert dictionaries["carrier"]
    assert not dictionaries["note"]


def test_wide_rows_are_rewritten_in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_file, "ROW_GROUP_BYTES_MAX", 100_000)
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    table = new_table(schema=schema, partition_by=())
    chance = random.Random(3)
    wide = [("k" + str(number), "".join(chance.choices(LETTERS, k=5_000))) for number in range(100)]
    table.insert(pa.table({"id": [row[0] for row in wide], "text": [row[1] for row in wide]}))
    table.upsert(pa.table({"id": ["k7", "new"], "text": ["seven", "n"]}))
    found = {row["id"]: row["text"] for row in table.scan().to_arrow().to_pylist()}
    assert found == dict(wide) | {"k7": "seven", "new": "n"}
    assert len(footers(table)[0].row_groups) > 3
