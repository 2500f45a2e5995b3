"""Values that are of no use are refused by the one gate, whoever would act on them, before anything
is written; and what a creation does not store is told."""

from __future__ import annotations

import uuid
import warnings
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from hudi_table.api import create_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.model.options.known import LEVELS, Fate, IgnoredOptionWarning, check_options, known_options
from hudi_table.model.options.values import may_be_blank
from hudi_table.model.options.write_options import METADATA_INDEXES
from hudi_table.model.service.services import ServiceRequest
from hudi_table.model.timeline.instants import earlier
from hudi_table.services.cleaning.policy import CleanOptions, earliest_retained
from hudi_table.table.timeline.active import load_timeline
from hudi_table.write.checks.table_options import refuse_contradictions, table_options
from tests.support.written import SCHEMA, contents, new_table, rows

ROWS = rows(("a", "x", 1))
PLAN = "hoodie.clustering.plan.strategy."
LEVEL, CODEC = "hoodie.lakeops.parquet.compression.level", "hoodie.parquet.compression.codec"
USELESS = {
    PLAN + "class": ("org.example.Mine", "RecentDays"),
    PLAN + "partition.regex.pattern": ("(", "regular expression"),
    "hoodie.clustering.execution.strategy.class": ("Mine", "SingleFileSort"),
    "hoodie.clustering.updates.strategy": ("Mine", "AllowUpdate"),
    "hoodie.compaction.strategy": ("UnBounded,Mine", "LogFileSizeBased"),
    "hoodie.compaction.partition.path.regex": ("[", "regular expression"),
    "hoodie.partition.ttl.strategy.class": ("Mine", "KeepByCreationTime"),
    "hoodie.partition.ttl.strategy.days.retain": ("0", "from 1"),
    "hoodie.keygen.timebased.timezone": ("Mars/Base", "Europe/Berlin"),
    "hoodie.keygen.timebased.input.timezone": ("GMT+x", "Europe/Berlin"),
    "hoodie.deltastreamer.keygen.timebased.output.timezone": ("Mars", "Europe/Berlin"),
    "hoodie.lakeops.indexing.partitions": ("files,secrets", "column_stats"),
    "hoodie.metadata.record.index.growth.factor": ("0.5", "less than 1"),
    "hoodie.index.type": ("HBASE", "GLOBAL_BLOOM"),
    LEVEL: ("23", "1 to 22"),
}


@pytest.mark.parametrize("key", USELESS)
def test_a_value_of_no_use_is_refused_by_every_surface_with_those_there_are(key: str) -> None:
    value, words = USELESS[key]
    place = f"memory://{uuid.uuid4().hex}/t"
    table = new_table()
    for call in (
        lambda: create_table(place, SCHEMA, record_key="id", options={key: value}),
        lambda: table.upsert(ROWS, options={key: value}),
        lambda: ServiceRequest({key: value}),
        lambda: table.archive({key: value}),
        lambda: table.build_metadata(options={key: value}),
    ):
        with pytest.raises(InvalidOptionError, match=key) as caught:
            call()
        assert words in caught.value.message
        assert value in caught.value.message
    assert contents(table) == []
    assert create_table(place, SCHEMA, record_key="id")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (PLAN + "class", "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy"),
        (PLAN + "class", "SparkSizeBased"),
        ("hoodie.compaction.strategy", "org.apache.hudi.x.DayBasedCompactionStrategy, BoundedIO"),
        ("hoodie.keygen.timebased.timezone", "GMT+8:00"),
        ("hoodie.index.type", "global_record_level_index"),
    ],
)
def test_a_class_has_a_long_and_a_short_name(key: str, value: str) -> None:
    check_options({key: value})


def test_levels_of_codecs_are_those_of_arrow() -> None:
    assert {codec: pa.Codec.maximum_compression_level(codec) for codec in LEVELS} == LEVELS
    for codec, most in LEVELS.items():
        new_table().insert(ROWS, options={LEVEL: str(most), CODEC: codec.upper()})
        with pytest.raises(InvalidOptionError, match=f"{most + 1} is none of {codec}, whose levels are 1 to {most}"):
            check_options({LEVEL: str(most + 1), CODEC: codec})


