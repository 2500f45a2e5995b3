"""Clustering beside writers: when it is planned, what it writes, its conflicts, no row changed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError, WriteConflictError
from hudi_table.model.timeline.instants import Action
from hudi_table.services.clustering.execute import run_clustering
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.clustering_plans import clustering_body, pending_clusterings
from tests.hudi_table.write.test_conflicts import Meanwhile
from tests.support.crashes import copied, opened
from tests.support.written import INDEXES, contents, keys, last_commit, meta_rows, new_table, rows, slices

PLAN = "hoodie.clustering.plan.strategy."
NO_PACKING = {"hoodie.parquet.small.file.limit": "0"}
ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
INLINE = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3"}
SEMI = {"hoodie.clustering.schedule.inline": "true"}


@pytest.fixture(params=["CopyOnWrite", "MergeOnRead"])
def table(request: pytest.FixtureRequest) -> HudiTable:
    """Three small files in x and one in y; in the second table some of it in logs."""
    made = new_table(type=request.param)
    for number in range(3):
        made.insert(rows((f"a{number}", "x", 9 - number), (f"b{number}", "x", number)), options=NO_PACKING)
    made.insert(rows(("c", "y", 3)))
    made.upsert(rows(("a0", "x", 90)))
    made.delete(keys(("b1", "x")))
    return made


ROWS = sorted([("a0", "x", 90), ("a1", "x", 8), ("a2", "x", 7), ("b0", "x", 0), ("b2", "x", 2), ("c", "y", 3)])


def pending(table: HudiTable) -> list[str]:
    return [i.time for i in pending_clusterings(table.context, load_timeline(table.context))]


def planned(table: HudiTable, **options: str) -> str:
    plan = table.schedule_clustering(options, force=True)
    assert plan is not None
    return plan.instant


def but_file_names(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: {name: row[name] for name in row if name != "_hoodie_file_name"} for key, row in found.items()}


def test_it_moves_rows_to_new_groups_and_changes_nothing_else(table: HudiTable) -> None:
    before, groups = meta_rows(table), {item.file_id for item in slices(table)}
    (done,) = table.cluster({PLAN + "sort.columns": "value"}, force=True)
    assert but_file_names(meta_rows(table)) == but_file_names(before)
    assert [done.figures[name] for name in ("fileGroups", "filesAfter", "rowsWritten")] == [4, 2, 6]
    after = slices(table)
    assert [(item.partition, len(item.logs)) for item in after] == [("x", 0), ("y", 0)]
    assert not groups & {item.file_id for item in after}
    names = {row["_hoodie_file_name"] for row in meta_rows(table).values()}
    assert names == {item.base.name for item in after if item.base}
    stored = table.scan(["value"]).to_arrow()["value"].to_pylist()
    assert stored[:5] == sorted(stored[:5])


def test_its_commit_is_one_of_hudi_and_names_the_groups_that_it_replaces(table: HudiTable) -> None:
    groups = {item.file_id for item in slices(table)}
    instant = planned(table)
    table.run_clustering(instant)
    newest = load_timeline(table.context).last_commit
    assert newest is not None
    assert newest.file_name == f"{instant}.replacecommit"
    metadata = last_commit(table)
    assert metadata.operation_type == "CLUSTER"
    assert {file_id for ids in (metadata.replaced or {}).values() for file_id in ids} == groups
    assert {(stat.prev_commit, stat.num_inserts == stat.num_writes) for stat in metadata.stats} == {("null", True)}


def test_a_time_travel_sees_the_old_files_and_an_incremental_query_none_of_it(table: HudiTable) -> None:
    moment = load_timeline(table.context).commits[-1].time
    table.cluster(force=True)
    assert len(table.scan(as_of=moment).to_arrow()) == len(ROWS)
    assert len(table.scan(query="incremental", since=moment).to_arrow()) == 0
    table.upsert(rows(("a1", "x", 80)))
    assert ("a1", "x", 80) in contents(table)


def test_every_executor_writes_the_same_bytes_whatever_memory_and_threads_it_has() -> None:
    table = new_table(schema=SCHEMA, partitioned=False)
    for start in range(0, 30_000, 10_000):
        table.insert(points(start, 10_000), options=NO_PACKING)
    planned(table, **{PLAN + "sort.columns": "x,y", PLAN + "target.file.max.bytes": "100000", **HILBERT})
    found = []
    for engine, memory in ((LocalEngine(1), 1 << 30), (LocalEngine(4), 1 << 18)):
        copy = opened(copied(table.context.storage))
        copy.cluster(engine=engine, max_memory=memory)
        paths = [item.base.path for item in slices(copy) if item.base]
        found.append({path: copy.context.storage.get(path) for path in paths})
    assert len(found[0]) > 1
    assert found[0] == found[1]


def test_a_plan_that_names_no_layout_is_linear_for_every_executor() -> None:
    table = new_table(schema=SCHEMA, partitioned=False)
    table.insert(points(0, 3_000))
    instant = planned(table, **{PLAN + "sort.columns": "x,y"})
    found = []
    for options in ({}, HILBERT):
        copy = opened(copied(table.context.storage))
        run_clustering(copy.context, instant, LocalEngine(1), options, max_memory=1 << 28)
        found.append({item.base.path: copy.context.storage.get(item.base.path) for item in slices(copy) if item.base})
    assert found[0] == found[1]


SCHEMA = pa.schema([("id", pa.string()), ("x", pa.int64()), ("y", pa.float64()), ("text", pa.string())])
HILBERT = {"hoodie.layout.optimize.strategy": "hilbert"}


def points(start: int, count: int) -> pa.Table:
    numbers = pa.array(range(start, start + count))
    mixed = pc.bit_wise_and(pc.multiply(numbers, 2654435761), 0xFFFF)
    return pa.table(
        {
            "id": pc.binary_join_element_wise("k", numbers.cast(pa.string()), ""),
            "x": mixed,
            "y": pc.divide(pc.bit_wise_and(pc.multiply(numbers, 40503), 0xFFFF).cast(pa.float64()), 3.0),
            "text": pc.binary_repeat("text ", pc.divide(mixed, 4_000)),
        }
    ).cast(SCHEMA)


@pytest.mark.parametrize("layout", ["linear", "z-order", "hilbert"])
def test_files_are_of_nearly_one_size_and_a_filter_reads_few_of_them(layout: str) -> None:
    """Two columns of a square: along a curve both halve, and a linear order serves the first."""
    table = new_table(schema=SCHEMA, partitioned=False)
    for start in range(0, 60_000, 15_000):
        table.insert(points(start, 15_000), options=NO_PACKING)
    before = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    target = sum(item.size for item in slices(table)) // 16
    options = {PLAN + "sort.columns": "x,y", PLAN + "target.file.max.bytes": str(target)}
    table.cluster(options | {"hoodie.layout.optimize.strategy": layout}, force=True)
    assert {row["id"]: row for row in table.scan().to_arrow().to_pylist()} == before
    sizes = [item.size for item in slices(table)]
    assert len(sizes) in (16, 17)
    assert max(sizes) / min(sizes) <= 1.25
    spans = [spans_of(table, item.file_id) for item in slices(table)]
    wanted = {"x": (0, 0x3FFF), "y": (0.0, 0x3FFF / 3)}
    read = [span for span in spans if all(span[c][0] <= wanted[c][1] for c in wanted)]
    assert len(read) <= len(sizes) * (0.35 if layout == "linear" else 0.25)


def spans_of(table: HudiTable, file_id: str) -> dict[str, tuple[Any, Any]]:
    found = table.scan(meta=True).to_arrow()
    mine = found.filter(pc.starts_with(found["_hoodie_file_name"], file_id))
    return {name: (pc.min(mine[name]).as_py(), pc.max(mine[name]).as_py()) for name in ("x", "y")}


def test_a_write_to_a_planned_group_is_refused_before_it_writes_and_elsewhere_writers_go_on(table: HudiTable) -> None:
    instant = planned(table, **{PLAN + "partition.selected": "x"})
    with pytest.raises(WriteConflictError, match=f"being clustered by the plan of {instant}"):
        table.upsert(rows(("a0", "x", 91)))
    table.upsert(rows(("c", "y", 30)))
    table.insert(rows(("new", "x", 1)))
    table.run_clustering(instant)
    assert contents(table) == sorted([*ROWS[:-1], ("c", "y", 30), ("new", "x", 1)])


def test_an_allowed_write_makes_the_plan_void_and_the_next_one_takes_its_rows(table: HudiTable) -> None:
    instant = planned(table)
    table.upsert(rows(("a0", "x", 91)), options=ALLOW)
    with pytest.raises(WriteConflictError, match="was written to since its clustering was planned"):
        table.run_clustering(instant)
    assert table.pending_clusterings() == []
    expected = sorted([("a0", "x", 91), *ROWS[1:]])
    assert contents(table) == expected
    (done,) = table.cluster(force=True)
    assert (contents(table), done.figures["rowsWritten"]) == (expected, 6)
    table.upsert(rows(("a0", "x", 92)))
    assert ("a0", "x", 92) in contents(table)


def test_an_allowed_write_while_it_is_executed_wins(table: HudiTable) -> None:
    instant, other = planned(table), open_table(table.base_path)
    beside = Meanwhile(lambda: other.upsert(rows(("a0", "x", 91)), options=ALLOW))
    with pytest.raises(WriteConflictError) as raised:
        table.run_clustering(instant, engine=beside)
    assert "is given up" in " ".join(raised.value.__notes__)
    assert contents(table) == sorted([("a0", "x", 91), *ROWS[1:]])
    assert table.pending_clusterings() == []


def test_a_writer_that_read_before_the_clustering_conflicts_with_it(table: HudiTable) -> None:
    other = open_table(table.base_path)
    with pytest.raises(WriteConflictError):
        table.upsert(rows(("a0", "x", 91)), engine=Meanwhile(lambda: other.cluster(force=True)))
    assert contents(table) == ROWS


def test_two_executors_at_once_and_a_third_later_make_one_commit(table: HudiTable) -> None:
    instant = planned(table, **{PLAN + "sort.columns": "value"})

    def execute(_: int) -> bool:
        mine = open_table(table.base_path)
        return run_clustering(mine.context, instant, LocalEngine(1), max_memory=1 << 28).replayed

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(execute, range(2)))
    assert table.run_clustering(instant).replayed
    assert contents(table) == ROWS
    done = [i for i in load_timeline(table.context).commits if i.action is Action.REPLACE_COMMIT]
    assert [i.time for i in done] == [instant]


def test_a_plan_takes_no_group_of_another_plan(table: HudiTable) -> None:
    first = planned(table, **{PLAN + "partition.selected": "y"})
    plan = table.schedule_clustering(force=True)
    assert plan is not None
    assert (plan.file_groups, plan.details[0].partition(":")[0]) == (3, "x")
    assert table.schedule_clustering(force=True) is None
    assert pending(table) == [first, plan.instant]
    assert [done.instant for done in table.cluster()] == [first, plan.instant]
    assert contents(table) == ROWS


def test_a_clustering_and_a_compaction_leave_each_other_their_groups() -> None:
    made = new_table(type="MergeOnRead")
    made.insert(rows(("a", "x", 1), ("b", "y", 1)))
    made.upsert(rows(("a", "x", 2)))
    compaction = made.schedule_compaction(force=True)
    assert compaction is not None
    made.upsert(rows(("b", "y", 2)))
    clustering = planned(made)
    assert made.schedule_compaction(force=True) is None
    made.run_clustering(clustering)
    made.run_compaction(compaction.instant)
    assert contents(made) == [("a", "x", 2), ("b", "y", 2)]


class TestModes:
    """The three modes of the plan: their counts, and that they count commits of Hudi's kind."""

    def inserted(self, made: HudiTable, number: int, options: dict[str, str]) -> None:
        made.insert(rows((f"k{number}", "x", number)), options=NO_PACKING | options)

    def test_inline_plans_and_executes_at_every_third_commit(self) -> None:
        made, files = new_table(), []
        for number in range(7):
            self.inserted(made, number, INLINE)
            files.append(len(slices(made)))
        assert files == [1, 2, 1, 2, 3, 1, 2]

    def test_asynchronous_plans_come_after_as_many_commits_and_none_before(self) -> None:
        made, options = new_table(), {"hoodie.clustering.async.max.commits": "3"}
        told = []
        for number in range(4):
            self.inserted(made, number, {})
            told.append(made.schedule_clustering(options))
        assert [plan is not None for plan in told] == [False, False, True, False]
        assert told[2] is not None
        assert told[2].why == "3 commits since the first"
        assert [done.figures["filesBefore"] for done in made.cluster(options)] == [3]

    def test_semi_asynchronous_plans_after_every_commit_but_never_beside_a_plan_that_waits(self) -> None:
        made, plans = new_table(), []
        for number in range(3):
            self.inserted(made, number, SEMI)
            plans.append(pending(made))
        assert plans[0] == plans[1] == plans[2] != []
        assert [done.figures["filesBefore"] for done in made.cluster()] == [1]
        self.inserted(made, 3, SEMI)
        assert [done.figures["filesBefore"] for done in made.cluster()] == [4]
        assert len(slices(made)) == 1

    def test_inline_executes_what_another_planned(self) -> None:
        made = new_table()
        self.inserted(made, 0, {})
        planned(made)
        self.inserted(made, 1, INLINE)
        assert pending(made) == []

    def test_both_inline_modes_at_once_and_tables_that_are_not_clustered_are_refused_before_a_write(self) -> None:
        made = new_table()
        with pytest.raises(InvalidOptionError, match=r"schedule\.inline exclude each other"):
            self.inserted(made, 0, INLINE | SEMI)
        with pytest.raises(InvalidOptionError, match="'Mine' is none of"):
            self.inserted(made, 0, INLINE | {PLAN + "class": "Mine"})
        buckets = new_table(index=INDEXES["bucket"])
        with pytest.raises(InvalidRequestError, match="bucket index"):
            buckets.upsert(rows(("a", "x", 1)), options=INLINE)
        assert [set(load_timeline(each.context).files) for each in (buckets, made)] == [{"hoodie.properties"}] * 2

    @pytest.mark.parametrize("inline", [INLINE, SEMI])
    def test_an_order_that_the_table_will_not_have_is_refused_before_anything_is_written(
        self, inline: dict[str, str]
    ) -> None:
        made = new_table()
        with pytest.raises(InvalidOptionError, match="cannot be sorted after the write: 'nope' is no column"):
            self.inserted(made, 0, inline | {PLAN + "sort.columns": "nope"})
        assert set(load_timeline(made.context).files) == {"hoodie.properties"}
        # A column that comes with these rows is one.
        more = rows(("a", "x", 1)).append_column("fresh", pa.array([1]))
        made.upsert(more, options=inline | {PLAN + "sort.columns": "fresh,_hoodie_record_key"})
        assert contents(made)[0][0] == "a"


