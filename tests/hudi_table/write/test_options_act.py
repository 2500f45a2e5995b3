"""Options of writes and services, each by what it changes."""

from __future__ import annotations

import io
from datetime import timedelta

import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable, write_hudi
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.model.timeline.instants import Action
from hudi_table.services.clustering.strategy import ClusteringStrategy
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.instants import local_now
from tests.support.written import contents, keys, last_commit, new_table, rows, slices

OPERATION = "hoodie.datasource.write.operation"
TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
FIRST = rows(("a", "x", 1), ("b", "y", 2))


def filled(**more: object) -> HudiTable:
    table = new_table(**more)  # type: ignore[arg-type]
    table.insert(FIRST)
    return table


def test_the_operation_is_what_the_option_says() -> None:
    table = filled()
    write_hudi(table, rows(("a", "x", 0)), options={OPERATION: "delete"})
    assert contents(table) == [("b", "y", 2)]
    table.write(rows(("b", "y", 3)), options={OPERATION: "INSERT"})
    assert contents(table) == [("b", "y", 2), ("b", "y", 3)]
    assert last_commit(table).operation_type == "INSERT"


@pytest.mark.parametrize("way", ["upsert", "insert", "delete"])
def test_another_operation_than_the_one_that_is_called_is_refused(way: str) -> None:
    table = filled()
    with pytest.raises(InvalidOptionError, match=rf"operation=bulk_insert contradicts the operation '{way}'"):
        getattr(table, way)(FIRST, options={OPERATION: "bulk_insert"})
    assert contents(table) == [("a", "x", 1), ("b", "y", 2)]


def test_an_operation_of_hudis_that_is_not_done_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="'insert_prepped' is none of upsert, insert"):
        filled().write(FIRST, options={OPERATION: "insert_prepped"})


def test_partitions_to_delete_are_those_of_the_option() -> None:
    table = filled()
    table.write(None, options={OPERATION: "delete_partition", TO_DELETE: "x"})
    assert contents(table) == [("b", "y", 2)]
    with pytest.raises(InvalidOptionError, match="contradicts the partitions"):
        table.write(None, operation="delete_partition", partitions=["y"], options={TO_DELETE: "x"})
    with pytest.raises(InvalidOptionError, match="name the partitions"):
        table.write(None, operation="delete_partition", options={TO_DELETE: "y*"})
    with pytest.raises(InvalidRequestError, match="delete_partition"):
        table.upsert(FIRST, options={TO_DELETE: "x"})


@pytest.mark.parametrize(
    "key", ["hoodie.datasource.write.reconcile.schema", "hoodie.write.set.null.for.missing.columns"]
)
def test_a_column_that_rows_lack_is_null_where_an_option_says_so(key: str) -> None:
    table = filled()
    few = rows(("a", "x", 9)).drop_columns(["value"])
    table.upsert(few, options={key: "true"})
    assert contents(table) == [("a", "x", None), ("b", "y", 2)]


def test_no_service_runs_after_a_write_where_services_are_off() -> None:
    table = filled(type="MergeOnRead", index={"type": "Bucket", "buckets": 1})
    asked = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    table.upsert(FIRST, options={**asked, "hoodie.table.services.enabled": "false"})
    assert not [i for i in load_timeline(table.context).instants if i.action is Action.COMMIT]
    table.upsert(FIRST, options={**asked, "hoodie.table.services.enabled": "true"})
    assert [i for i in load_timeline(table.context).instants if i.action is Action.COMMIT]


def test_partitions_that_have_expired_go_after_a_write_that_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled()
    later = timedelta(days=3)
    monkeypatch.setattr("hudi_table.services.cleaning.ttl.local_now", lambda ctx: local_now(ctx) + later)
    options = {"hoodie.partition.ttl.inline": "true", "hoodie.partition.ttl.strategy.days.retain": "5"}
    table.upsert(rows(("c", "z", 3)), options=options)
    assert contents(table) == [("a", "x", 1), ("b", "y", 2), ("c", "z", 3)]
    table.upsert(rows(("d", "w", 4)), options=options | {"hoodie.partition.ttl.strategy.days.retain": "2"})
    assert contents(table) == []
    with pytest.raises(InvalidOptionError, match=r"days\.retain"):
        table.upsert(FIRST, options={"hoodie.partition.ttl.inline": "true"})


def test_an_execution_that_would_write_something_else_than_the_plan_is_refused() -> None:
    key, run = "hoodie.clustering.execution.strategy.class", "org.apache.hudi.client.clustering.run.strategy."
    sorting = run + "SparkSortAndSizeExecutionStrategy"
    assert ClusteringStrategy.parse({key: sorting}).execution == sorting
    with pytest.raises(InvalidOptionError, match="SparkSingleFileSortExecutionStrategy"):
        ClusteringStrategy.parse({key: run + "SparkSingleFileSortExecutionStrategy"})
    alone = {"hoodie.clustering.plan.strategy.class": "SparkSingleFileSortPlanStrategy"}
    assert ClusteringStrategy.parse(alone).execution == run + "SparkSingleFileSortExecutionStrategy"


