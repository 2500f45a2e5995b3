"""Drawing instants: max(clock in the timeline's zone, everything known + 1 ms)."""

from __future__ import annotations

from datetime import UTC, datetime

from hudi_table.errors import CorruptTableError
from hudi_table.model.names import HOODIE
from hudi_table.model.table.config import TableConfig
from hudi_table.model.timeline.instants import comparable_time, format_instant_time, next_instant_time
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext

_STORE_CLOCK = ".hoodie/.txn/clock"


def local_now(ctx: TableContext) -> datetime:
    """The present moment in the timeline's zone, naive, as instants are."""
    return local_time(ctx, ctx.clock.now())


def local_time(ctx: TableContext, moment: datetime) -> datetime:
    """An aware moment in the timeline's zone, naive, as instants are."""
    return in_zone(ctx.config, moment)


def in_zone(config: TableConfig, moment: datetime) -> datetime:
    """The same of a table that is being made."""
    there = moment.astimezone() if config.timezone == "LOCAL" else moment.astimezone(UTC)
    return there.replace(tzinfo=None)


def draw_completion(ctx: TableContext, floor: str) -> str:
    """When a write completes that is decided now, behind decisions up to `floor`: later than these,
    and than all that was listed."""
    return draw_instant(ctx, max(floor, ctx.newest_listed))


def draw_instant(ctx: TableContext, floor: str = "") -> str:
    """A 17-digit instant time, greater than `floor` ('' for none), never below the clock.

    Tables with the timeline zone LOCAL are written in the zone of this process, as Hudi does.
    """
    drawn = format_instant_time(local_now(ctx))
    floor = comparable_time(floor)[:17] if floor else ""
    try:
        return drawn if drawn > floor else next_instant_time(floor)
    except ValueError as error:
        raise CorruptTableError(
            f"the timeline or its chain holds the instant {floor}: {error}; a file under {HOODIE} is damaged, hudictl doctor says which",
            base_path=ctx.base_path,
            instant=floor,
        ) from error


def store_now(ctx: TableContext) -> datetime:
    """The store's present, of a table's storage."""
    return store_time(ctx.storage)


def store_time(storage: Storage) -> datetime:
    """The store's present: the time that it gives to an object written now."""
    retry.put(storage, _STORE_CLOCK, b"")
    return storage.head(_STORE_CLOCK).modified
