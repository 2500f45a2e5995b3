"""Two who draw one time, as the simulator found them."""

from __future__ import annotations

from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from tests.support.crashes import LAYOUTS, opened, prepared, read, rows

SIMPLE = next(layout for layout in LAYOUTS if layout.index.value == "Simple" and not layout.partitioned)


def test_the_plan_of_an_index_is_not_that_of_a_withdrawn_rollback_of_its_time() -> None:
    """The late inflight file of the rollback was taken for one that is to be carried out: every
    write looked for its plan, which was gone."""
    store = prepared(SIMPLE)
    ctx = opened(store).context
    time = str(int(load_timeline(ctx).newest_time) + 1)
    tail = chain.read_tail(ctx)
    plan = ChainEntry.of(Kind.PLAN, time, "planner", (), f"{time}.indexing.requested", b"", max_instant=time)
    chain.put_entry(ctx, tail.sequence + 1, plan)
    store.put(ctx.layout.timeline_path(f"{time}.rollback.inflight"), b"")
    opened(store).write(rows(("z", "x", 90)), operation="upsert")
    assert ("z", "x", 90) in read(store)
