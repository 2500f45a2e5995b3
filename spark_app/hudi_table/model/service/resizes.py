"""Changes of a bucket index's number of buckets: how a plan, a commit and `hoodie.properties` name
them.

The commit that rewrites a table into other buckets says so itself (`CHANGE`), so that files and
number change in one step. The properties keep the numbers (`HISTORY`) for when that commit has left
the timeline. All keys are ours; Hudi keeps them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

CHANGE = "hoodie.lakeops.bucket.resize"
"""`<before>:<after>`, in the extra metadata of the plan and of the commit."""
HISTORY = "hoodie.lakeops.bucket.resizes"
"""`<instant>:<before>:<after>` of committed resizes, a comma list, oldest first, in
`hoodie.properties`."""
STRATEGY = "dev.lakeops.hudi.BucketResize"
"""Stands in the plan where a clustering names its class."""

_CHANGE = re.compile(r"([1-9]\d*):([1-9]\d*)", re.ASCII)
_ENTRY = re.compile(r"(\d{14,}):([1-9]\d*):([1-9]\d*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Resize:
    """The commit `instant` made `before` buckets `after`."""

    instant: str
    before: int
    after: int

    @property
    def change(self) -> str:
        """As plans and commits name it."""
        return f"{self.before}:{self.after}"


def parse_change(instant: str, text: str | None) -> Resize | None:
    """What the extra metadata of `instant` says, None if nothing."""
    match = _CHANGE.fullmatch(text or "")
    return None if match is None else Resize(instant, int(match[1]), int(match[2]))


def parse_history(text: str | None) -> tuple[Resize, ...]:
    """The resizes that the properties know, oldest first; what is not legible is left out."""
    found = (_ENTRY.fullmatch(item.strip()) for item in (text or "").split(","))
    return tuple(sorted((Resize(m[1], int(m[2]), int(m[3])) for m in found if m), key=lambda item: item.instant))


def render_history(resizes: Iterable[Resize]) -> str:
    """The inverse of `parse_history`."""
    return ",".join(f"{item.instant}:{item.change}" for item in resizes)
