"""A table that is followed, commit after commit, while writes, services and moves between versions
befall it in random order.

Matrix: {by keys, bucket} × {copy-on-write, merge-on-read} × {version 6, 9} × {stays, moves to other
versions}; drawn per history: {without a metadata table, with one}, how many instants one batch
takes. Each batch leads to what the table held at its last commit. What can no longer be told is
said, and all rows are taken again.

Omitted: what an ingest does with a batch (`tests/hudi_spark/jobs/test_ingest_hudi.py`), drivers
(`test_follow_hudi.py` beside it), what the machine of moves asks (`test_moving_machine.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import initialize, invariant, precondition, rule

from hudi_table.errors import DataLossError
from hudi_table.model.job.upstream import Upstream
from hudi_table.model.names import IS_DELETED
from hudi_table.sources.hudi.settings import HudiSettings
from hudi_table.sources.hudi.source import HudiBatch, HudiSource, extent_of
from hudi_table.table.timeline.active import load_timeline
from tests.hudi_table.test_moving_machine import MovedTable
from tests.hudi_table.test_services_machine import Rows
from tests.support.histories import run_histories
from tests.support.scale import scaled

STEPS = 25
seen: Counter[str] = Counter()


class FollowedTable(MovedTable):
    """A table beside a dictionary that follows it."""

    moves = True

    @initialize(metadata=st.booleans(), index=st.sampled_from(["Simple", "Bloom"]), most=st.sampled_from([0, 1, 2]))
    def create(self, metadata: bool, index: str, most: int) -> None:
        self.asked = HudiSettings("above", deletes=True, max_instants=most)
        self.followed: Rows = {}
        self.before: Upstream | None = None
        super().create(metadata, index)

    @precondition(lambda self: self.moves)
    @rule(to=st.sampled_from((6, 8, 9)))
    def move(self, to: int) -> None:
        super().move(to)

    @precondition(lambda self: self.moves)
    @rule()
    def move_far(self) -> None:
        super().move_far()

    @rule()
    def follow(self) -> None:
        while True:
            context = self.table.context
            waits = extent_of(context, self.before)
            try:
                source = HudiSource(context, self.asked, "one")
                batch = source.plan(source.discover(), self.before)
            except DataLossError:
                assert waits.lost or waits.commits
                seen["losses told"] += 1
                self.before = None
                continue
            if batch is None:
                break
            assert waits.commits
            self._take(batch)
        timeline = load_timeline(context)
        # A write that is pending may still come between, and in version 6 a clustering may be one.
        if timeline.layout.tells_completions or not any(instant.is_write for instant in timeline.pending):
            assert self.followed == self.rows

    @rule()
    def follow_again(self) -> None:
        self.follow()

    @invariant()
    def savepoints_show_what_they_keep(self) -> None:
        """Asked elsewhere."""

    @invariant()
    def the_past_leads_here(self) -> None:
        """Asked elsewhere."""

    def _take(self, batch: HudiBatch) -> None:
        rows = batch.read()
        if batch.is_whole:
            self.followed = {}
        for row in rows.batches.read_all().to_pylist():
            key = row["id"], row["city"]
            if row[IS_DELETED]:
                self.followed.pop(key, None)
            else:
                self.followed[key] = row["value"]
        self.before = batch.checkpoint
        seen["batches taken"] += 1
        held = [held for instant, held in self.past if instant == self.before.instant]
        assert self.followed == (held or [self.followed])[-1], f"at {self.before.instant}"


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize("logs", [False, True], ids=["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("buckets", [False, True], ids=["keys", "bucket"])
@pytest.mark.parametrize("moves", [False, True], ids=["stays", "moves"])
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.timeout(1800)
def test_who_follows_a_table_through_a_random_history_holds_what_it_holds(
    version: int, moves: bool, buckets: bool, logs: bool, figure: Callable[[int, str], None]
) -> None:
    before = seen.copy()
    made = {"version": version, "moves": moves, "buckets": buckets, "logs": logs}
    machine = type("Followed", (FollowedTable,), made)
    run_histories(machine, scaled(20, quick=2), STEPS)
    for what, number in sorted((seen - before).items()):
        figure(number, f"{what} by followers of random histories")
