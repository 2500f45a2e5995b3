"""The smallest and the largest event time of the rows that a task writes, as Hudi records them in
its write stats.

Facts (Hudi 1.1.1, its classes read): `minEventTime` and `maxEventTime` are milliseconds since 1970;
a value of ten digits counts seconds, one of thirteen milliseconds, any other is passed over. Beyond
Hudi, columns of timestamps and dates are understood, whatever their unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.known import EVENT_TIME_FIELD
from hudi_table.model.timeline.commits import MAX_EVENT_TIME, MIN_EVENT_TIME, WriteStat
from hudi_table.table.rows.merge import deleted

_DIGITS = "^([0-9]{10}|[0-9]{13})$"


@dataclass(slots=True)
class EventTimes:
    """What was seen so far of a column, in milliseconds; nothing where no column is followed."""

    column: str | None = None
    least: int | None = None
    most: int | None = None

    def see(self, rows: pa.Table) -> None:
        """Take in rows that are written; those that delete are none."""
        if self.column is None or self.column not in rows.schema.names:
            return
        kept = rows.filter(pa.array(~deleted(rows)))
        found = pc.min_max(_millis(kept.column(self.column))).as_py()
        if found["min"] is not None:
            self.least = found["min"] if self.least is None else min(self.least, found["min"])
            self.most = found["max"] if self.most is None else max(self.most, found["max"])

    def stamped(self, stats: Iterable[WriteStat]) -> tuple[WriteStat, ...]:
        """The stats of the files that the rows went to, with what was seen of them all."""
        if self.most is None:
            return tuple(stats)
        times = {MIN_EVENT_TIME: self.least, MAX_EVENT_TIME: self.most}
        return tuple(replace(stat, extra={**stat.extra, **times}) for stat in stats)


def check_event_time(column: str | None, schema: pa.Schema) -> None:
    """Raise InvalidOptionError for a column that is not there, or holds no times."""
    if column is None:
        return
    place = schema.get_field_index(column)
    if place < 0:
        raise InvalidOptionError(
            f"option {EVENT_TIME_FIELD!r} names {column!r}, which is no column; there are {', '.join(schema.names)}"
        )
    kind = schema.field(place).type
    known = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_timestamp, pa.types.is_date)
    if not any(is_one(kind) for is_one in known):
        raise InvalidOptionError(f"option {EVENT_TIME_FIELD!r} names {column!r}, whose type {kind} is no time")


def _millis(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Milliseconds since 1970, null where a value is no time."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    text = column.cast(pa.string())
    known = pc.if_else(pc.match_substring_regex(text, _DIGITS), text, None)
    number = known.cast(pa.int64())
    return pc.if_else(pc.equal(pc.utf8_length(known), 10), pc.multiply(number, 1000), number)
