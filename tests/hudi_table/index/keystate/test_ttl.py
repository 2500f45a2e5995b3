"""What a key state keeps by `index.state.ttl`: in the zone of the table's timeline, whatever that
of the process is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.model.names import PROPERTIES
from hudi_table.model.table.index_properties import STATE_TTL
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline.context import TableContext
from tests.support.written import contents, new_table, rows


class Later(SystemClock):
    """A clock of some hours later."""

    def __init__(self, hours: float) -> None:
        self.hours = hours

    def now(self) -> datetime:
        return super().now() + timedelta(hours=self.hours)


@pytest.fixture(params=["UTC+8", "UTC-8"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The zone of this process, west and east of UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("kept", ["LOCAL", "UTC"])
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_what_is_too_old_is_told_in_the_zone_of_the_tables_timeline(
    zone: None, kept: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del zone
    with monkeypatch.context() as patched:
        # Founded long before, in whatever zone: no instant that follows is drawn by that of the foundation.
        patched.setattr(SystemClock, "now", lambda _: datetime.now(UTC) - timedelta(days=3))
        store = new_table(index="KeyState", type=kind).context.storage
    written = store.get(PROPERTIES)
    store.put(PROPERTIES, written.replace(b"timeline.timezone=UTC", f"timeline.timezone={kept}".encode()))
    store.delete(".hoodie/.txn/properties")
    ctx = open_context(store)
    assert ctx.config.timezone == kept
    clock = Later(0)
    later = HudiTable(TableContext(store, ctx.config, clock, ctx.metadata, ctx.settings))
    table = HudiTable(ctx)
    hour = {STATE_TTL: str(1 / 24)}
    later.upsert(rows(("a", "x", 1)))
    clock.hours = 0.9
    later.upsert(rows(("a", "y", 2)), options=hour)
    assert contents(table) == [("a", "y", 2)]
    clock.hours = 2
    later.upsert(rows(("a", "z", 3)), options=hour)
    assert contents(table) == [("a", "y", 2), ("a", "z", 3)]