INLINE_COMMITS = "hoodie.clustering.inline.max.commits"


def test_an_approved_dry_run_is_the_plan_that_runs_or_nothing(table: HudiTable) -> None:
    service, by_value = table.services.clustering, {PLAN + "sort.columns": "value"}
    seen = service(by_value, force=True).plan()
    assert seen is not None
    assert (seen.file_groups, seen.files_after, pending(table)) == (4, 2, [])
    made = service(by_value, plan=seen.digest).schedule()
    assert made is not None
    assert (made.digest, service.pending()) == (seen.digest, [made.instant])
    done = service.execute(made)
    assert done.figures["filesAfter"] == 2
    again = service({PLAN + "sort.columns": "id"}, force=True).plan()
    assert again is not None
    table.upsert(rows(("a0", "x", 91)))
    with pytest.raises(WriteConflictError, match="has changed since the plan was made"):
        service(by_value, plan=again.digest).schedule()
    with pytest.raises(WriteConflictError, match="plan 'nope' cannot be made again"):
        service(plan="nope").schedule()
    assert contents(table) == sorted([("a0", "x", 91), *ROWS[1:]])


def test_nothing_to_do_makes_no_claim(table: HudiTable) -> None:
    small = {PLAN + "small.file.limit": "0"}
    before = table.context.storage.list()
    assert table.cluster(small, force=True) == []
    assert table.preview_clustering() is not None
    assert table.context.storage.list() == before


