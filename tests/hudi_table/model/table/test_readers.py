"""Who reads what: how a reader is named, which fact is nearest, and that each fact has a source
that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.model.table.config import IndexSpec, IndexType, MergeMode, TableType
from hudi_table.model.table.readers import (
    FACTS,
    Feature,
    Reader,
    Reads,
    lost,
    no_longer,
    readers_of,
    table_features,
    unproven,
)

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
        ("Sail:1", Feature.VERSION_6, Reads.UNKNOWN),
    ],
)
def test_the_fact_of_the_nearest_version_answers_and_else_nothing_is_known(
    reader: str, feature: Feature, reads: Reads
) -> None:
    assert Reader.parse(reader).answer(feature).reads is reads


def test_each_fact_has_a_source_that_is_there_and_what_is_not_read_a_reason() -> None:
    for fact in FACTS:
        assert fact.source.startswith("https://") or (ROOT / fact.source).is_file(), fact
        assert fact.reads is not Reads.UNKNOWN, "what is not known is left out"
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
