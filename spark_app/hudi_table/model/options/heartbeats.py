"""How often a writer shows that it is alive, and how long others wait for it, by Hudi's own
options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_table.model.options.values import whole

INTERVAL = "hoodie.client.heartbeat.interval_in_ms"
MISSES = "hoodie.client.heartbeat.tolerable.misses"
_MILLIS = 1000.0
_BEATS_MIN = 4
"""Beats within the time that others wait: some may be late, or lost."""


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """Apache Hudi takes a writer for dead that has missed so many heartbeats, which come every
    `interval` seconds."""

    interval: float = 60.0
    misses: int = 2

    @property
    def tolerance(self) -> float:
        """Seconds without a heartbeat after which lazy cleaning takes a write for failed."""
        return self.interval * self.misses

    @property
    def period(self) -> float:
        """Seconds between two heartbeats of ours."""
        return min(self.interval, self.tolerance / _BEATS_MIN)


def heartbeat_settings(options: Mapping[str, str]) -> HeartbeatSettings | None:
    """What the options say; None if they say nothing. Raises InvalidOptionError."""
    given = {key: text for key in (INTERVAL, MISSES) if (text := options.get(key, "").strip())}
    if not given:
        return None
    default = HeartbeatSettings()
    interval = whole(INTERVAL, given.get(INTERVAL, str(int(default.interval * _MILLIS))), 1)
    return HeartbeatSettings(interval / _MILLIS, whole(MISSES, given.get(MISSES, str(default.misses)), 1))
