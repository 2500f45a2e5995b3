"""What is asked of a source of type Hudi, as a JobSpec says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.ranges import Range
from hudi_table.model.timeline.instants import parse_instant_time

_STARTS = ("Earliest", "Latest")


@dataclass(frozen=True, slots=True)
class HudiSettings:
    """`location`: the other table. `starts_latest`: an ingest without a checkpoint takes only what
    changes from now on. `deletes`: rows that are deleted there are deleted here. `max_instants`: of
    one commit, rewrites not counted, 0 for all that wait. `continues`: where the changes can no
    longer be told all rows are taken again. `within`: what changed by the commits of a range
    alone."""

    location: str
    starts_latest: bool = False
    deletes: bool = False
    max_instants: int = 0
    continues: bool = False
    within: Range | None = None

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> HudiSettings:
        """Of the source of a JobSpec. Raises InvalidRequestError."""
        raw: Mapping[str, Any] = source.get("hudi") or {}
        start, deletes = str(raw.get("startFrom", "Earliest")), str(raw.get("deletes", "Ignore"))
        loss, most = str(raw.get("onDataLoss", "Stop")), raw.get("maxInstants") or 0
        if not raw.get("location"):
            raise InvalidRequestError("hudi.location is missing: the location of the table that is followed")
        for name, value, known in (
            ("startFrom", start, _STARTS),
            ("deletes", deletes, ("Ignore", "Delete")),
            ("onDataLoss", loss, ("Stop", "Continue")),
        ):
            if value not in known:
                raise InvalidRequestError(f"hudi.{name} {value!r} is none of {', '.join(known)}")
        if not isinstance(most, int) or most < 0:
            raise InvalidRequestError(f"hudi.maxInstants {most!r} is no number of instants")
        within = Range.of(source)
        if within is not None:
            _check_range(within, latest=start == "Latest", deletes=deletes == "Delete")
        return cls(str(raw["location"]), start == "Latest", deletes == "Delete", most, loss == "Continue", within)


def _check_range(within: Range, *, latest: bool, deletes: bool) -> None:
    """Raises InvalidRequestError."""
    for name, text in (("since", within.begin), ("until", within.end)):
        try:
            if text:
                parse_instant_time(text)
        except ValueError as error:
            raise InvalidRequestError(f"range.{name}: {error}") from error
    if latest:
        raise InvalidRequestError("a range does not begin at Latest: leave hudi.startFrom out")
    if deletes:
        # A row that came again with the ordering value that it had before is not older than its delete.
        raise InvalidRequestError("hudi.deletes Delete does not go with a range: an old delete could take a newer row")
