"""The system's clock: the only module that reads time."""

from __future__ import annotations

import time
from datetime import UTC, datetime

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock:
    """Wall time in UTC, and seconds since boot that count suspension where the system can tell
    them."""

    def now(self) -> datetime:
        """The present moment, aware, UTC."""
        return datetime.now(UTC)

    def boot_seconds(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything.

        Without CLOCK_BOOTTIME (not Linux) the monotonic clock, which on some systems stands still
        while suspended.
        """
        return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)

    def sleep(self, seconds: float) -> None:
        """Wait; nothing for zero or less."""
        if seconds > 0:
            time.sleep(seconds)
