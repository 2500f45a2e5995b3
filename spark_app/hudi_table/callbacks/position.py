"""How far a receiver of commits is: after which moment, and which instants before it were still
open then.

An instant completes later than others that were requested after it. So a moment alone would leave
it out, and waiting for it would hold up all others: its time stands beside the moment until it has
completed, or is gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hudi_table.errors import InvalidOptionError
from hudi_table.model.timeline.instants import Instant, comparable_time
from hudi_table.read.moments import EARLIEST, Moment, instant_of

_TEXT = re.compile(r"(?P<after>\d{17}|0)\+(?P<open>(\d{14,17}(\+\d{14,17})*)?)", re.ASCII)
_START = "0"
OPEN_MAX = 500
"""Instants that a position names at the most, those that were requested last: what is open for long
is a plan, and of plans there are few."""


@dataclass(frozen=True, slots=True)
class Position:
    """`after`: a moment as instants are compared, '' before all of them. `open`: times of instants
    that it does not cover. `looked`: whether a timeline was listed for it, so that `open` is known;
    what a person gives is a moment alone."""

    after: str = ""
    open: tuple[str, ...] = ()
    looked: bool = False

    def __str__(self) -> str:
        if not self.looked:
            return self.after or EARLIEST
        return "+".join([self.after or _START, *self.open]) + ("" if self.open else "+")

    @classmethod
    def parse(cls, value: Moment, timezone: str) -> Position:
        """Of what was printed before, of a moment, or of `earliest`. Raises InvalidOptionError for
        another text."""
        if isinstance(value, str):
            if value == EARLIEST:
                return cls()
            if found := _TEXT.fullmatch(value):
                after = "" if found["after"] == _START else found["after"]
                return cls(after, tuple(found["open"].split("+")) if found["open"] else (), looked=True)
        try:
            return cls(instant_of(value, timezone))
        except InvalidOptionError:
            raise InvalidOptionError(
                f"since {value!r} is no position: give 17 digits yyyyMMddHHmmssSSS or a shorter prefix, an ISO time such as 2026-11-21T09:44:55Z, "
                "earliest, or what was printed as the next position"
            ) from None

    def lacks(self, instant: Instant) -> bool:
        """Whether it does not cover a completed instant."""
        return key_of(instant) > self.after or instant.time in self.open


def key_of(instant: Instant) -> str:
    """By what instants come after each other: when they completed where names tell that, else their
    own time."""
    return comparable_time(instant.moment)
