"""What the timeline has passed is older than its oldest completed write: it may be archived."""

from __future__ import annotations

from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.commit.publish import materialise
from hudi_table.table.timeline.active import load_timeline
from tests.support.tables import commit_buckets, new_context


def test_an_instant_is_passed_by_the_oldest_completed_write_and_by_no_other() -> None:
    ctx = new_context()
    assert not load_timeline(ctx).has_passed("0")
    time = commit_buckets(ctx, [0])
    first = load_timeline(ctx).commits[0].time
    assert first < time
    found = {each: load_timeline(ctx).has_passed(each) for each in (str(int(first) - 1), first, time, "9" * 17)}
    assert list(found.values()) == [True, False, False, False]


def test_the_plan_of_the_oldest_instant_does_not_come_back() -> None:
    """Archiving takes it away before the completed file."""
    ctx = new_context()
    commit_buckets(ctx, [0])
    first = load_timeline(ctx).commits[0]
    plan = Instant(first.time, Action.REPLACE_COMMIT, State.REQUESTED)
    ctx.storage.put(ctx.layout.timeline_path(plan.with_state(State.INFLIGHT).file_name), b"")
    materialise(ctx, ChainEntry.of(Kind.PLAN, first.time, "an attempt", (), plan.file_name, b"a plan"))
    assert plan.file_name not in load_timeline(ctx).files
