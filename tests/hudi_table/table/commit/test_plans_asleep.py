"""A planner that sleeps beside the file of its plan: a plan that waits stays, though others have
dropped its claim meanwhile, because it is there; one that was archived does not come back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.publish import drop_claim
from hudi_table.table.store.ports import ObjectInfo, Storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.crashes import LATER_LOGS, LOG_LAYOUTS, Layout, opened, read, rows, with_logs
from tests.support.sleeping import Sleeps, waking

HOURS = 2 * 3600.0


class Passed:
    """A store for which the time of the sleep has passed since the decision."""

    def __init__(self, inner: Storage) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def head(self, path: str) -> ObjectInfo:
        found = self.inner.head(path)
        return replace(found, modified=found.modified - timedelta(seconds=HOURS)) if "/.txn/" in path else found


TWO = pytest.mark.parametrize("layout", [LOG_LAYOUTS[0], LATER_LOGS], ids=str)


def plan_of_a_compaction(call: str, path: str, data: bytes) -> bool:
    return path.endswith(".compaction.requested")


@TWO
def test_a_plan_stays_whose_maker_sleeps_behind_its_file(layout: Layout) -> None:
    store = with_logs(layout)

    def meanwhile() -> None:
        sleeper.context.clock.sleep(HOURS)
        helper = opened(store).context
        (claimed,) = load_timeline(helper).planner_claims
        drop_claim(helper, claimed)
        opened(store).write(rows(("a", "x", 70)), operation="upsert")

    sleeper = waking(Sleeps(store, plan_of_a_compaction, meanwhile, behind=True))
    assert sleeper.schedule_compaction(force=True) is not None
    assert [i.action for i in load_timeline(opened(store).context).pending] == [Action.COMPACTION]
    before = read(store)
    assert ("a", "x", 70) in before
    opened(store).compact()
    assert read(store) == before


@TWO
def test_a_plan_that_was_archived_while_its_maker_slept_before_its_file_does_not_come_back(layout: Layout) -> None:
    store = with_logs(layout)

    def meanwhile() -> None:
        sleeper.context.clock.sleep(HOURS)
        sleeps.inner = Passed(store)
        opened(store).compact()
        opened(store).write(rows(("a", "x", 70)), operation="upsert")
        context = opened(store).context
        newest = load_timeline(context).commits[-1].time
        for name in [name for name in load_timeline(context).files if name[:1].isdigit() and name < newest]:
            store.delete(context.layout.timeline_path(name))

    sleeps = Sleeps(store, plan_of_a_compaction, meanwhile)
    sleeper = waking(sleeps)
    sleeper.schedule_compaction(force=True)
    assert load_timeline(opened(store).context).pending == ()
