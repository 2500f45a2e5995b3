"""What options say of a table: at its creation they act, later they must agree with what it
stores."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import HudiError, InvalidOptionError, InvalidRequestError, UnsupportedTableError
from hudi_table.model.options.write_options import COLON_RULE
from hudi_table.model.service.services import ServiceRequest
from hudi_table.model.table.config import (
    IndexSpec,
    IndexType,
    MergeMode,
    PartitionField,
    PartitionType,
    TableConfig,
    TableType,
)
from hudi_table.model.table.properties import table_payload
from hudi_table.write.checks.table_arguments import partition_fields_of
from hudi_table.write.checks.table_options import refuse_contradictions
from tests.support.written import SCHEMA, contents, new_table, rows, slices

WRITE = "hoodie.datasource.write."
LIKE_HUDI = {
    "hoodie.table.name": "flights",
    "hoodie.database.name": "lake",
    WRITE + "table.type": "MERGE_ON_READ",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "city",
    WRITE + "precombine.field": "ts",
    WRITE + "hive_style_partitioning": "true",
    WRITE + "partitionpath.urlencode": "true",
    WRITE + "keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "4",
    "hoodie.bucket.index.min.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.write.table.version": "6",
}


def made(options: dict[str, str], **more: Any) -> HudiTable:
    return create_table(f"memory://{uuid.uuid4().hex}/t", SCHEMA, options=options, **more)


def config_of(options: dict[str, str], **more: Any) -> TableConfig:
    table = made(options, **more)
    # What was stored counts, not what the call kept in memory.
    return open_table(table.base_path).context.config


def test_a_table_is_created_by_the_options_that_hudis_writers_give() -> None:
    config = config_of(LIKE_HUDI)
    assert (config.name, config.database, config.type) == ("flights", "lake", TableType.MERGE_ON_READ)
    assert (config.record_key, config.partition_fields, config.ordering_fields) == (("id",), ("city",), ("ts",))
    assert (config.hive_style, config.url_encode, config.merge_mode) == (True, True, MergeMode.EVENT_TIME)
    assert config.index == IndexSpec(IndexType.CONSISTENT_BUCKET, 4, ("id",), buckets_min=2, buckets_max=8)


def test_rules_of_buckets_by_partition_are_stored() -> None:
    options = {
        "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4", "hoodie.bucket.index.partition.expressions": "x.*,2",
    }  # fmt: skip
    index = config_of(options, record_key="id", partition_by="city").index
    assert index is not None
    assert index.partition_buckets == (("x.*", 2),)


@pytest.mark.parametrize(
    ("options", "mode", "payload"),
    [
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, MergeMode.COMMIT_TIME, "OverwriteWithLatestAvroPayload"),
        ({"hoodie.write.record.merge.mode": "event_time_ordering"}, MergeMode.EVENT_TIME, "DefaultHoodieRecordPayload"),
        ({WRITE + "payload.class": "PartialUpdateAvroPayload"}, MergeMode.EVENT_TIME, "PartialUpdateAvroPayload"),
    ],
)
def test_merging_is_told_by_mode_or_class(options: dict[str, str], mode: MergeMode, payload: str) -> None:
    config = config_of(options, record_key="id", ordering_fields="ts", version=6)
    assert config.merge_mode is mode
    assert table_payload(config).class_name.endswith(payload)


def test_a_table_without_meta_columns_is_created_and_written() -> None:
    table = made({"hoodie.populate.meta.fields": "false"}, record_key="id")
    assert not table.context.config.populate_meta_fields
    table.upsert(rows(("a", "x", 1)))
    table.upsert(rows(("a", "x", 2)))
    assert contents(table) == [("a", "x", 2)]


def test_a_path_of_a_timestamp_is_told_by_the_options_of_its_key_generator() -> None:
    timed = "hoodie.keygen.timebased."
    options = {
        WRITE + "keygenerator.type": "TIMESTAMP",
        WRITE + "partitionpath.field": "city",
        timed + "timestamp.type": "DATE_STRING",
        timed + "input.dateformat": "yyyy-MM-dd HH",
        timed + "input.timezone": "UTC",
        timed + "output.dateformat": "yyyy/MM/dd",
        timed + "output.timezone": "Asia/Tokyo",
    }
    table = made(options, record_key="id")
    table.upsert(rows(("a", "2026-01-31 20", 1)))
    assert table.context.config.partition_by[0].type is PartitionType.TIMESTAMP
    assert [item.partition for item in slices(table)] == ["2026/02/01"]


def test_one_zone_and_a_unit_of_scalars_are_told_too() -> None:
    timed = "hoodie.deltastreamer.keygen.timebased."
    options = {
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        WRITE + "partitionpath.field": "value",
        timed + "timestamp.type": "SCALAR",
        timed + "timestamp.scalar.time.unit": "days",
        timed + "output.dateformat": "yyyy-MM-dd",
        timed + "timezone": "GMT",
    }
    table = made(options, record_key="id")
    table.upsert(rows(("a", "x", 1)))
    assert [item.partition for item in slices(table)] == ["1970-01-02"]


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        ({WRITE + "table.type": "MERGE_ON_READ"}, {"type": "CopyOnWrite"}, "type is 'CopyOnWrite', and the options say 'MergeOnRead'"),
        ({WRITE + "recordkey.field": "city"}, {}, "record_key is 'id'"),
        ({WRITE + "hive_style_partitioning": "true"}, {"hive_style": False}, "hive_style is False"),
        ({"hoodie.index.type": "BLOOM"}, {"index": "Simple"}, "index is"),
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, {"merge_mode": "EventTime", "ordering_fields": "ts"}, "merge_mode is 'EventTime'"),
    ],
)  # fmt: skip
def test_an_argument_and_an_option_that_differ_are_refused(
    options: dict[str, str], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        made(options, record_key="id", **more)
    assert message in str(caught.value)


def test_an_argument_and_an_option_that_agree_are_one() -> None:
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4", WRITE + "recordkey.field": "id"}
    index = config_of(options, record_key=["id"], type="merge_on_read", index={"type": "Bucket", "buckets": 4}).index
    assert index == IndexSpec(IndexType.BUCKET, 4)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({WRITE + "keygenerator.class": "ComplexKeyGenerator"}, InvalidOptionError, "asks for ComplexKeyGenerator, and the table's fields for Nonpart"),
        ({"hoodie.index.type": "BUCKET"}, InvalidOptionError, "needs hoodie.bucket.index.num.buckets"),
        ({"hoodie.write.table.version": "7"}, InvalidOptionError, "hoodie.write.table.version"),
        ({"hoodie.timeline.layout.version": "2"}, InvalidOptionError, "give hoodie.write.table.version"),
        ({WRITE + "precombine.field": "ts,value", "hoodie.write.table.version": "6"}, UnsupportedTableError, "several ordering fields (ts, value)"),
        ({WRITE + "table.type": "MERGE_ON_WRITE"}, InvalidOptionError, "'MERGE_ON_WRITE' is none of COPY_ON_WRITE, MERGE_ON_READ"),
        ({WRITE + "drop.partition.columns": "true"}, InvalidOptionError, "partition columns are always stored"),
    ],
)  # fmt: skip
def test_what_cannot_be_created_is_refused(options: dict[str, str], error: type[HudiError], message: str) -> None:
    with pytest.raises(error) as caught:
        made(options, record_key="id")
    assert message in str(caught.value)


def test_without_a_record_key_there_is_no_table() -> None:
    with pytest.raises(InvalidRequestError, match="needs a record key"):
        made({})


OTHER = {
    "hoodie.table.name": "other",
    "hoodie.database.name": "other",
    WRITE + "table.type": "COPY_ON_WRITE",
    WRITE + "recordkey.field": "city",
    WRITE + "partitionpath.field": "",
    WRITE + "precombine.field": "value",
    WRITE + "hive_style_partitioning": "false",
    WRITE + "partitionpath.urlencode": "false",
    WRITE + "keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    WRITE + "keygenerator.type": "NON_PARTITION",
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    WRITE + "payload.class": "PartialUpdateAvroPayload",
    "hoodie.populate.meta.fields": "false",
    "hoodie.index.type": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "5",
    "hoodie.lakeops.merger": "mine",
    "hoodie.lakeops.bucket.colon.rule": "1.x",
    "hoodie.lakeops.txn.quarantine.seconds": "7200",
    "hoodie.lakeops.txn.suspect.seconds": "60",
}


@pytest.fixture(scope="module")
def stored() -> HudiTable:
    table = made(LIKE_HUDI)
    table.upsert(rows(("a", "x", 1)))
    return table


@pytest.mark.parametrize("key", OTHER)
def test_options_that_contradict_the_table_are_refused(stored: HudiTable, key: str) -> None:
    options = {key: OTHER[key]} | ({"hoodie.index.type": "BUCKET"} if "buckets" in key else {})
    with pytest.raises(InvalidOptionError, match=r"contradicts|and the table's fields for"):
        stored.upsert(
            rows(("a", "x", 2)),
            options=options | ({"hoodie.index.bucket.engine": "CONSISTENT_HASHING"} if "buckets" in key else {}),
        )
    assert contents(stored) == [("a", "x", 1)]


def test_options_of_a_partition_by_time_are_refused_where_there_is_none() -> None:
    """They were taken without a word."""
    option = {"hoodie.keygen.timebased.output.dateformat": "yyyy"}
    with pytest.raises(InvalidOptionError, match="is of a partition by time, and the table has none"):
        made(option, record_key="id")
    with pytest.raises(InvalidOptionError, match="is of a partition by time, and the table has none"):
        new_table().upsert(rows(("a", "x", 1)), options=option)


def test_a_database_that_the_table_does_not_store_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"database\.name=lake contradicts the table, which stores ''"):
        new_table().upsert(rows(("a", "x", 1)), options={"hoodie.database.name": "lake"})


def test_times_and_rules_that_the_table_has_may_be_given_again() -> None:
    table = new_table()
    same = {"hoodie.lakeops.txn.quarantine.seconds": "3600.0", "hoodie.lakeops.bucket.colon.rule": "0.15"}
    table.upsert(rows(("a", "x", 1)), options=same)
    assert contents(table) == [("a", "x", 1)]


def test_a_rule_for_colons_is_told_by_the_option_where_the_table_stores_none() -> None:
    made = new_table(index={"type": "Bucket", "buckets": 4}).context.config
    config = replace(made, extra={key: value for key, value in made.extra.items() if key != COLON_RULE})
    assert COLON_RULE not in config.extra
    refuse_contradictions(config, {COLON_RULE: "1.x"})


def test_whether_keys_move_is_an_option_of_record_indexes() -> None:
    with pytest.raises(InvalidOptionError, match="is of a record index"):
        made({"hoodie.record.index.update.partition.path": "true"}, record_key="id")


def test_options_that_say_what_the_table_is_change_nothing() -> None:
    table = made(LIKE_HUDI)
    table.upsert(rows(("a", "x", 1)), options=LIKE_HUDI)
    assert contents(table) == [("a", "x", 1)]


@pytest.mark.parametrize("key", ["hoodie.write.lock.provider", "hoodie.write.concurrency.mode"])
def test_a_service_is_asked_by_the_same_gate(key: str) -> None:
    with pytest.raises(InvalidOptionError, match=key):
        ServiceRequest({key: "other"})
    with pytest.raises(InvalidOptionError, match=key):
        new_table().archive({key: "other"})


def test_types_of_columns_that_options_name_are_those_of_the_schema() -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.string())])
    table = create_table(f"memory://{uuid.uuid4().hex}/t", schema, options={WRITE + "recordkey.field": "k"})
    table.upsert(pa.table({"k": [1, 1], "v": ["a", "b"]}, schema=schema))
    assert table.scan(["k", "v"]).to_arrow().to_pylist() == [{"k": 1, "v": "b"}]


@pytest.mark.parametrize("call", ["archive", "clean", "compact", "plan_clean", "expired_partitions"])
def test_a_service_takes_no_options_of_another_table(stored: HudiTable, call: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"recordkey\.field=city contradicts the table, which stores 'id'"):
        getattr(stored, call)({WRITE + "recordkey.field": "city"})


def test_one_partition_field_needs_no_list() -> None:
    by_month = {"field": "at", "type": "Timestamp", "format": "yyyy/MM"}
    assert partition_fields_of(by_month) == partition_fields_of([by_month])
    assert partition_fields_of(PartitionField("city")) == partition_fields_of("city") == (PartitionField("city"),)


BUCKETS = {
    "hoodie.bucket.index.num.buckets": "7",
    "hoodie.bucket.index.hash.field": "city",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.partition.expressions": "x.*,3",
}


@pytest.mark.parametrize("key", BUCKETS)
def test_buckets_that_no_index_has_are_refused(key: str) -> None:
    """They were taken without a word, and the table had the default index."""
    option = {key: BUCKETS[key]}
    with pytest.raises(InvalidOptionError, match=f"{key} is of a bucket index, and the table's is Simple"):
        made(option, record_key="id")
    with pytest.raises(InvalidOptionError, match=f"{key} is of a bucket index, and the table's is Bloom"):
        made(option | {"hoodie.index.type": "BLOOM"}, record_key="id")
    table = new_table(index="Simple")
    with pytest.raises(InvalidOptionError, match=f"{key} is of a bucket index, and the table's is Simple"):
        table.upsert(rows(("a", "x", 1)), options=option)


@pytest.mark.parametrize("key", BUCKETS)
def test_buckets_contradict_a_table_also_where_no_option_names_its_index(key: str) -> None:
    index = {"type": "Bucket", "buckets": 2, "hashFields": ["id"]}
    with pytest.raises(InvalidRequestError, match=r"index is .* and the options say"):
        made({key: BUCKETS[key]}, record_key=["id", "city"], index=index)
    table = made({}, record_key=["id", "city"], index=index)
    with pytest.raises(InvalidOptionError, match=f"{key}=.* contradicts the table"):
        table.upsert(SCHEMA.empty_table(), options={key: BUCKETS[key]})


def test_buckets_that_agree_with_an_argument_or_the_table_change_nothing() -> None:
    same = {"hoodie.bucket.index.num.buckets": "2", "hoodie.index.bucket.engine": "SIMPLE"}
    table = made(same, record_key="id", index={"type": "Bucket", "buckets": 2})
    table.upsert(SCHEMA.empty_table(), options=same)
    assert table.context.config.index == IndexSpec(IndexType.BUCKET, 2)


@pytest.mark.parametrize(
    "option",
    [{"hoodie.table.cdc.enabled": "true"}, {"hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY"}],
    ids=["enabled", "mode"],
)
def test_a_write_or_service_that_asks_for_change_logs_contradicts_a_table_without(option: dict[str, str]) -> None:
    """Their readers would wait for changes that nobody logs."""
    table = new_table()
    with pytest.raises(InvalidOptionError, match=r"cdc.* contradicts the table"):
        table.upsert(rows(("a", "x", 1)), options=option)
    with pytest.raises(InvalidOptionError, match=r"cdc.* contradicts the table"):
        table.clean(option)


CDC = "hoodie.table.cdc."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({f"{CDC}supplemental.logging.mode": "op_key_only"}, f"give {CDC}enabled=true with it"),
        (
            {f"{CDC}supplemental.logging.mode": "op_key_only", f"{CDC}enabled": "false"},
            f"give {CDC}enabled=true with it",
        ),
        ({"hoodie.lakeops.index.host": "a"}, "is of a custom index, and the table's is Simple"),
    ],
)
def test_a_creation_refuses_what_would_do_nothing(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        made(options, record_key="id")
    assert made({f"{CDC}supplemental.logging.mode": "DATA_BEFORE_AFTER"}, record_key="id").context.config.cdc is None


def test_a_timeline_is_kept_in_utc_and_an_option_that_says_otherwise_than_the_table_is_refused() -> None:
    zone = "hoodie.table.timeline.timezone"
    table = made({zone: "utc"}, record_key="id")
    with pytest.raises(InvalidOptionError, match="keeps its timeline in UTC"):
        made({zone: "LOCAL"}, record_key="id")
    table.upsert(SCHEMA.empty_table(), options={zone: "UTC"})
    with pytest.raises(InvalidOptionError, match=f"{zone}=LOCAL contradicts the table"):
        table.upsert(SCHEMA.empty_table(), options={zone: "LOCAL"})


@pytest.mark.parametrize(
    "other",
    [
        {"name": "other"}, {"database": "db"}, {"hive_style": True}, {"url_encode": True},
        {"options": {"hoodie.datasource.write.hive_style_partitioning": "true"}},
        {"options": {"hoodie.populate.meta.fields": "false"}},
        {"options": {f"{CDC}enabled": "true"}},
        {"options": {"hoodie.lakeops.txn.quarantine.seconds": "100"}},
    ],
)  # fmt: skip
def test_a_table_that_is_opened_instead_of_made_has_what_is_asked_for(other: dict[str, Any]) -> None:
    table = made({}, record_key="id")
    same: dict[str, Any] = {
        "name": table.context.config.name,
        "hive_style": False,
        "options": {f"{CDC}enabled": "false"},
    }
    assert create_table(table.base_path, SCHEMA, record_key="id", if_exists="open", **same).base_path == table.base_path
    with pytest.raises(InvalidRequestError):
        create_table(table.base_path, SCHEMA, record_key="id", if_exists="open", **other)


def test_a_function_that_an_argument_and_an_option_name_differently_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="merger=one contradicts the 'two'"):
        made({"hoodie.lakeops.merger": "one"}, record_key="id", merger="two")


@pytest.mark.parametrize("role", ["record_key", "partition_by"])
def test_a_field_that_is_named_twice_is_refused(role: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"{role} names 'id' twice"):
        made({}, **{"record_key": "id", role: ["id", "id"]})