def footers(options: dict[str, str]) -> tuple[int, bytes]:
    """(length of the filter of the one base file, its bytes)."""
    table = new_table(partitioned=False, index="Bloom")
    table.insert(rows(*((f"key{number}", "x", number) for number in range(500))), options=options)
    base = slices(table)[0].base
    assert base is not None
    data = table.context.storage.get(base.path)
    metadata = pq.read_metadata(io.BytesIO(data)).metadata
    return len(metadata[b"org.apache.hudi.bloomfilter"]), data


def test_a_filter_grows_as_far_as_the_option_lets_it() -> None:
    few = {"hoodie.index.bloom.num_entries": "100"}
    small = footers(few | {"hoodie.bloom.index.filter.dynamic.max.entries": "100"})[0]
    assert footers(few | {"hoodie.bloom.index.filter.dynamic.max.entries": "500"})[0] > 2 * small


def test_a_filter_that_may_err_more_often_is_smaller() -> None:
    few = {"hoodie.index.bloom.num_entries": "500"}
    precise, coarse = (footers(few | {"hoodie.index.bloom.fpp": chance})[0] for chance in ("0.000001", "0.1"))
    assert coarse * 3 < precise


def test_the_level_of_the_codec_is_that_of_the_option() -> None:
    fast, small = (footers({"hoodie.lakeops.parquet.compression.level": level})[1] for level in ("1", "19"))
    assert len(small) < len(fast)


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("hoodie.metadata.index.column.stats.enable", "column_stats"),
        ("hoodie.metadata.index.bloom.filter.enable", "bloom_filters"),
    ],
)
def test_the_metadata_table_gets_the_partition_that_the_option_asks_for(key: str, partition: str) -> None:
    table = filled()
    table.upsert(FIRST, options={"hoodie.metadata.enable": "true", key: "true"})
    assert partition in table.context.config.metadata_partitions


@pytest.mark.parametrize(("version", "has"), [(6, False), (9, True)])
def test_statistics_of_partitions_are_kept_on_versions_8_and_9_where_the_option_asks_for_them(
    version: int, has: bool
) -> None:
    table = new_table(version=version)
    options = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.partition.stats.enable": "true"}
    table.upsert(FIRST, options=options)
    expected = {"files", "column_stats", "partition_stats"} if has else {"files"}
    assert set(table.context.config.metadata_partitions) == expected


def test_times_of_the_protocol_are_stored_with_the_table() -> None:
    options = {"hoodie.lakeops.txn.quarantine.seconds": "7200", "hoodie.lakeops.txn.suspect.seconds": "1200"}
    settings = new_table(options=options).context.settings
    assert (settings.quarantine_seconds, settings.suspect_after_seconds) == (7200, 1200)


def test_a_delete_takes_keys_alone_by_the_option_too() -> None:
    table = filled()
    table.write(keys(("a", "x")), options={OPERATION: "delete"})
    assert contents(table) == [("b", "y", 2)]


def test_the_metadata_table_is_compacted_as_often_as_the_option_says() -> None:
    compacted = []
    for deltas in ("1", "50"):
        table = filled()
        for value in range(3):
            options = {"hoodie.metadata.enable": "true", "hoodie.metadata.compact.max.delta.commits": deltas}
            table.upsert(rows(("a", "x", value)), options=options)
        names = [info.path for info in table.context.storage.list(".hoodie/metadata/.hoodie")]
        compacted.append(any(name.endswith(".commit") for name in names))
    assert compacted == [True, False]


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"schema": "mine"}, "'schema' is a key of the commit itself"),
        ({"hoodie.lakeops.batch": "b"}, "is a key of the commit itself"),
        ({"rows": 3}, "has to be texts"),
    ],
)
def test_a_commit_carries_texts_for_its_caller_and_none_in_the_place_of_its_own(
    extra: dict[str, str], words: str
) -> None:
    """Its own schema came in the place of the caller's text without a word, and a batch that nobody
    named was taken for committed."""
    table = filled()
    with pytest.raises(InvalidRequestError, match=words):
        table.upsert(FIRST, extra_metadata=extra)
    table.upsert(FIRST, extra_metadata={"rows": "3"}, batch="b")
    assert last_commit(table).extra_metadata["rows"] == "3"


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="key must be a string, not 5"):
        filled().upsert(FIRST, options={5: "x"})  # type: ignore[dict-item] # what is refused
