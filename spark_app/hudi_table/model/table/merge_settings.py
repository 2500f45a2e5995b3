"""How rows and log entries merge, as values: what a table's config holds, and who reads it from
properties."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PartialUpdates(StrEnum):
    """Which values of a new row leave the stored ones: nulls, or Debezium's marker."""

    IGNORE_DEFAULTS = "IgnoreDefaults"
    FILL_UNAVAILABLE = "FillUnavailable"


@dataclass(frozen=True, slots=True)
class LaterMerge:
    """How entries merge. `ordering`: the fields that are compared, in turn; none by commit time.
    `partial`: which values of the winner leave the other's. `marker`: column and text that flag a
    delete. `refused`: why this release cannot merge so, '' if it can."""

    ordering: tuple[str, ...] = ()
    partial: PartialUpdates | None = None
    marker: tuple[str, str] | None = None
    refused: str = ""
