"""Resizing: a bucket table in another number of buckets, its rows as they were, its past and its
writers none the worse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError, WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.names import FILE_NAME, PROPERTIES, bucket_of_file_id
from hudi_table.model.service.resizes import HISTORY
from hudi_table.model.service.services import ServiceType
from hudi_table.model.timeline.instants import Action
from hudi_table.services.planning import publish
from hudi_table.services.resizing.plan import resize_choice
from hudi_table.table.commit.transaction import begin
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from tests.support.aged import AgedStorage
from tests.support.crashes import new_store, opened
from tests.support.meanwhile import Sleeper
from tests.support.savepoints import keep
from tests.support.written import slices

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
BUCKETS = "hoodie.bucket.index.num.buckets"


def rows(first: int, last: int, plus: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{i}" for i in range(first, last)],
            "city": ["xyz"[i // 7 % 3] for i in range(first, last)],
            "value": [i + plus for i in range(first, last)],
        },
        SCHEMA,
    )


def made(buckets: int, type_="CopyOnWrite", uri: str = "") -> HudiTable:
    """Rows 20 to 299; of those up to 99 the value is 1,000 more."""
    index = {"type": "Bucket", "buckets": buckets}
    base = uri or new_store().base_path
    table = create_table(base, SCHEMA, record_key="id", partition_by="city", index=index, type=type_)
    table.upsert(rows(0, 300))
    table.upsert(rows(0, 100, 1000))
    table.delete(rows(0, 20))
    return table


def stored(table: HudiTable) -> pa.Table:
    return table.scan(meta=True).to_arrow().drop([FILE_NAME]).sort_by("id")


def values(table: HudiTable) -> dict[str, int]:
    found = table.scan().to_arrow()
    assert found.num_rows == len(set(found["id"].to_pylist())), "a key came twice"
    return dict(zip(found["id"].to_pylist(), found["value"].to_pylist(), strict=True))


def buckets(table: HudiTable) -> set[int | None]:
    return {bucket_of_file_id(item.file_id) for item in slices(table)}


@pytest.mark.parametrize("type_", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize(("before", "after"), [(4, 8), (8, 4), (4, 6), (3, 7), (5, 1)])
def test_rows_keep_their_meta_columns_and_find_their_new_buckets(type_: str, before: int, after: int) -> None:
    table = made(before, type_)
    expected = stored(table)
    done = table.resize_buckets(after)
    assert stored(table).equals(expected)
    assert buckets(table) == set(range(after))
    assert done.figures["filesAfter"] == 3 * after
    assert done.figures["rowsWritten"] == 280
    table.upsert(rows(50, 310, 5000))
    found = values(table)
    assert len(found) == 290
    assert found["k50"] == 5050
    assert table.doctor(keys=True) == ()


def test_a_plan_says_what_it_costs_and_exactly_it_is_done(tmp_path: Path) -> None:
    table = made(2, "MergeOnRead", str(tmp_path / "t"))
    before = sorted(path for path in tmp_path.rglob("*") if ".txn" not in str(path))
    plan = table.plan_resize(4)
    assert sorted(path for path in tmp_path.rglob("*") if ".txn" not in str(path)) == before
    held = slices(table)
    assert plan.service is ServiceType.RESIZE
    assert (plan.file_groups, plan.files_after, plan.log_files) == (6, 12, sum(len(item.logs) for item in held))
    assert plan.bytes_read == sum(item.size for item in held)
    assert [line.partition(":")[0] for line in plan.details] == ["x", "y", "z"]
    done = table.resize_buckets(4, plan=plan.digest)
    assert done.figures["bytesRead"] == plan.bytes_read
    with pytest.raises(WriteConflictError, match="make a new plan"):
        table.resize_buckets(4, plan=plan.digest)


def test_an_approved_plan_of_a_table_that_changed_is_refused_by_the_name_of_what_did() -> None:
    table = made(2)
    plan = table.plan_resize(4)
    (first, *_) = (item for item in slices(table) if item.partition == "x" and bucket_of_file_id(item.file_id) == 0)
    table.upsert(rows(0, 300))
    with pytest.raises(WriteConflictError, match=first.file_id):
        table.resize_buckets(4, plan=plan.digest)
    assert table.pending_resize() is None
    values(table)


def test_while_a_plan_waits_every_write_and_service_keeps_off() -> None:
    table = made(2, "MergeOnRead")
    other = open_table(table.base_path)
    service = table.services.resize(4)
    taken = begin(other.context, Action.DELTA_COMMIT)
    plan = service.schedule()
    assert plan is not None
    for write in (other.upsert, other.insert, other.delete):
        with pytest.raises(WriteConflictError, match=plan.instant):
            write(rows(1000, 1001), options={"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"})
    assert other.compact(force=True) == []
    assert other.pending_clusterings() == []
    with pytest.raises(InvalidRequestError, match="resize"):
        other.run_clustering(plan.instant)
    with pytest.raises(InvalidRequestError, match=f"resize {plan.instant}"):
        other.plan_resize(8)
    taken.abort()
    assert other.services.resize.execute(plan).figures["fileGroups"] == 6
    assert service.execute(plan).replayed
    assert open_table(table.base_path).context.config.index == table.context.config.index
    other.upsert(rows(1000, 1001))
    assert len(values(table)) == 281


def test_a_write_that_began_before_the_plan_fails_at_its_commit() -> None:
    table = made(2)

    class Late(LocalEngine):
        def map(self, function, items):
            found = super().map(function, items)
            publish(table.context, Action.REPLACE_COMMIT, resize_choice(table.context, 4))
            return found

    with pytest.raises(WriteConflictError):
        open_table(table.base_path).upsert(rows(1000, 1001), engine=Late(1))
    assert table.resize_buckets(4).figures["rowsWritten"] == 280


def test_processes_that_knew_the_old_number_go_on_with_the_new_one() -> None:
    table = made(2)
    writer, reader = open_table(table.base_path), open_table(table.base_path)
    table.resize_buckets(5)
    writer.upsert(rows(20, 60, 7000))
    assert [reader.scan(filter=[("id", "=", f"k{i}")]).to_arrow()["value"].to_pylist() for i in (30, 61)] == [
        [7030],
        [1061],
    ]
    assert buckets(table) <= set(range(5))
    for path in (1, 2):
        table.write(rows(900 + path, 901 + path), operation="insert")
    assert len(values(reader)) == 282


def test_a_past_before_the_resize_is_read_by_its_buckets() -> None:
    table = made(8)
    then = load_timeline(table.context).commits[-1].time
    table.resize_buckets(3)
    table.resize_buckets(5)
    between = load_timeline(table.context).commits[-2].time
    table.upsert(rows(20, 300, 9000))
    for number in range(20, 300, 13):
        for moment, value in (
            (then, number + 1000 * (number < 100)),
            (between, number + 1000 * (number < 100)),
            (None, number + 9000),
        ):
            scan = table.scan(filter=[("id", "=", f"k{number}")], as_of=moment)
            assert scan.to_arrow()["value"].to_pylist() == [value]
            assert len(scan.plan.slices) <= 3, "one bucket of each partition"


def test_the_number_is_kept_when_the_resize_is_archived_and_undone_when_it_is_taken_back() -> None:
    table = made(2)
    keep(table)
    done = table.resize_buckets(4)
    table.rollback(done.instant, writers_stopped=True)
    assert (buckets(table), open_table(table.base_path).context.config.index.buckets) == ({0, 1}, 2)  # type: ignore[union-attr]
    assert HISTORY not in table.context.storage.get(PROPERTIES).decode()
    saved = table.savepoints()[-1].instant
    table.resize_buckets(6)
    table.upsert(rows(20, 40, 3))
    table.restore(saved, writers_stopped=True)
    assert buckets(table) == {0, 1}
    table.upsert(rows(20, 40, 4))
    assert len(values(table)) == 280
    table.delete_savepoint(saved, writers_stopped=True)
    stale = open_table(table.base_path)
    resize_and_archive(table, 3)
    stale.upsert(rows(20, 50, 100))
    assert buckets(table) == {0, 1, 2}
    assert len(values(stale)) == 280


def resize_and_archive(table: HudiTable, count: int) -> None:
    gone = table.resize_buckets(count).instant
    for number in range(8):
        table.upsert(rows(20, 40, number))
    table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    opened(AgedStorage(table.context.storage)).archive(limits, force=True)
    assert gone not in {instant.time for instant in load_timeline(table.context).instants}


def test_rows_that_were_taken_in_for_hours_are_not_routed_by_a_number_that_the_archive_alone_knows() -> None:
    table, clock = made(2), Sleeper()

    def slowly() -> Iterator[pa.RecordBatch]:
        yield from rows(300, 400).to_batches()
        resize_and_archive(table, 3)
        clock.slept = 4 * 3600.0

    slow = HudiTable(open_context(table.context.storage, clock))
    with pytest.raises(WriteConflictError, match="number of buckets was changed"):
        slow.upsert(pa.RecordBatchReader.from_batches(SCHEMA, slowly()))
    slow.upsert(rows(300, 400))
    slow.upsert(rows(300, 400, 7))
    assert len(values(table)) == 380
    assert table.doctor() == ()


def test_properties_that_a_dead_executor_left_behind_are_put_right_by_the_next_writer() -> None:
    table = made(2)
    before = table.context.storage.get(PROPERTIES)
    table.resize_buckets(4)
    table.context.storage.put(PROPERTIES, before)
    assert values(open_table(table.base_path))["k150"] == 150
    assert open_table(table.base_path).doctor() == ()
    assert len(open_table(table.base_path).scan(filter=[("id", "=", "k150")]).to_arrow()) == 1
    open_table(table.base_path).upsert(rows(20, 60))
    assert open_table(table.base_path).context.config.index.buckets == 4  # type: ignore[union-attr]
    assert len(values(table)) == 280


@pytest.mark.parametrize("number", [0, -1, 100_001])
def test_numbers_that_are_none_are_refused(number: int) -> None:
    with pytest.raises(InvalidOptionError, match=str(number)):
        made(2).plan_resize(number)


def test_what_cannot_be_resized_is_refused_by_name() -> None:
    table = made(2, "MergeOnRead")
    with pytest.raises(InvalidRequestError, match="2 buckets already"):
        table.resize_buckets(2)
    planned = table.schedule_compaction(force=True)
    assert planned is not None
    with pytest.raises(InvalidRequestError, match=planned.instant):
        table.resize_buckets(4)
    simple = create_table(new_store().base_path, SCHEMA, record_key="id")
    with pytest.raises(InvalidRequestError, match="Simple index"):
        simple.resize_buckets(4)


def test_a_plan_is_rolled_back_and_the_table_goes_on() -> None:
    table = made(2)
    plan = table.services.resize(4).schedule()
    assert plan is not None
    table.rollback(plan.instant, writers_stopped=True)
    table.upsert(rows(20, 30, 1))
    assert buckets(table) == {0, 1}
    with pytest.raises(InvalidRequestError):
        table.services.resize.execute(plan)


def test_an_empty_table_changes_its_number_alone() -> None:
    table = create_table(new_store().base_path, SCHEMA, record_key="id", index={"type": "Bucket", "buckets": 2})
    table.resize_buckets(4)
    table.upsert(rows(0, 100))
    assert buckets(table) == set(range(4))


def test_the_files_are_the_same_whatever_the_memory() -> None:
    found = []
    for memory in (1 << 30, 1 << 12):
        table = made(3, "MergeOnRead")
        table.resize_buckets(4, max_memory=memory, engine=LocalEngine(2))
        read = table.scan(columns=["id", "value"]).to_arrow()
        found.append(read.to_pylist())
    assert found[0] == found[1], "rows lie in the same order"


def test_keys_without_meta_columns_are_routed_too() -> None:
    table = create_table(
        new_store().base_path, SCHEMA, record_key="id", index={"type": "Bucket", "buckets": 2},
        options={"hoodie.populate.meta.fields": "false"},
    )  # fmt: skip
    table.upsert(rows(0, 100))
    table.resize_buckets(5)
    table.upsert(rows(50, 150, 1))
    assert len(values(table)) == 150


@pytest.mark.parametrize("told", ["8", "04x", "-4"])
def test_options_that_name_another_number_than_is_asked_for_are_refused(told: str) -> None:
    table = made(2)
    for ask in (table.plan_resize, table.resize_buckets):
        with pytest.raises(InvalidOptionError, match=rf"num\.buckets={told} contradicts the 4 buckets"):
            ask(4, options={BUCKETS: told})
    assert buckets(table) == {0, 1}
    table.resize_buckets(4, options={BUCKETS: "4"})
    assert buckets(table) == {0, 1, 2, 3}
