"""How rows of one key become one: Apache Hudi's payload classes as modes.

Facts (measured on Hudi 0.15.0, `docs/how-to/writing.md` has the table): what a class does differs
between copy-on-write, rows of one batch, log entries among each other, and logs over base rows.
Table version 6 stores the class; later versions store modes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_table.errors import UnsupportedTableError
from hudi_table.model.table.config import MergeMode
from hudi_table.model.table.merge_settings import LaterMerge, PartialUpdates

UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium sends for a large value that a change has not touched."""
_MODEL = "org.apache.hudi.common.model."


@dataclass(frozen=True, slots=True)
class Payload:
    """One payload class of Hudi.

    `combines`: rows of one key in a batch or a log are put together column by column, and an older
    row still fills the nulls of a newer one; otherwise one of them is chosen. `deletes_always`:
    flagged deletes do not look at ordering values (in base files; in logs they do). `marker`: the
    column and text (in any case) that flag a delete beside `_hoodie_is_deleted`. `ordering`: the
    only ordering field that the class works with.
    """

    class_name: str
    mode: MergeMode
    partial: PartialUpdates | None = None
    combines: bool = False
    deletes_always: bool = False
    marker: tuple[str, str] | None = None
    ordering: str | None = None

    @property
    def event_time(self) -> bool:
        """Whether ordering values decide between a new row and a stored one."""
        return self.mode is MergeMode.EVENT_TIME


_ALL = (
    Payload(_MODEL + "OverwriteWithLatestAvroPayload", MergeMode.COMMIT_TIME),
    Payload(_MODEL + "DefaultHoodieRecordPayload", MergeMode.EVENT_TIME),
    Payload(
        _MODEL + "OverwriteNonDefaultsWithLatestAvroPayload", MergeMode.COMMIT_TIME, PartialUpdates.IGNORE_DEFAULTS
    ),
    Payload(
        _MODEL + "PartialUpdateAvroPayload",
        MergeMode.EVENT_TIME,
        PartialUpdates.IGNORE_DEFAULTS,
        combines=True,
        deletes_always=True,
    ),
    Payload(
        _MODEL + "debezium.PostgresDebeziumAvroPayload",
        MergeMode.EVENT_TIME,
        PartialUpdates.FILL_UNAVAILABLE,
        marker=("_change_operation_type", "d"),
        ordering="_event_lsn",
    ),
    Payload(_MODEL + "EventTimeAvroPayload", MergeMode.EVENT_TIME, deletes_always=True),
    Payload(_MODEL + "AWSDmsAvroPayload", MergeMode.COMMIT_TIME, marker=("Op", "D")),
)
PAYLOADS: Mapping[str, Payload] = {payload.class_name: payload for payload in _ALL}
_BY_SHORT_NAME = {name.rpartition(".")[2]: payload for name, payload in PAYLOADS.items()}


def payload_named(name: str) -> Payload:
    """The payload of a class name, with or without its package. Raises UnsupportedTableError for
    one that is none of ours."""
    found = _BY_SHORT_NAME.get(name.rpartition(".")[2])
    if found is None:
        raise UnsupportedTableError(f"merging by {name} is not supported by this release{_why_not(name)}")
    return found


def payload_of(mode: MergeMode, partial: PartialUpdates | None = None) -> Payload:
    """The payload that does this. Raises UnsupportedTableError where table version 6 has none."""
    for payload in _ALL:
        if (payload.mode, payload.partial) == (mode, partial):
            return payload
    raise UnsupportedTableError(
        f"table version 6 has no payload class for partial updates {partial} by {mode.value}: "
        "FillUnavailable goes by event time"
    )


def payload_as(later: LaterMerge, stored: str = "") -> Payload | None:
    """The payload class of a merge in the words of versions 8 and 9: the one that the table stores,
    if it does this, else the first that does; None where no class does."""
    first = [PAYLOADS[stored]] if stored in PAYLOADS else []
    return next((payload for payload in (*first, *_ALL) if _does(payload, later)), None)


def _does(payload: Payload, later: LaterMerge) -> bool:
    one = len(later.ordering) <= 1 and payload.ordering in (None, *later.ordering)
    told = (bool(later.ordering), later.partial, later.marker)
    return one and not later.refused and (payload.event_time, payload.partial, payload.marker) == told


def _why_not(name: str) -> str:
    if name.endswith("MySqlDebeziumAvroPayload"):
        return ": it orders by two numbers, which version 9 compares as two ordering_fields without a class"
    return f"; supported are {', '.join(_BY_SHORT_NAME)}"
