"""Plans of table services: published on a snapshot, kept by a dry run and approved, and what
writers do beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import WriteConflictError
from hudi_table.model.names import log_write_token
from hudi_table.model.service.services import ServicePlan, ServiceType
from hudi_table.model.timeline.chain import Kind
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.planning import Draft, publish
from hudi_table.services.rewriting.resuming import resume
from hudi_table.table.commit import recovery
from hudi_table.table.commit.conflicts import group_conflict_keys
from hudi_table.table.commit.pending_plans import clustered_groups, held_groups
from hudi_table.table.commit.rollback import rollback_plan
from hudi_table.table.commit.transaction import begin
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.clustering_plans import ClusteringGroup, ClusteringPlan, clustering_body, pending_clusterings
from hudi_table.table.view.compaction_plans import PlannedSlice, planned_slices
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView
from tests.hudi_table.write.test_conflicts import Meanwhile
from tests.support.taken_back import aged
from tests.support.unsealed import without_check_sums
from tests.support.written import INDEXES, contents, new_table, rows, slices

ALLOW = {
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
}


@pytest.fixture
def logs() -> HudiTable:
    """Keys a in x and b in y, each with a log."""
    made = new_table(index=INDEXES["bucket"], type="MergeOnRead")
    made.insert(rows(("a", "x", 1), ("b", "y", 2)))
    made.upsert(rows(("a", "x", 10), ("b", "y", 20)))
    return made


@pytest.fixture
def files() -> HudiTable:
    """Keys a in x and b in y, copy on write."""
    made = new_table()
    made.insert(rows(("a", "x", 1), ("b", "y", 2)))
    return made


def plan_clustering(table: HudiTable, partition: str) -> Instant:
    """The pending plan of a clustering of one partition."""

    def choose(view: FileSystemView) -> Draft:
        chosen = tuple(planned(item) for item in view.latest_slices([partition]))
        plan = ClusteringPlan((ClusteringGroup(chosen, 1),), "SparkSortAndSizeExecutionStrategy")
        conflict_keys = group_conflict_keys((item.partition, item.file_id) for item in chosen)
        return Draft(
            clustering_body(table.context, plan), conflict_keys, ServicePlan(ServiceType.CLUSTERING, "asked for")
        )

    published = publish(table.context, Action.REPLACE_COMMIT, choose)
    assert published is not None
    return Instant(published.instant, Action.REPLACE_COMMIT, State.REQUESTED)


def planned(item: FileSlice) -> PlannedSlice:
    logs = tuple(log.path.rpartition("/")[2] for log in item.logs)
    return PlannedSlice(
        item.partition, item.file_id, item.instant, item.base.name if item.base else None, logs, {}
    )  # fmt: skip


def plan_names(table: HudiTable) -> list[str]:
    return [name for name in load_timeline(table.context).files if name.endswith(".compaction.requested")]


def test_a_dry_run_changes_nothing_on_the_timeline(logs: HudiTable) -> None:
    before = set(load_timeline(logs.context).files)
    found = logs.services.compaction(force=True).plan()
    assert found is not None
    assert (found.instant, found.file_groups, found.log_files, found.files_after) == ("", 2, 2, 2)
    assert [line.split()[0] for line in found.details] == ["x", "y"]
    assert set(load_timeline(logs.context).files) == before


def test_an_approval_publishes_the_very_plan_of_the_dry_run(logs: HudiTable) -> None:
    found = logs.services.compaction(force=True).plan()
    assert found is not None
    logs.upsert(rows(("c", "z", 3)))
    asked = logs.services.compaction(plan=found.digest)
    published = asked.schedule()
    assert published is not None
    assert (published.digest, published.file_groups) == (found.digest, 2)
    before = contents(logs)
    done = asked.execute(published)
    assert done.figures["fileGroups"] == 2
    assert contents(logs) == before
    with pytest.raises(WriteConflictError, match="has changed since the plan was made"):
        asked.schedule()


def test_an_approval_of_a_plan_whose_group_has_moved_is_refused_and_publishes_nothing(logs: HudiTable) -> None:
    found = logs.services.compaction(force=True).plan()
    assert found is not None
    logs.upsert(rows(("a", "x", 11)))
    with pytest.raises(WriteConflictError, match="partition 'x' has changed since the plan was made"):
        logs.services.compaction(plan=found.digest).schedule()
    assert plan_names(logs) == []


def test_a_pending_clustering_stops_only_writes_to_its_file_groups(files: HudiTable) -> None:
    plan = plan_clustering(files, "x")
    files.upsert(rows(("b", "y", 20)))
    with pytest.raises(WriteConflictError, match=f"partition 'x' is being clustered by the plan of {plan.time}"):
        files.upsert(rows(("a", "x", 10)))
    assert contents(files) == [("a", "x", 1), ("b", "y", 20)]
    assert not load_timeline(files.context).pending[1:]


def test_new_rows_beside_a_pending_clustering_go_to_files_of_their_own(files: HudiTable) -> None:
    plan_clustering(files, "x")
    files.insert(rows(("c", "x", 3)))
    assert len([item for item in slices(files) if item.partition == "x"]) == 2
    assert ("c", "x", 3) in contents(files)


@pytest.mark.parametrize("operation", ["insert_overwrite", "delete_partition"])
def test_what_a_clustering_has_planned_cannot_be_replaced_meanwhile(files: HudiTable, operation) -> None:
    plan_clustering(files, "x")
    data, partitions = (None, ("x",)) if operation == "delete_partition" else (rows(("z", "x", 9)), ())
    with pytest.raises(WriteConflictError, match="is being clustered"):
        files.write(data, operation=operation, partitions=partitions)
    assert ("a", "x", 1) in contents(files)


def test_a_write_whose_snapshot_is_older_than_the_plan_of_a_clustering_fails_on_it(files: HudiTable) -> None:
    meanwhile = Meanwhile(lambda: plan_clustering(files, "x"))
    with pytest.raises(WriteConflictError, match="plans to rewrite the same file groups"):
        files.upsert(rows(("a", "x", 10)), engine=meanwhile)


def test_the_allowing_strategy_lets_updates_of_clustered_groups_through(files: HudiTable) -> None:
    plan_clustering(files, "x")
    files.upsert(rows(("a", "x", 10)), options=ALLOW)
    assert ("a", "x", 10) in contents(files)


def test_compaction_leaves_the_groups_of_a_pending_clustering_alone(logs: HudiTable) -> None:
    plan_clustering(logs, "x")
    found = logs.schedule_compaction(force=True)
    assert found is not None
    assert found.file_groups == 1
    held = held_groups(logs.context, load_timeline(logs.context))
    assert {partition for partition, _ in held} == {"x", "y"}


def test_the_plan_of_a_clustering_that_is_given_up_holds_nothing_and_cannot_be_executed(files: HudiTable) -> None:
    plan = plan_clustering(files, "x")
    assert resume(files.context, plan) is not None
    assert recovery.abort_plan(files.context, plan) == [plan.time]
    assert clustered_groups(files.context, load_timeline(files.context)) == {}
    files.upsert(rows(("a", "x", 10)))
    with pytest.raises(WriteConflictError, match="was given up"):
        resume(files.context, plan)
    assert contents(files) == [("a", "x", 10), ("b", "y", 2)]


def test_a_plan_that_is_given_up_for_good_leaves_the_timeline(files: HudiTable) -> None:
    plan = plan_clustering(files, "x")
    recovery.abort_plan(files.context, plan, confirmed_dead=True)
    timeline = load_timeline(files.context)
    assert pending_clusterings(files.context, timeline) == {}
    assert not timeline.claim_names(plan.time)


def test_a_plan_that_another_engine_has_executed_is_not_given_up(files: HudiTable) -> None:
    plan = plan_clustering(files, "x")
    before = {info.path for info in files.context.storage.list() if not info.path.startswith(".hoodie/.txn/")}
    done = f".hoodie/{plan.with_state(State.COMPLETED).file_name}"
    files.context.storage.put(done, CommitMetadata("CLUSTER", (), {}, {}).to_json())
    assert recovery.abort_plan(files.context, plan) == []
    after = {info.path for info in files.context.storage.list() if not info.path.startswith(".hoodie/.txn/")}
    assert after == before | {done}
    decision = chain.find_decision(files.context, plan.time, chain.read_tail(files.context).sequence)
    assert decision is not None
    assert decision[1].kind is Kind.PLAN


def test_a_write_that_is_refused_for_a_plan_leaves_nothing_pending_on_a_remote_store_either(
    files: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_clustering(files, "x")
    monkeypatch.setattr("hudi_table.write.attempt.is_remote", lambda storage: True)
    with pytest.raises(WriteConflictError, match="is being clustered"):
        files.upsert(rows(("a", "x", 10)))
    assert [i.time for i in load_timeline(files.context).pending] == [plan.time]


def foreign_rollback(table: HudiTable, target: Instant) -> str:
    """The plan of a rollback that another engine made and did not carry out."""
    time = "20981231000000000"
    table.context.storage.put(
        f".hoodie/{time}.rollback.requested", rollback_plan(table.context, target.with_state(State.INFLIGHT), [])
    )
    return time


def test_a_clustering_that_another_engine_rolls_back_is_not_executed_but_given_up_by_recovery(files: HudiTable) -> None:
    plan = plan_clustering(files, "x")
    foreign_rollback(files, plan)
    with pytest.raises(WriteConflictError, match=f"another engine rolls {plan.time} back"):
        resume(files.context, plan)
    recovery.recover(files.context, load_timeline(files.context))
    decision = chain.find_decision(files.context, plan.time, chain.read_tail(files.context).sequence)
    assert decision is not None
    assert decision[1].kind is Kind.ABORT
    later = aged(files).context
    recovery.recover(later, load_timeline(later))
    assert not load_timeline(files.context).pending
    files.upsert(rows(("a", "x", 10)))
    assert contents(files) == [("a", "x", 10), ("b", "y", 2)]


def test_a_compaction_of_which_another_engine_takes_an_attempt_back_keeps_its_plan(logs: HudiTable) -> None:
    plan = logs.schedule_compaction(force=True)
    assert plan is not None
    foreign_rollback(logs, Instant(plan.instant, Action.COMPACTION, State.REQUESTED))
    recovery.recover(logs.context, load_timeline(logs.context), eager=True)
    assert plan_names(logs) == [f"{plan.instant}.compaction.requested"]
    with pytest.raises(WriteConflictError, match="another engine rolls"):
        logs.run_compaction(plan.instant)


def test_a_write_that_another_engine_has_begun_to_take_back_is_not_published_again(logs: HudiTable) -> None:
    newest = load_timeline(logs.context).commits[-1]
    store = logs.context.storage
    store.delete(f".hoodie/{newest.file_name}")
    time = foreign_rollback(logs, newest)
    other = open_table(logs.base_path).context
    recovery.recover(other, load_timeline(other), eager=True)
    begin(other, Action.DELTA_COMMIT).withdraw()
    assert newest.time not in {i.time for i in load_timeline(other).commits}
    assert contents(logs) == [("a", "x", 1), ("b", "y", 2)]
    later = aged(logs).context
    recovery.recover(later, load_timeline(later))
    assert f"{time}.rollback" in load_timeline(other).files
    assert not load_timeline(other).pending
    assert not any(item.logs for item in slices(logs))
    logs.upsert(rows(("a", "x", 11)))
    assert contents(logs) == [("a", "x", 11), ("b", "y", 2)]


def copied_log(table: HudiTable, token: str, writer: str) -> str:
    """A log in x as Hudi 1.1.1 would write it: behind the last one, with a token that it took over
    and blocks of `writer`."""
    last = next(item for item in slices(table) if item.partition == "x").logs[-1]
    data = without_check_sums(table.context.storage.get(last.path)).replace(str(last.instant).encode(), writer.encode())
    path = f"x/{replace(last.name, version=last.name.version + 1, token=token)}"
    table.context.storage.put(path, data)
    return path.rpartition("/")[2]


def planned_logs(table: HudiTable) -> set[str]:
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    found = planned_slices(table.context, Instant(plan.instant, Action.COMPACTION, State.REQUESTED))
    return {name for item in found for name in item.logs if item.partition == "x"}


def test_a_log_of_a_pending_write_with_the_token_of_a_completed_one_is_not_planned(logs: HudiTable) -> None:
    (log,) = next(item for item in slices(logs) if item.partition == "x").logs
    pending = begin(open_table(logs.base_path).context, Action.DELTA_COMMIT)
    pending.inflight()
    copy = copied_log(logs, str(log.name.token), pending.time)
    assert planned_logs(logs) == {log.path.rpartition("/")[2]}
    assert copy in {path.path.rpartition("/")[2] for path in logs.context.storage.list("x")}


@pytest.mark.parametrize("token", ["of a pending write", "of no write", "0-1-2"])
def test_a_log_of_a_completed_write_is_planned_whatever_its_token_says(logs: HudiTable, token: str) -> None:
    (log,) = next(item for item in slices(logs) if item.partition == "x").logs
    pending = begin(open_table(logs.base_path).context, Action.DELTA_COMMIT)
    pending.inflight()
    times = {"of a pending write": pending.time, "of no write": "20981231000000000"}
    copy = copied_log(logs, log_write_token(times[token], 0) if token in times else token, str(log.instant))
    assert planned_logs(logs) == {log.path.rpartition("/")[2], copy}


def test_a_clustering_is_void_if_a_completed_write_came_in_a_log_with_the_token_of_a_pending_one() -> None:
    table = new_table(type="MergeOnRead")
    table.insert(rows(("a", "x", 1)))
    table.upsert(rows(("a", "x", 2)))
    (log,) = slices(table)[0].logs
    plan = plan_clustering(table, "x")
    pending = begin(open_table(table.base_path).context, Action.DELTA_COMMIT)
    pending.inflight()
    copied_log(table, log_write_token(pending.time, 0), str(log.instant))
    with pytest.raises(WriteConflictError, match="was written to since"):
        table.run_clustering(plan.time)