@pytest.mark.parametrize("codec", ["snappy", "lz4", "none"])
def test_a_level_of_a_codec_without_levels_is_refused(codec: str) -> None:
    """It was taken without a word."""
    table = new_table()
    with pytest.raises(InvalidOptionError, match=f"is of zstd and gzip, and {CODEC} is {codec}: leave it out"):
        table.insert(ROWS, options={LEVEL: "3", CODEC: codec})
    assert contents(table) == []


def test_a_strategy_that_lacks_its_pattern_is_refused_before_the_write_that_asks_for_it() -> None:
    table = new_table(type="MergeOnRead", index={"type": "Bucket", "buckets": 1})
    options = {"hoodie.compact.inline": "true", "hoodie.compaction.strategy": "PartitionRegexBased"}
    with pytest.raises(InvalidOptionError, match=r"needs hoodie\.compaction\.partition\.path\.regex"):
        table.upsert(ROWS, options=options)
    assert contents(table) == []


def test_a_past_of_any_length_is_taken() -> None:
    now = datetime(2026, 11, 24)  # noqa: DTZ001
    assert earlier(now, timedelta(days=1), 2) == datetime(2026, 11, 22)  # noqa: DTZ001
    assert earlier(now, timedelta(hours=1), 10**17) == datetime(1970, 1, 1)  # noqa: DTZ001
    table = new_table()
    table.insert(ROWS)
    options = CleanOptions.parse(
        {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": str(10**17)}
    )
    first = load_timeline(table.context).commits[0]
    assert earliest_retained(load_timeline(table.context), options, now) == first
    far = {"hoodie.partition.ttl.inline": "true", "hoodie.partition.ttl.strategy.days.retain": str(10**17)}
    table.upsert(ROWS, options=far)
    assert contents(table) == [("a", "x", 1)]


MOVES = {"hoodie.record.index.update.partition.path": "true"}


@pytest.mark.parametrize("index", ["Simple", "PartitionedRecordIndex", {"type": "Bucket", "buckets": 1}])
def test_a_key_does_not_move_by_an_option_that_the_tables_index_does_not_have(index: object) -> None:
    """A write took it without a word."""
    table = new_table(index=index)
    for call in (lambda: table.upsert(ROWS, options=MOVES), lambda: table.archive(MOVES)):
        with pytest.raises(InvalidOptionError, match="is of a record index, and the table's is"):
            call()
    assert contents(table) == []


def test_nor_where_the_options_alone_tell_the_index() -> None:
    table = new_table()
    config = table.context.config
    refuse_contradictions(config, {"hoodie.record.index.update.partition.path": "false"})
    with pytest.raises(InvalidOptionError, match="is of a record index"):
        refuse_contradictions(config, {"hoodie.index.type": "SIMPLE"} | MOVES)


def test_a_service_takes_no_index_and_no_zone_that_the_table_does_not_have() -> None:
    table = new_table()
    with pytest.raises(InvalidOptionError, match=r"index\.type=BLOOM contradicts the table, which stores 'SIMPLE'"):
        table.archive({"hoodie.index.type": "BLOOM"})
    with pytest.raises(InvalidOptionError, match="is of a partition by time, and the table has none"):
        table.archive({"hoodie.keygen.timebased.timezone": "Asia/Tokyo"})
    table.archive({"hoodie.index.type": "simple", "hoodie.keygen.timebased.timezone": "UTC"})


def test_two_sort_modes_are_one_too_many() -> None:
    """The argument won without a word."""
    table, key = new_table(), "hoodie.bulkinsert.sort.mode"
    with pytest.raises(InvalidOptionError, match=rf"{key}=GLOBAL contradicts sort_mode 'partition'"):
        table.write(ROWS, operation="bulk_insert", sort_mode="partition", options={key: "GLOBAL"})
    table.write(ROWS, operation="bulk_insert", sort_mode="partition", options={key: "PARTITION_SORT"})
    assert contents(table) == [("a", "x", 1)]


@pytest.mark.parametrize("key", ["hoodie.metadata.enable", "hoodie.compact.inline"])
def test_what_a_creation_does_not_store_is_told_by_name(key: str) -> None:
    place = f"memory://{uuid.uuid4().hex}/t"
    with pytest.warns(IgnoredOptionWarning, match=f"'{key}' does nothing at a table's creation and is not stored"):
        table = create_table(place, SCHEMA, record_key="id", options={key: "true"})
    assert key not in table.context.config.extra


def test_nothing_is_told_of_defaults_and_of_what_is_stored() -> None:
    stored = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.lakeops.txn.suspect.seconds": "1200",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new_table(options=stored | {"hoodie.datasource.write.operation": "upsert"})
    assert table_options(stored | {"hoodie.clean.automatic": "true"}) == stored


@pytest.mark.parametrize("key", METADATA_INDEXES)
def test_an_index_without_the_metadata_table_that_would_hold_it_is_refused(key: str) -> None:
    """It was taken, and nothing was built."""
    partitions = key == "hoodie.metadata.index.partition.stats.enable"
    table = new_table(version=9 if partitions else 6)
    for more in ({}, {"hoodie.metadata.enable": "false"}):
        with pytest.raises(
            InvalidOptionError, match=rf"{key}=true builds nothing unless .* hoodie\.metadata\.enable=true"
        ):
            table.upsert(ROWS, options={key: "true"} | more)
    assert contents(table) == []
    table.upsert(ROWS, options={key: "true", "hoodie.metadata.enable": "true"})
    # It is there: whoever asks for it again asks for nothing.
    table.upsert(ROWS, options={key: "true"})
    assert len(table.context.config.metadata_partitions) == (3 if partitions else 2)


def test_partitions_of_a_table_that_has_none_do_not_expire() -> None:
    """The write was committed, and then the call failed."""
    table = new_table(partitioned=False)
    options = {"hoodie.partition.ttl.inline": "true", "hoodie.partition.ttl.strategy.days.retain": "3"}
    with pytest.raises(InvalidRequestError, match=r"is not partitioned, .* leave hoodie\.partition\.ttl\.inline out"):
        table.upsert(ROWS, options=options)
    assert contents(table) == []


def test_a_sort_mode_is_of_a_bulk_insert() -> None:
    """Any other operation passed it over."""
    table = new_table()
    with pytest.raises(InvalidOptionError, match="sort_mode is of operation bulk_insert, and this is upsert"):
        table.write(ROWS, sort_mode="global")
    assert contents(table) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"timezone": "Mars/Base"}, "'Mars/Base' is not known"),
        ({"inputTimezone": "Mars/Base"}, "'Mars/Base' is not known"),
        ({"format": "yyyy'"}, "unbalanced quote"),
        ({"format": "qq"}, "qq"),
        ({"inputFormat": "yyyy-QQ"}, "yyyy-QQ"),
    ],
)
def test_a_table_whose_rows_could_not_be_placed_is_not_created(wrong: dict[str, str], told: str) -> None:
    """It was created, and every write was refused."""
    by_text = {
        "field": "city",
        "type": "Timestamp",
        "input": "DATE_STRING",
        "inputFormat": "yyyy-MM-dd",
        "format": "yyyy",
    }
    place = f"memory://{uuid.uuid4().hex}/t"
    with pytest.raises(InvalidOptionError, match=told):
        create_table(place, SCHEMA, record_key="id", partition_by=by_text | wrong)
    assert create_table(place, SCHEMA, record_key="id", partition_by=by_text)


def test_an_index_that_is_told_twice_is_named_in_plain_words() -> None:
    with pytest.raises(InvalidRequestError, match="index is Simple, and the options say Bloom: leave one"):
        new_table(index="Simple", options={"hoodie.index.type": "BLOOM"})


@pytest.mark.parametrize(
    "key",
    [option.key for option in known_options().values() if option.fate is Fate.ACTS and not may_be_blank(option.values)],
)
def test_an_option_without_a_value_is_refused_by_the_one_gate(key: str) -> None:
    for blank in ("", " "):
        with pytest.raises(InvalidOptionError, match=f"'{key}' is given without a value"):
            check_options({key: blank})


def test_a_name_or_pattern_may_be_none() -> None:
    table = new_table()
    none = ("hoodie.table.ordering.fields", PLAN + "partition.selected", PLAN + "sort.columns", "hoodie.lakeops.merger")
    table.upsert(ROWS, options=dict.fromkeys(none, ""))
    assert contents(table) == [("a", "x", 1)]