def test_a_group_whose_rows_are_all_deleted_leaves_nothing() -> None:
    made = new_table(type="MergeOnRead")
    made.insert(rows(("a", "x", 1)))
    made.insert(rows(("b", "y", 1)))
    made.delete(keys(("a", "x")))
    (done,) = made.cluster({PLAN + "sort.columns": "value"}, force=True)
    assert (done.figures["filesAfter"], contents(made)) == (1, [("b", "y", 1)])
    made.upsert(rows(("a", "x", 2)))
    assert contents(made) == [("a", "x", 2), ("b", "y", 1)]


def test_a_table_without_meta_columns_is_clustered_too() -> None:
    made = new_table(options={"hoodie.populate.meta.fields": "false"})
    for number in range(3):
        made.write(rows((f"a{number}", "x", number)), operation="bulk_insert")
    made.cluster({PLAN + "sort.columns": "value"}, force=True)
    assert [len(slices(made)), contents(made)] == [1, [(f"a{n}", "x", n) for n in range(3)]]


def test_a_replacecommit_that_is_no_clustering_is_not_executed(table: HudiTable) -> None:
    table.context.storage.put(".hoodie/20990101000000000.replacecommit.requested", b"")
    with pytest.raises(InvalidRequestError, match="is no clustering"):
        table.run_clustering("20990101000000000")


