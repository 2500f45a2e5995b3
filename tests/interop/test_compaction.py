"""Compaction across engines: ours read while it is pending and when it is done, our plans executed
by Hudi, Hudi's by us."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.model.timeline.instants import planner_claim
from hudi_table.services.compaction.lost_files import compaction_at
from hudi_table.table.commit.decision import Decider
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.compaction_plans import planned_slices
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_matrix import upsert
from tests.interop.test_merge_on_read import COMPACTING, LOGS
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import META, assert_same_rows
from tests.support.taken_back import aged

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

STEPS = (("insert", range(20), 1), ("upsert", range(10, 24), 2), ("delete", range(0, 20, 5), 3))
LATER = (("upsert", range(5, 12), 4), ("delete", range(1, 20, 7), 5))
# Procedures of Hudi do not read them from the table, and a bucket index asks for them.
KEYS = "hoodie.datasource.write.recordkey.field=id,hoodie.bucket.index.hash.field=id,hoodie.metadata.enable=false"
TABLES = [("bucket", True), ("simple", False)]
tables = pytest.mark.parametrize(("index", "partitioned"), TABLES, ids=["bucket-partitioned", "simple-flat"])


def written(base: Path, index: str, partitioned: bool) -> tuple[HudiTable, Model, str, str]:
    """A table after `STEPS`, its rows, and the instants of the first two of them."""
    model = Model(partitioned=partitioned)
    ours.create(base, index=index, partitioned=partitioned, type="MergeOnRead")
    go_on(base, model, STEPS)
    table = open_table(str(base))
    since, moment = (i.time for i in load_timeline(table.context).commits[1:3])
    return table, model, since, moment


def go_on(base: Path, model: Model, steps: tuple[tuple[str, range, int], ...]) -> None:
    for operation, numbers, version in steps:
        data = rows(numbers, version)
        ours.write(base, operation, data)
        model.apply(operation, data)


def assert_all_queries(base: Path, oracle: HudiOracle, model: Model, since: str, moment: str) -> None:
    """Snapshot, read-optimised, time travel and incremental: as we answer, so does Hudi. hudi-rs
    misses what was written beside a pending plan (docs/reference/compatibility.md, case 28)."""
    table = open_table(str(base))
    plans = pending(table)
    missing = table.scan(as_of=plans[0], meta=True).to_arrow() if plans else None
    ours.assert_all_read(base, oracle, model.rows(), hudi_rs_sees=missing)
    asked = {
        "read-optimised": (
            table.scan(query="read_optimized", meta=True),
            {"hoodie__datasource__query__type": "read_optimized"},
        ),
        "as of": (table.scan(as_of=moment, meta=True), {"as__of__instant": moment}),
        "incremental": (
            table.scan(query="incremental", since=since, meta=True),
            {
                "hoodie__datasource__query__type": "incremental",
                "hoodie__datasource__read__begin__instanttime": since,
            },
        ),
    }
    for name, (mine, options) in asked.items():
        seen = oracle.read(base, **options)
        assert_same_rows(seen, mine.to_arrow(), columns=["id", *META], of=f"{oracle!r}, {name}")


def pending(table: HudiTable) -> list[str]:
    return [i.time for i in load_timeline(table.context).pending if i.action.value == "compaction"]


def compacted_by(oracle: HudiOracle, base: Path, instant: str) -> pa.Table:
    return oracle.sql(
        f"CALL run_compaction(op => 'run', path => '{base}', timestamp => {instant}, options => '{KEYS}')"
    )


@tables
def test_every_engine_reads_beside_our_pending_plan_and_hudi_executes_it(
    hudis: Hudis, tmp_path: Path, index: str, partitioned: bool
) -> None:
    base = tmp_path / "table"
    table, model, since, moment = written(base, index, partitioned)
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    # What a planner that died leaves: a claim that Hudi passes over.
    (base / ".hoodie" / planner_claim("20990101000000000")).touch()
    go_on(base, model, LATER)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        assert_all_queries(copy, oracle, expected, since, moment)
        compacted_by(oracle, copy, plan.instant)
        assert not pending(open_table(str(copy)))
        assert_all_queries(copy, oracle, expected, since, moment)
        go_on(copy, expected, (("upsert", range(3, 30, 4), 6),))
        open_table(str(copy)).compact(force=True)
        assert_all_queries(copy, oracle, expected, since, moment)

    hudis.each_on_a_copy(base, each)


@tables
def test_every_engine_reads_a_compaction_of_ours_that_was_taken_back_and_is_executed_again(
    hudis: Hudis, tmp_path: Path, index: str, partitioned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "table"
    table, model, since, moment = written(base, index, partitioned)
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    with monkeypatch.context() as changes:
        changes.setattr(Decider, "publish", lambda *_: None)
        table.run_compaction(plan.instant)
    assert chain.append_abort(table.context, chain.read_tail(table.context), plan.instant)
    go_on(base, model, LATER)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        assert pending(open_table(str(copy))) == [plan.instant]
        assert_all_queries(copy, oracle, expected, since, moment)
        aged(open_table(str(copy))).run_compaction(plan.instant)
        assert not pending(open_table(str(copy)))
        assert_all_queries(copy, oracle, expected, since, moment)
        upsert(oracle, copy, data := rows([6, 7, 11, 60, 61], 6), **LOGS)
        expected.apply("upsert", data)
        open_table(str(copy)).compact(force=True)
        assert_all_queries(copy, oracle, expected, since, moment)

    hudis.each_on_a_copy(base, each)


@tables
def test_every_engine_reads_and_goes_on_with_what_we_compacted(
    hudis: Hudis, tmp_path: Path, index: str, partitioned: bool
) -> None:
    base = tmp_path / "table"
    table, model, since, moment = written(base, index, partitioned)
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    go_on(base, model, LATER)
    table.run_compaction(plan.instant)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        assert_all_queries(copy, oracle, expected, since, moment)
        upsert(oracle, copy, data := rows([6, 7, 11, 60, 61], 6), **LOGS, **COMPACTING)
        expected.apply("upsert", data)
        assert_all_queries(copy, oracle, expected, since, moment)
        go_on(copy, expected, (("upsert", range(0, 70, 5), 7),))
        assert_all_queries(copy, oracle, expected, since, moment)

    hudis.each_on_a_copy(base, each)


@tables
def test_we_read_beside_a_pending_plan_of_hudi_write_on_and_execute_it(
    hudis: Hudis, tmp_path: Path, index: str, partitioned: bool
) -> None:
    base = tmp_path / "table"
    _, model, since, moment = written(base, index, partitioned)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected, mine = model.copy(), open_table(str(copy))
        options = f"hoodie.compact.inline.max.delta.commits=1,{KEYS}"
        oracle.sql(f"CALL run_compaction(op => 'schedule', path => '{copy}', options => '{options}')")
        (instant,) = pending(mine)
        assert_all_queries(copy, oracle, expected, since, moment)
        go_on(copy, expected, LATER)
        assert_all_queries(copy, oracle, expected, since, moment)
        result = mine.run_compaction(instant)
        assert result.figures["fileGroups"] > 0
        assert_all_queries(copy, oracle, expected, since, moment)
        upsert(oracle, copy, data := rows([6, 7, 11, 60, 61], 6), **LOGS)
        expected.apply("upsert", data)
        assert_all_queries(copy, oracle, expected, since, moment)

    hudis.each_on_a_copy(base, each)


@tables
def test_every_engine_reads_our_log_compaction_and_hudi_compacts_it(
    hudis: Hudis, tmp_path: Path, index: str, partitioned: bool
) -> None:
    """Executed after writes beside its plan: engines that apply its log and those that it stands
    for read the same."""
    base = tmp_path / "table"
    table, model, since, moment = written(base, index, partitioned)
    go_on(base, model, (("upsert", range(8, 14), 4),))
    plan = table.services.log_compaction(force=True).schedule()
    assert plan is not None
    go_on(base, model, LATER)
    (done,) = table.compact_logs()
    assert done.instant == plan.instant
    go_on(base, model, (("upsert", range(9, 12), 6),))

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        assert_all_queries(copy, oracle, expected, since, moment)
        mine = open_table(str(copy))
        mine.schedule_compaction(force=True)
        (instant,) = pending(mine)
        compacted_by(oracle, copy, instant)
        assert_all_queries(copy, oracle, expected, since, moment)

    hudis.each_on_a_copy(base, each)


@tables
def test_hudi_executes_a_compaction_whose_lost_files_were_given_up_and_goes_on_after_ours(
    hudis: Hudis, tmp_path: Path, index: str, partitioned: bool
) -> None:
    base = tmp_path / "table"
    table, model, _, _ = written(base, index, partitioned)
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    go_on(base, model, LATER)
    planned = planned_slices(table.context, compaction_at(plan.instant))
    lost = max((path for item in planned for path in item.log_paths), key=lambda path: (base / path).stat().st_size)
    (base / lost).unlink()
    table.rollback(plan.instant, lost=[lost])
    left = ours.read(base)
    told = set(zip(left["id"].to_pylist(), left["ts"].to_pylist(), strict=True))
    assert told != {(row["id"], row["ts"]) for row in model.rows()}

    def each(oracle: HudiOracle, copy: Path) -> None:
        second = copy.with_name(f"{copy.name}-ours")
        shutil.copytree(copy, second)
        compacted_by(oracle, copy, plan.instant)
        open_table(str(second)).rollback(plan.instant, lost=[lost], writers_stopped=True)
        for done in (copy, second):
            assert not pending(open_table(str(done)))
            assert_same_rows(ours.read(done), left, of=f"ours, {done.name}")
            assert_same_rows(oracle.read(done), left, columns=left.column_names, of=f"{oracle!r}, {done.name}")
            upsert(oracle, done, rows([6, 7, 11, 60, 61], 6), **LOGS)
            ours.write(done, "upsert", rows(range(0, 70, 5), 7))
            now = ours.read(done)
            assert {"k060", "k061"} <= set(now["id"].to_pylist())
            assert_same_rows(oracle.read(done), now, columns=now.column_names, of=f"{oracle!r} later, {done.name}")

    hudis.each_on_a_copy(base, each)


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
def test_an_index_of_hudi_that_looks_keys_up_misses_a_key_that_only_a_log_holds(
    hudis: Hudis, tmp_path: Path, index: str
) -> None:
    """Case 29 of docs/reference/compatibility.md: Hudi alone doubles such a key; our own upsert
    finds it."""

    def each(oracle: HudiOracle) -> None:
        base = tmp_path / oracle.version
        told = {
            "hoodie.table.name": "table",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.index.type": index,
            "hoodie.metadata.enable": "false",
        }

        def write(operation: str, numbers: range, version: int, **more: str) -> None:
            oracle.write(base, rows(numbers, version), told | {"hoodie.datasource.write.operation": operation} | more)

        write("upsert", range(9), 1)
        write("delete", range(3, 4), 2)
        options = f"hoodie.compact.inline.max.delta.commits=1,{KEYS}"
        oracle.sql(f"CALL run_compaction(op => 'schedule', path => '{base}', options => '{options}')")
        assert pending(open_table(str(base)))
        # A batch write of Hudi's executes the plans that wait, after its own commit.
        write("upsert", range(3, 4), 3)
        assert not pending(open_table(str(base)))
        copy = tmp_path / f"{oracle.version}-ours"
        shutil.copytree(base, copy)
        write("upsert", range(3, 4), 4)
        doubled = oracle.read(base, where="id = 'k003'")
        assert len(doubled) == 2
        ours.write(copy, "upsert", rows(range(3, 4), 4), options={"hoodie.index.type": index})
        assert len(oracle.read(copy, where="id = 'k003'")) == len(ours.read(copy).filter(pc.field("id") == "k003")) == 1

    hudis.each(each)
