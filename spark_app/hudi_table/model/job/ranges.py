"""The range of a source that an ingest of mode Backfill takes, of every source but topics of Kafka:
from a place on, to before another one, as texts that the source itself understands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.checkpoint import SourceFile

MODIFIED, NAME = "Modified", "Name"
RANGED = ("Files", "Jdbc", "Kinesis", "Hudi")
"""Sources that have such ranges."""


@dataclass(frozen=True, slots=True)
class Range:
    """From `begin`, "" where it has none, to before `end`. `by`: of files, what of them lies in
    it."""

    end: str
    begin: str = ""
    by: str = MODIFIED

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Range | None:
        """Of the source of a JobSpec, None where it says none. Raises InvalidRequestError that
        names the field."""
        raw = source.get("range")
        if raw is None:
            return None
        end, begin, by = str(raw.get("until") or ""), str(raw.get("since") or ""), str(raw.get("by", MODIFIED))
        kind = str(source.get("type"))
        if kind not in RANGED:
            raise InvalidRequestError(f"range belongs to types {', '.join(RANGED)}, and not to {kind}")
        if not end:
            raise InvalidRequestError("range.until is missing: where the range ends")
        if by not in (MODIFIED, NAME) or (by == NAME and kind != "Files"):
            raise InvalidRequestError(f"range.by is {by!r}; give {MODIFIED}, or of type Files {NAME}")
        found = cls(end, begin, by)
        if kind in ("Files", "Kinesis") and by == MODIFIED:
            since, until = found.moments()
            empty = since is not None and since >= until
        else:
            empty = kind != "Jdbc" and bool(begin) and begin >= end
        if empty:
            raise InvalidRequestError(
                f"range.until {end} does not lie behind range.since {begin}: nothing is between them"
            )
        return found

    def moments(self) -> tuple[datetime | None, datetime]:
        """From which moment to before which. Raises InvalidRequestError for texts that are none."""
        return _moment(self.begin, "since") if self.begin else None, _moment(self.end, "until")

    def files(self, found: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
        """Those that lie in the range."""
        if self.by == NAME:
            return tuple(each for each in found if self.begin <= each.path < self.end)
        begin, end = self.moments()
        return tuple(each for each in found if (begin is None or begin <= each.modified) and each.modified < end)


def _moment(text: str, name: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise InvalidRequestError(f"range.{name} is {text!r}; give a moment such as 2026-01-31T12:00:00Z")
    return found
