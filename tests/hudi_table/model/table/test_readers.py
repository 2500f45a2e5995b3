"""Who reads what: how a reader is named, which fact is nearest, and that each fact has a source
that is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hudi_table.api import create_table, open_table
from hudi_table.errors import InvalidOptionError
from hudi_table.model.table.cdc import CDC_ENABLED
from hudi_table.model.table.config import (
    IndexSpec,
    IndexType,
    MergeMode,
    PartitionField,
    PartitionType,
    TableConfig,
    TableType,
)
from hudi_table.model.table.merge_settings import LaterMerge, PartialUpdates
from hudi_table.model.table.readers import (
    FACTS,
    Feature,
    Reader,
    Reads,
    column_types,
    features_in,
    features_of,
    key_features,
    lost,
    no_longer,
    option_features,
    partition_features,
    readers_of,
    table_features,
    unproven,
)
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.schemas import table_avro_schema
from tests.support.logical_types import SCHEMA, golden_table

PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    "text", ["Trino", "Trino:", ":476", "Trino:v476", "Trino 476", "Tri no:476", "Trino:476:1", ""]
)
def test_what_names_no_engine_and_version_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"is no engine:version, such as Trino:476 or Hudi:0\.15"):
        Reader.parse(text)


@pytest.mark.parametrize(
    ("reader", "feature", "reads"),
    [
        ("Hudi:0.15.0", Feature.VERSION_6, Reads.YES),
        ("hudi:0.15", Feature.VERSION_9, Reads.NO),
        ("Hudi:0.13.1", Feature.VERSION_8, Reads.NO),
        ("Hudi:0.13.1", Feature.VERSION_6, Reads.UNKNOWN),
        ("Hudi:1.0.2", Feature.VERSION_9, Reads.NO),
        ("Hudi:1.0.2", Feature.VERSION_6, Reads.YES),
        ("Hudi:1.0.2", Feature.EVENT_TIME_LOGS, Reads.YES),
        ("Hudi:1.1.1", Feature.VERSION_9, Reads.YES),
        ("Hudi:1.2.0", Feature.VERSION_9, Reads.YES),
        ("Hudi:1.2.0", Feature.RECORD_INDEX, Reads.YES),
        ("Hudi:1.2.0", Feature.BLOOM_FILTERS, Reads.UNKNOWN),
        ("Hudi:1.10", Feature.VERSION_9, Reads.UNKNOWN),
        ("Hudi:1", Feature.VERSION_9, Reads.UNKNOWN),
        ("Hudi:0.15.0", Feature.PARTITIONED_RECORD_INDEX, Reads.NO),
        ("Trino:476", Feature.EVENT_TIME_LOGS, Reads.NO),
        ("Hudi:1.1.1", Feature.SECONDARY_INDEX, Reads.YES),
        ("Hudi:1.2.0", Feature.VECTORS, Reads.YES),
        ("Hudi:1.1.1", Feature.VECTORS, Reads.UNKNOWN),
        ("Hudi:1.2.0", Feature.VARIANTS, Reads.UNKNOWN),
        ("hudi-rs:0.5", Feature.PARTIAL_CLASS, Reads.NO),
        ("hudi-rs:0.5", Feature.PARTIAL_MODE, Reads.UNKNOWN),
        ("ClickHouse:26", Feature.CHANGE_LOG, Reads.UNKNOWN),
        ("Sail:1", Feature.VERSION_6, Reads.UNKNOWN),
    ],
)
def test_the_fact_of_the_nearest_version_answers_and_else_nothing_is_known(
    reader: str, feature: Feature, reads: Reads
) -> None:
    assert Reader.parse(reader).answer(feature).reads is reads


def test_each_fact_has_a_source_that_is_there_and_what_is_not_read_or_not_known_a_reason() -> None:
    for fact in FACTS:
        assert fact.source.startswith("https://") or (ROOT / fact.source).is_file(), fact
        assert fact.why or fact.reads is Reads.YES, fact


def test_no_two_facts_say_something_of_the_same() -> None:
    said = [(fact.engine, fact.version, feature) for fact in FACTS for feature in fact.features]
    assert len(said) == len(set(said))


def test_what_a_table_asks_of_its_readers_follows_from_what_it_is() -> None:
    assert table_features(9, TableType.COPY_ON_WRITE, MergeMode.EVENT_TIME) == (Feature.VERSION_9,)
    index = IndexSpec(IndexType.PARTITIONED_RECORD_INDEX)
    assert table_features(6, TableType.MERGE_ON_READ, MergeMode.EVENT_TIME, ["files"], index) == (
        Feature.VERSION_6, Feature.EVENT_TIME_LOGS, Feature.FILES, Feature.PARTITIONED_RECORD_INDEX,
    )  # fmt: skip


def test_indexes_that_have_a_name_and_columns_and_logs_ask_something_of_readers_too() -> None:
    assert partition_features(["files", "secondary_index_by_n", "expr_index_up", "unheard"]) == (
        Feature.FILES, Feature.SECONDARY_INDEX, Feature.EXPRESSION_INDEX,
    )  # fmt: skip
    plain = TableConfig("t", TableType.MERGE_ON_READ, ("id",))
    logged = replace(plain, payload_class=PARTIAL, extra={CDC_ENABLED: "true"})
    assert features_of(plain) == (Feature.VERSION_6, Feature.COMMIT_TIME_LOGS)
    assert set(features_of(logged)) - set(features_of(plain)) == {Feature.PARTIAL_CLASS, Feature.CHANGE_LOG}
    assert Feature.PARTIAL_CLASS not in features_of(replace(logged, type=TableType.COPY_ON_WRITE))
    assert set(features_in(logged, 9)) - set(features_in(plain, 9)) == {Feature.PARTIAL_MODE, Feature.CHANGE_LOG}
    later = replace(plain, version=9, later_merge=LaterMerge(partial=PartialUpdates.IGNORE_DEFAULTS))
    assert Feature.PARTIAL_MODE in features_of(later)
    assert features_of(plain, ["vector", "blob"])[-2:] == (Feature.VECTORS, Feature.BLOBS)
    options = {"hoodie.compaction.payload.class": PARTIAL.rpartition(".")[2], CDC_ENABLED: "TRUE"}
    assert option_features(6, TableType.MERGE_ON_READ, options) == (Feature.PARTIAL_CLASS, Feature.CHANGE_LOG)
    assert option_features(6, TableType.COPY_ON_WRITE, {}) == ()
    assert option_features(6, TableType.MERGE_ON_READ, {"hoodie.compaction.payload.class": "Mine"}) == ()


def test_a_custom_key_generator_asks_something_of_the_readers_of_later_versions() -> None:
    plain, moment = PartitionField("p"), PartitionField("at", PartitionType.TIMESTAMP, "yyyy/MM")
    table = TableConfig("t", TableType.COPY_ON_WRITE, ("a", "b"), (moment,))
    assert Feature.FIELD_KINDS not in features_of(table)
    assert Feature.FIELD_KINDS in features_of(replace(table, version=9))
    for version, keys, parted, kinds in (
        (6, ["a", "b"], [moment], False),
        (8, ["a", "b"], [moment], True),
        (9, ["a"], [plain, moment], True),
        (9, ["a"], [moment], False),
        (9, ["a", "b"], [plain, plain], False),
        (9, ["a", "b"], [], False),
    ):
        assert (key_features(version, keys, parted) == (Feature.FIELD_KINDS,)) is kinds
    assert lost(readers_of(["hudi-rs:0.5"]), [Feature.FIELD_KINDS])
    assert no_longer(readers_of(["hudi-rs:0.5"]), features_of(table), features_in(table, 9))


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_the_types_of_columns_are_found_in_the_schema(kind: str, tmp_path: Path) -> None:
    table = open_table(golden_table(kind, tmp_path))
    assert column_types(table_avro_schema(table.context, load_timeline(table.context))) == ("vector", "blob")
    ours = create_table(tmp_path / "ours", SCHEMA, record_key="id", version=9)
    assert column_types(ours.context.config.create_schema) == ("vector", "variant")
    assert column_types(None) == ()


def test_what_is_known_of_the_unknown_is_told() -> None:
    (line,) = unproven(readers_of(["Hudi:1.2"]), [Feature.VECTORS, Feature.VARIANTS])
    assert line == (
        "whether Hudi 1.2 reads columns of type VARIANT (on Spark 3.5 the whole table is refused, and Spark 4 was not "
        "tried) is not known"
    )
    assert lost(readers_of(["Hudi:1.2"]), [Feature.VARIANTS]) == ()


def test_who_is_lost_is_told_a_line_each_and_nobody_twice() -> None:
    readers = readers_of(["Hudi:0.15", "Hudi:0.15", "Hudi:1.1", "Sail:1"])
    before, after = [Feature.VERSION_6], [Feature.VERSION_9, Feature.COMMIT_TIME_LOGS]
    (line,) = lost(readers, after)
    assert line == "Hudi 0.15 cannot read table version 9: Hudi before 1.0 knows no table version above 6"
    assert no_longer(readers, before, after) == (line,)
    assert no_longer(readers, [Feature.VERSION_8], after) == (), "it could not read it before"
    assert unproven(readers, after) == (
        "whether Sail 1 reads table version 9, merge-on-read by commit time is not known",
    )