def test_logs_of_a_plan_apply_in_their_order_in_whichever_it_names_them() -> None:
    made = new_table(type="MergeOnRead", index="Simple")
    made.insert(rows(("a", "x", 1), ("b", "x", 1)))
    made.upsert(rows(("a", "x", 2)))
    made.delete(keys(("a", "x")))
    instant = planned(made)
    (pending_plan,) = pending_clusterings(made.context, load_timeline(made.context)).values()
    (group,) = pending_plan.groups
    (item,) = group.slices
    assert len(item.logs) == 2
    backwards = replace(group, slices=(replace(item, logs=item.logs[::-1]),))
    body = clustering_body(made.context, replace(pending_plan, groups=(backwards,)))
    made.context.storage.put(f".hoodie/{instant}.replacecommit.requested", body)
    made.run_clustering(instant)
    assert contents(made) == [("b", "x", 1)]


def test_the_plan_says_how_rows_are_sorted_to_whoever_executes_it(table: HudiTable) -> None:
    planned(table, **{PLAN + "sort.columns": "value,city", **HILBERT})
    (plan,) = pending_clusterings(table.context, load_timeline(table.context)).values()
    assert plan.params == {PLAN + "sort.columns": "value,city", **HILBERT}
    assert plan.strategy.endswith(".SparkSortAndSizeExecutionStrategy")
