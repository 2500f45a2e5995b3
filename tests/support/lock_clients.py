"""Clients of locks that share one simulated time, each with a clock of its own on the wall."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class SharedTime:
    """Seconds since the beginning."""

    seconds: float = 0.0


@dataclass
class SkewedClock:
    """The clock of one machine, which shows so many seconds more than it is."""

    time: SharedTime = field(default_factory=SharedTime)
    ahead: float = 0.0

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.time.seconds + self.ahead)

    def boot_seconds(self) -> float:
        return self.time.seconds

    def sleep(self, seconds: float) -> None:
        self.time.seconds += seconds
