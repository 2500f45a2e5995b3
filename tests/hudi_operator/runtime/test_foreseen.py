"""What a job would refuse is refused before one starts, by the job's own checks: of a table that is
not there yet, of an ingest, of a service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_operator.api.resources import DesiredTable, desired_table
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.jobs import ingest_job, options_of
from hudi_operator.manifests.services import work_of
from hudi_operator.plan.observed import Problem
from hudi_operator.runtime import foreseen
from hudi_operator.runtime.observe import Observer
from hudi_spark.jobs.target import make_table
from hudi_table.table.store.clock import SystemClock
from tests.hudi_operator.runtime.test_local_runtime import Place, assert_stalled, conditions
from tests.support.kafka_manifests import debezium
from tests.support.manifests import ingest, manifest, stored
from tests.support.manifests import spec as right
from tests.support.service_plans import service

DAYS = "hoodie.partition.ttl.strategy.days.retain"
SIMPLE = {"index": {"type": "Simple"}}
TABLES: list[tuple[dict[str, Any], str]] = [
    (SIMPLE | {"options": {"hoodie.bucket.index.num.buckets": "4"}}, "is of a bucket index, and the table's is Simple"),
    (SIMPLE | {"options": {"hoodie.lakeops.bucket.colon.rule": "1.x"}}, "colon.rule is of a bucket index"),
    ({"options": {"hoodie.record.index.update.partition.path": "true"}}, "is of a record index"),
    ({"options": {"hoodie.lakeops.index.size": "9"}}, "is of a custom index, and the table's is Bucket"),
    ({"options": {"hoodie.lakeops.txn.quarantine.seconds": "3"}}, "is '3': give seconds, at least 60"),
    ({"options": {"hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY"}}, "does nothing alone"),
    ({"options": {"hoodie.table.keygenerator.type": "COMPLEX"}}, "asks for ComplexKeyGenerator"),
    (
        {"options": {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"}},
        "merges by CommitTime with partial updates none, not EventTime",
    ),
    ({"partitionBy": [{"field": "at", "type": "Timestamp", "format": "yyyy'"}]}, "unbalanced quote"),
    ({"partitionBy": [{"field": "at", "type": "Timestamp", "format": "yyyy", "timezone": "Mars/X"}]}, "'Mars/X' is not known"),
]  # fmt: skip
INGESTS: list[tuple[dict[str, Any], str]] = [
    ({"options": {"hoodie.partition.ttl.inline": "true", DAYS: "3"}}, "is not partitioned, so that no partition expires"),
    ({"options": {"hoodie.partition.ttl.inline": "true"}, "partitionBy": [{"field": "day"}]}, f"give {DAYS}"),
    ({"options": {"hoodie.clustering.inline": "true"}}, "has a bucket index"),
    ({"options": {"hoodie.datasource.insert.dup.policy": "fail"}}, "is of operation insert, and this is upsert"),
    ({"options": {"hoodie.metadata.index.column.stats.enable": "true"}}, "give hoodie.metadata.enable=true with it"),
    ({"options": {"hoodie.parquet.bloom.filter.enabled": "false"}, "index": {"type": "Bloom"}}, "a bloom index has to read"),
]  # fmt: skip
RIGHT: list[dict[str, Any]] = [
    {},
    {"partitionBy": [{"field": "at", "type": "Timestamp", "format": "yyyy/MM"}]},
    {"partitionBy": [{"field": "at", "type": "Timestamp", "format": "yyyy", "input": "UNIX_TIMESTAMP"}]},
    {
        "partitionBy": [
            {"field": "at", "type": "Timestamp", "format": "yyyy", "input": "DATE_STRING", "inputFormat": "yyyyMMdd"}
        ]
    },
    {"recordKey": ["a.b", "c"], "partitionBy": [{"field": "a.d"}], "index": {"type": "Simple"}},
    {"type": "MergeOnRead", "tableVersion": 9, "index": None},
    {"options": {"hoodie.write.track.event.time.watermark": "true", "hoodie.payload.event.time.field": "seen"}},
    {
        "options": {
            "hoodie.clustering.inline": "true",
            "hoodie.clustering.plan.strategy.sort.columns": "city,_hoodie_record_key",
        },
        "index": None,
    },
    {"index": {"type": "Custom", "className": "of.a.package.that.is.not.here"}},
    {"options": {"hoodie.lakeops.merger": "of.a.package"}, "mergeMode": None, "orderingFields": None},
]


def desired(**changes: Any) -> DesiredTable:
    found = desired_table(stored(manifest(**right(location="memory://foreseen/lake", **changes))))
    assert found.errors == ()
    return found


def spec_of(**changes: Any) -> HudiTableSpec:
    spec = desired(**changes).spec
    assert spec is not None
    return spec


def problem(**changes: Any) -> Problem | None:
    """What stands against the one ingest of a table that is not there."""
    table = desired(**changes)
    assert table.spec is not None
    return Observer(SystemClock()).ingest(table, table.spec.ingest[0], None, {})


@pytest.mark.parametrize(("changes", "words"), TABLES)
def test_a_table_that_no_job_could_make_is_refused_while_there_is_none(changes: dict[str, Any], words: str) -> None:
    found = Observer(SystemClock()).table(desired(**changes), {})
    assert isinstance(found, Problem), found
    assert words in found.message
    assert not found.retryable


@pytest.mark.parametrize(("changes", "words"), INGESTS)
def test_an_ingest_that_no_job_could_do_is_refused_and_the_table_is_not(changes: dict[str, Any], words: str) -> None:
    assert Observer(SystemClock()).table(desired(**changes), {}) is None
    found = problem(**changes)
    assert found is not None
    assert words in found.message
    assert not found.retryable


@pytest.mark.parametrize("changes", RIGHT)
def test_what_a_job_can_do_nothing_is_said_against(changes: dict[str, Any]) -> None:
    assert Observer(SystemClock()).table(desired(**changes), {}) is None
    assert problem(**changes) is None


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"index": None, "tableVersion": 9, "options": {"hoodie.database.name": "lake"}},
        {"partitionBy": [{"field": "day"}], "paths": {"hiveStyle": True}, "type": "MergeOnRead"},
        {key: value for key, value in debezium()[1].items() if key != "location"},
    ],
)
def test_the_table_that_is_judged_is_the_one_that_the_job_makes(changes: dict[str, Any]) -> None:
    spec = spec_of(**changes)
    schema, judged = foreseen.made("flights", spec, options_of(spec))
    made = make_table(ingest_job("flights", spec, spec.ingest[0], "a", 0), schema)
    try:
        assert made.context.config == judged
    finally:
        for each in made.context.storage.list(""):
            made.context.storage.delete(each.path)


def test_an_ingest_stands_still_and_the_others_go_on(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.land("1.parquet")
    source = place.table()["spec"]["ingest"][0]["source"]
    both = [ingest(source=source), ingest(name="more", operation="Insert", source=source)]
    found = place.apply(place.table(ingest=both, options={"hoodie.datasource.insert.dup.policy": "drop"}))
    status, reason, message = conditions(found)["Stalled"]
    assert (status, reason) == ("True", "InvalidOption")
    assert message.startswith("Ingest/feed: ")
    assert "is of operation insert, and this is upsert" in message
    assert [row["id"] for row in place.rows()] == ["a", "b", "c"]
    assert len(place.attempts()) == 1


def test_a_condition_says_it_and_no_job_starts(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.land("1.parquet")
    found = place.apply(place.table(options={"hoodie.lakeops.txn.quarantine.seconds": "3"}))
    assert_stalled(found, "InvalidOption", "hoodie.lakeops.txn.quarantine.seconds is '3': give seconds, at least 60")
    assert place.attempts() == []
    assert not place.location.exists()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"type": "Cleaning", "options": {"hoodie.index.type": "BLOOM"}}, "contradicts the table"),
        (
            {"type": "Compaction", "options": {"hoodie.compaction.strategy": "DayBasedCompactionStrategy,UnBounded"}},
            None,
        ),
        ({"type": "PartitionTTL", "partitionTTL": {"days": 3}}, None),
    ],
)
def test_a_service_is_refused_by_what_the_table_is(asked: dict[str, Any], words: str | None) -> None:
    spec = spec_of(index=None, type="MergeOnRead")
    wanted = service(**asked).spec
    assert wanted is not None
    config = foreseen.made("flights", spec, options_of(spec))[1]
    found = Observer(SystemClock()).service(work_of(wanted, spec), spec, config, {})
    if words is None:
        assert found is None
    else:
        assert found is not None
        assert words in found.message


def test_columns_are_not_known_before_their_rows() -> None:
    spec = spec_of(options={"hoodie.write.track.event.time.watermark": "true"})
    assert foreseen.made("flights", spec, options_of(spec))[0].field("ts").type == pa.string()
