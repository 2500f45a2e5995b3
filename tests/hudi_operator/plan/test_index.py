"""What is planned about measurements of an index: when a job is asked for one, what the status
keeps, and which advice is an event."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_operator.api.schema import to_document
from hudi_operator.api.status import IndexStatus, RunStatus
from hudi_operator.plan.effects import Emit, Launch, SetStatus
from hudi_operator.plan.index import MEASURED_AGE, MEASURED_COMMITS, newest
from hudi_operator.plan.observed import FileFact, Observed, ObservedService, Problem, TableObservation
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.plan.service import plan_service
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.jobspec import MEASURE_INDEX
from hudi_table.model.table.config import IndexSpec, IndexType
from hudi_table.model.timeline.instants import Action, Instant, State
from tests.support.plans import COMMIT, CONFIG, FILES, NOW, desired, of, seen, status_of, table
from tests.support.service_plans import service

FULL = "the bloom filters of 3 of 16 files are too full: one lets 12.3% of the keys pass; write with num_entries=130000"
READS = "index Bloom would read 1.18 MiB instead of 412 MiB: a write opens 1,234 files to find keys in 3 of them"
BLOOM = IndexStatus("Bloom", COMMIT.time, (FULL,), None, rfc3339(NOW - timedelta(hours=1)))


def of_type(kind: IndexType, **changes: Any) -> TableObservation:
    return table(*FILES[:1], **{"config": replace(CONFIG, index=IndexSpec(kind)), **changes})


def asked(found: TableObservation | None, last: IndexStatus | None) -> bool:
    """Whether the ingest that is due is to measure."""
    status = {"index": to_document(last)} if last is not None else None
    index = {"type": found.config.index.type.value} if found is not None and found.config.index else {"type": "Simple"}
    (launch,) = of(Launch, plan_table(desired(status, index=index), seen(found), NOW))
    return bool(launch.spec.work.get(MEASURE_INDEX, False))


def after(last: IndexStatus | None, measured: IndexStatus | None, **more: Any) -> tuple[IndexStatus | None, list[Emit]]:
    """What the status keeps, and what is told."""
    found = more.pop("found", of_type(IndexType.BLOOM))
    status = {"index": to_document(last)} if last is not None else None
    wanted = desired(status, index={"type": "Bloom"}, ingest=None)
    effects = plan_table(wanted, Observed(table=found, measured=measured, **more), NOW)
    assert not of(Launch, effects)
    return status_of(effects).index, [emit for emit in of(Emit, effects) if emit.reason == "IndexAdvice"]


class TestAJobIsAskedToMeasure:
    def test_where_nothing_is_known_or_of_another_index(self) -> None:
        assert asked(of_type(IndexType.BLOOM), None)
        assert asked(of_type(IndexType.SIMPLE), BLOOM)
        assert not asked(of_type(IndexType.BLOOM), BLOOM)

    def test_where_the_last_measurement_is_a_day_old(self) -> None:
        for age, due in ((MEASURED_AGE, True), (MEASURED_AGE - timedelta(seconds=1), False)):
            assert asked(of_type(IndexType.BLOOM), replace(BLOOM, observed_at=rfc3339(NOW - age))) is due

    def test_where_as_many_writes_came_since_as_are_looked_at(self) -> None:
        for count in (MEASURED_COMMITS - 1, MEASURED_COMMITS):
            new = tuple(Instant(f"202601010001{i:05d}", Action.COMMIT, State.COMPLETED) for i in range(count))
            found = of_type(IndexType.BLOOM, commits=(COMMIT, *new))
            assert asked(found, BLOOM) is (count == MEASURED_COMMITS)

    @pytest.mark.parametrize("kind", [IndexType.CUSTOM, IndexType.CONSISTENT_BUCKET])
    def test_not_about_an_index_of_which_nothing_can_be_said(self, kind: IndexType) -> None:
        found = replace(of_type(kind), config=replace(CONFIG, index=IndexSpec(kind)))
        (launch,) = of(Launch, plan_table(desired(index=None), seen(found), NOW))
        assert MEASURE_INDEX not in launch.spec.work

    def test_not_about_a_table_that_is_small_or_is_not_there(self) -> None:
        small = (FileFact("2013/01", 1 << 20, 7),)
        assert not asked(of_type(IndexType.BLOOM, files=small), None)
        assert not asked(None, None)
        logged = (FileFact("2013/01", 1 << 20, 7, log_size=20 << 20),)
        assert asked(of_type(IndexType.BLOOM, files=logged), None)

    @pytest.mark.parametrize(("last", "due"), [(None, True), (BLOOM, False)])
    def test_by_a_service_as_by_an_ingest(self, last: IndexStatus | None, due: bool) -> None:
        owner = desired({"index": to_document(last)} if last else None, index={"type": "Bloom"}, ingest=None)
        observed = ObservedService(owner=owner, table=of_type(IndexType.BLOOM))
        (launch,) = of(Launch, plan_service(service(type="Cleaning"), observed, NOW))
        assert (MEASURE_INDEX in launch.spec.work) is due

    def test_when_it_resizes_whatever_was_measured_before(self) -> None:
        last = replace(BLOOM, type="Bucket")
        owner = desired({"index": to_document(last)}, ingest=None)
        observed = ObservedService(owner=owner, table=table())
        (launch,) = of(Launch, plan_service(service(type="Resize", mode="Plan"), observed, NOW))
        assert launch.spec.work[MEASURE_INDEX]


class TestTheStatus:
    def test_keeps_what_the_newest_job_has_measured(self) -> None:
        new = replace(BLOOM, advice=(READS,), better="Simple", observed_at=rfc3339(NOW))
        assert after(None, BLOOM)[0] == BLOOM
        assert after(BLOOM, new)[0] == new
        assert after(new, BLOOM)[0] == new, "an older job that is still there changes nothing"
        assert after(BLOOM, None)[0] == BLOOM, "jobs go after a day, what they said stays"

    def test_drops_advice_that_no_longer_holds(self) -> None:
        mended = replace(BLOOM, advice=(), observed_at=rfc3339(NOW))
        assert after(BLOOM, mended) == (mended, [])

    def test_drops_what_was_said_of_another_index(self) -> None:
        assert after(BLOOM, BLOOM, found=of_type(IndexType.SIMPLE)) == (None, [])

    def test_drops_what_was_said_of_a_table_that_is_gone_or_has_become_small(self) -> None:
        assert after(BLOOM, BLOOM, found=None)[0] is None
        assert after(BLOOM, BLOOM, found=of_type(IndexType.BLOOM, files=()))[0] is None

    def test_keeps_it_while_the_table_cannot_be_seen(self) -> None:
        problem = Problem("Unavailable", "no answer", retryable=True)
        assert after(BLOOM, None, found=None, problem=problem)[0] == BLOOM
        wrong = desired({"index": to_document(BLOOM)}, recordKey=None)
        assert wrong.errors
        assert status_of(plan_table(wrong, Observed(), NOW)).index == BLOOM

    def test_does_not_hold_it_twice(self) -> None:
        (launch,) = of(Launch, plan_table(desired(index={"type": "Bloom"}), seen(of_type(IndexType.BLOOM)), NOW))
        ran = replace(launch.run, phase="Succeeded", finished=rfc3339(NOW), index=BLOOM)
        observed = seen(of_type(IndexType.BLOOM), runs=(ran,), measured=BLOOM)
        (effect,) = of(SetStatus, plan_table(desired(index={"type": "Bloom"}), observed, NOW))
        assert effect.status["index"]["advice"] == [FULL]
        assert all("index" not in run for run in effect.status["runs"])


class TestAnEvent:
    def test_tells_advice_that_is_new(self) -> None:
        (event,) = after(None, BLOOM)[1]
        assert (event.type, event.reason, event.message) == ("Normal", "IndexAdvice", FULL)
        assert not after(BLOOM, BLOOM)[1]

    def test_is_not_made_where_only_figures_have_moved(self) -> None:
        moved = FULL.replace("3 of 16", "12 of 16").replace("12.3%", "1%").replace("130000", "140000")
        assert not after(BLOOM, replace(BLOOM, advice=(moved,), observed_at=rfc3339(NOW)))[1]

    def test_is_made_where_other_things_are_advised(self) -> None:
        other = replace(BLOOM, advice=(FULL, READS), better="Simple", observed_at=rfc3339(NOW))
        (event,) = after(BLOOM, other)[1]
        assert event.message == f"{FULL}; {READS}"

    def test_is_not_made_where_there_is_no_advice(self) -> None:
        assert not after(None, replace(BLOOM, advice=()))[1]


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_jobs_of_one_second_the_one_that_saw_the_later_write_has_measured_last(turned: bool) -> None:
    run = RunStatus(name="a", work="Ingest", phase="Succeeded", started=rfc3339(NOW), finished=rfc3339(NOW))
    later = replace(BLOOM, instant=str(int(COMMIT.time) + 1), advice=())
    runs = [replace(run, index=BLOOM), replace(run, index=later)]
    assert newest(reversed(runs) if turned else runs) == later
    assert newest([]) is None
