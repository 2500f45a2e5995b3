"""Bad requests: each ends in one clear message, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import (
    CorruptTableError,
    HudiError,
    InvalidDataError,
    InvalidOptionError,
    InvalidRequestError,
    InvalidSchemaError,
    UnsupportedTableError,
)
from hudi_table.metadata.port import open_context
from hudi_table.model.names import PROPERTIES
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.properties import replace_properties
from tests.support.written import INDEXES, SCHEMA, contents, new_table, rows, slices

GOOD = rows(("a", "x", 1))
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}


def everything(table: HudiTable) -> dict[str, bytes]:
    storage = table.context.storage
    return {info.path: storage.get(info.path) for info in storage.list("")}


def without(column: str) -> pa.Table:
    return GOOD.drop_columns([column])


def nulled(column: str) -> pa.Table:
    kind = SCHEMA.field(column).type
    return GOOD.set_column(SCHEMA.get_field_index(column), column, pa.nulls(1, kind))


BAD_WRITES: dict[str, tuple[type[HudiError], str, Callable[[Any], object]]] = {
    "unknown option": (
        InvalidOptionError, "hoodie.parquet.max.file.size", lambda t: t.upsert(GOOD, options={"hoodie.parquet.max.filesize": "1"}),
    ),
    "option of a wrong kind": (
        InvalidOptionError, "'much' is not a whole number", lambda t: t.upsert(GOOD, options={"hoodie.parquet.max.file.size": "much"}),
    ),
    "codec that does not exist": (
        InvalidOptionError, "'brotli9'", lambda t: t.upsert(GOOD, options={"hoodie.parquet.compression.codec": "brotli9"}),
    ),
    "sort mode that does not exist": (
        InvalidOptionError, "'zigzag'", lambda t: t.write(GOOD, operation="bulk_insert", sort_mode="zigzag"),
    ),
    "unknown operation": (InvalidRequestError, "'merge'", lambda t: t.write(GOOD, operation="merge")),
    "missing record key column": (InvalidSchemaError, "'id', which is a record key", lambda t: t.upsert(without("id"))),
    "missing partition column": (InvalidSchemaError, "'city', which is a partition", lambda t: t.upsert(without("city"))),
    "missing ordering column": (InvalidSchemaError, "'ts', which is an ordering", lambda t: t.upsert(without("ts"))),
    "missing data column": (InvalidSchemaError, "'value'", lambda t: t.upsert(without("value"))),
    "column of another type": (
        InvalidSchemaError, "'value' is string in the data and int64 in the table",
        lambda t: t.upsert(GOOD.set_column(2, "value", pa.array(["1"]))),
    ),
    "column that cannot be held": (
        InvalidSchemaError, "'span'", lambda t: t.upsert(GOOD.append_column("span", pa.array([1], pa.duration("s")))),
    ),
    "null key": (InvalidDataError, "'id'", lambda t: t.upsert(nulled("id"))),
    "null ordering value": (InvalidDataError, "'ts' is null in 1 row:", lambda t: t.upsert(nulled("ts"))),
    "no rows at all": (InvalidRequestError, "needs rows", lambda t: t.upsert(None)),
    "rows that are no Arrow data": (InvalidRequestError, "list does not export Arrow data", lambda t: t.upsert([{"id": "a"}])),
    "partitions where they mean nothing": (
        InvalidRequestError, "delete_partition", lambda t: t.upsert(GOOD, partitions=["x"]),
    ),
    "dropping no partition": (InvalidRequestError, "partitions", lambda t: t.write(None, operation="delete_partition")),
    "dropping a partition that is not there": (
        InvalidRequestError, "there is no partition 'xx'; did you mean 'x'",
        lambda t: t.write(None, operation="delete_partition", partitions=["xx"]),
    ),
    "dropping a path that leaves the table": (
        InvalidRequestError, "..", lambda t: t.write(None, operation="delete_partition", partitions=["../x"]),
    ),
    "another index than the stored one": (
        InvalidOptionError, "hoodie.index.type=BUCKET contradicts", lambda t: t.upsert(GOOD, options=BUCKETS),
    ),
    "an index that is not to be had": (
        InvalidOptionError, "HBASE", lambda t: t.upsert(GOOD, options={"hoodie.index.type": "HBASE"}),
    ),
    "another record key": (
        InvalidOptionError, "stores 'id'", lambda t: t.upsert(GOOD, options={"hoodie.datasource.write.recordkey.field": "value"}),
    ),
    "another partitioning": (
        InvalidOptionError, "stores 'city'", lambda t: t.upsert(GOOD, options={"hoodie.datasource.write.partitionpath.field": "value"}),
    ),
    "another key generator": (
        InvalidOptionError, "SimpleKeyGenerator",
        lambda t: t.upsert(GOOD, options={"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}),
    ),
    "a payload of one's own": (
        UnsupportedTableError, "MyPayload", lambda t: t.upsert(GOOD, options={"hoodie.datasource.write.payload.class": "com.x.MyPayload"}),
    ),
    "duplicates left in": (
        InvalidOptionError, "combine", lambda t: t.upsert(GOOD, options={"hoodie.combine.before.upsert": "false"}),
    ),
    "no memory": (InvalidOptionError, "max_memory is 0", lambda t: t.upsert(GOOD, max_memory=0)),
    "a table of the past": (
        InvalidRequestError, "past", lambda t: HudiTable(t.context, "20260101000000000").upsert(GOOD),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_WRITES)
def test_a_bad_write_is_refused_and_leaves_nothing_behind(name: str) -> None:
    table = new_table(ordering_fields="ts")
    table.insert(GOOD)
    before = everything(table)
    kind, message, write = BAD_WRITES[name]
    with pytest.raises(kind) as caught:
        write(table)
    assert type(caught.value) is kind
    assert message in str(caught.value)
    assert everything(table) == before


def test_bad_rows_late_in_a_long_stream_leave_nothing_behind() -> None:
    table = new_table(ordering_fields="ts")
    good = rows(*((f"k{i}", "x", i) for i in range(100)))
    batches = [*good.to_batches(max_chunksize=10), *nulled("id").to_batches()]
    before = everything(table)
    with pytest.raises(InvalidDataError):
        table.upsert(pa.RecordBatchReader.from_batches(good.schema, batches))
    assert everything(table) == before


BAD_TABLES: dict[str, tuple[type[HudiError], str, dict[str, Any]]] = {
    "missing key column": (InvalidSchemaError, "'key'", {"record_key": "key"}),
    "missing partition column": (InvalidSchemaError, "'day'", {"record_key": "id", "partition_by": "day"}),
    "missing ordering column": (InvalidSchemaError, "'when'", {"record_key": "id", "ordering_fields": "when"}),
    "event time without ordering": (InvalidRequestError, "ordering", {"record_key": "id", "merge_mode": "EventTime"}),
    "several ordering fields": (UnsupportedTableError, "ts, value", {"record_key": "id", "ordering_fields": "ts,value", "version": 6}),
    "unknown index": (InvalidRequestError, "'Hash'", {"record_key": "id", "index": "Hash"}),
    "buckets without a number": (InvalidRequestError, "buckets", {"record_key": "id", "index": {"type": "Bucket"}}),
    "buckets of a simple index": (InvalidRequestError, "buckets", {"record_key": "id", "index": {"type": "Simple", "buckets": 4}}),
    "hash field that is no key": (
        InvalidOptionError, "'city'", {"record_key": "id", "index": {"type": "Bucket", "buckets": 4, "hashFields": ["city"]}},
    ),
    "unknown option": (InvalidOptionError, "'hoodie.nonsense'", {"record_key": "id", "options": {"hoodie.nonsense": "1"}}),
    "strange value for if_exists": (InvalidOptionError, "'maybe'", {"record_key": "id", "if_exists": "maybe"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_refused_and_nothing_is_created(name: str) -> None:
    kind, message, arguments = BAD_TABLES[name]
    uri = f"memory://bad-{name.replace(' ', '-')}/t"
    with pytest.raises(kind) as caught:
        create_table(uri, SCHEMA, **arguments)
    assert message in str(caught.value)
    assert open_storage(uri).list("") == []


def test_a_location_that_holds_something_else_is_left_alone() -> None:
    storage = open_storage("memory://holds-something/t")
    storage.put("notes/readme.txt", b"mine")
    with pytest.raises(InvalidRequestError, match="holds something else than a Hudi table"):
        create_table("memory://holds-something/t", SCHEMA, record_key="id")
    assert [info.path for info in storage.list("")] == ["notes/readme.txt"]


def test_an_existing_table_is_opened_only_on_request_and_only_as_the_same() -> None:
    table = new_table(index=INDEXES["bucket"], ordering_fields="ts")
    table.insert(GOOD)
    same: dict[str, Any] = {
        "record_key": "id",
        "partition_by": "city",
        "ordering_fields": "ts",
        "index": INDEXES["bucket"],
    }
    with pytest.raises(InvalidRequestError, match="already"):
        create_table(table.base_path, SCHEMA, **same)
    assert contents(create_table(table.base_path, SCHEMA, **same, if_exists="open")) == [("a", "x", 1)]
    changes: dict[str, Any] = {
        "recordKey id, not value": {"record_key": "value"},
        "partitionBy city, not nothing": {"partition_by": ()},
        "orderingFields ts, not value": {"ordering_fields": "value"},
        "index.buckets 3, not 4": {"index": {"type": "Bucket", "buckets": 4}},
        "mergeMode EventTime, not CommitTime": {"merge_mode": "CommitTime"},
    }
    for message, change in changes.items():
        with pytest.raises(InvalidRequestError, match=message):
            create_table(table.base_path, SCHEMA, **(same | change), if_exists="open")


FEATURES = {
    "hoodie.table.base.file.format": "ORC",
    "hoodie.datasource.write.drop.partition.columns": "true",
    "hoodie.partition.metafile.use.base.format": "true",
    "hoodie.table.precombine.field": "ts,value",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.FirstValueAvroPayload",
    "hoodie.record.merge.mode": "CUSTOM",
}


@pytest.mark.parametrize("key", FEATURES)
def test_a_table_with_a_feature_that_we_do_not_write_is_refused_by_name(key: str) -> None:
    table = new_table()
    table.insert(GOOD)
    replace_properties(table.context, {key: FEATURES[key]})
    before = everything(table)
    with pytest.raises(UnsupportedTableError, match="which this release does not write"):
        open_table(table.base_path).upsert(GOOD)
    assert everything(table) == before


def test_a_copy_on_write_table_with_a_consistent_bucket_index_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="is copy-on-write with a ConsistentBucket index"):
        new_table(index={"type": "ConsistentBucket", "buckets": 2})


def forget_index(table: HudiTable) -> HudiTable:
    """The same table as Hudi would have made it: nothing stored of the index."""
    keys = ("hoodie.index.type", "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field")
    replace_properties(table.context, dict.fromkeys(keys))
    return open_table(table.base_path)


def test_a_table_that_stores_no_index_is_written_only_with_the_one_that_its_files_have() -> None:
    made = new_table(index=INDEXES["bucket"])
    made.insert(rows(*((f"k{i}", "x", i) for i in range(30))))
    table = forget_index(made)
    before = everything(table)
    with pytest.raises(InvalidRequestError, match="stores no index"):
        table.upsert(GOOD)
    with pytest.raises(InvalidOptionError, match="file ids such as 0000000"):
        table.upsert(GOOD, options={"hoodie.index.type": "SIMPLE"})
    with pytest.raises(InvalidOptionError, match="put key"):
        table.upsert(GOOD, options=BUCKETS | {"hoodie.bucket.index.num.buckets": "5"})
    assert everything(table) == before
    table.upsert(GOOD, options=BUCKETS)
    assert len(contents(table)) == 31
    assert len(slices(table)) == 3


def test_two_file_groups_in_one_bucket_are_reported_with_both_names() -> None:
    table = new_table(index=INDEXES["bucket"])
    table.insert(GOOD)
    base = slices(table)[0].base
    assert base is not None
    storage = table.context.storage
    twin = base.path.replace(base.file_id, f"{base.file_id[:8]}-ffff-ffff-ffff-ffffffffffff-0")
    storage.put(twin, storage.get(base.path))
    with pytest.raises(CorruptTableError) as caught:
        table.upsert(GOOD)
    assert base.file_id in str(caught.value)
    assert "ffff-ffff" in str(caught.value)


def test_damaged_properties_are_reported_and_kept() -> None:
    table = new_table()
    storage = table.context.storage
    storage.put(PROPERTIES, b"\x00\x01 nothing of use")
    with pytest.raises(CorruptTableError, match=r"hoodie\.properties"):
        create_table(table.base_path, SCHEMA, record_key="id", if_exists="open")
    assert storage.get(PROPERTIES) == b"\x00\x01 nothing of use"


def test_a_damaged_base_file_stops_the_write_and_is_named() -> None:
    table = new_table(index=INDEXES["bucket"])
    table.insert(GOOD)
    base = slices(table)[0].base
    assert base is not None
    table.context.storage.put(base.path, b"PAR1 not any more")
    with pytest.raises(CorruptTableError, match=base.name):
        table.upsert(rows(("a", "x", 2)))
    assert slices(table)[0].base == base.__class__(base.path, base.partition, base.file_id, base.instant, 17)


def test_a_fresh_context_sees_what_another_refused_write_left() -> None:
    table = new_table()
    with pytest.raises(InvalidSchemaError):
        table.upsert(without("id"))
    assert open_context(table.context.storage).config == table.context.config
