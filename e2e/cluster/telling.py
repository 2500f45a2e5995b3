"""What a person sees of the cluster's coming and going, and how long something is waited for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

WAIT_SECONDS = 120.0
POLL_SECONDS = 0.2
_BEGAN = time.monotonic()


def say(text: str) -> None:
    """One line, with the seconds since the start."""
    print(f"{time.monotonic() - _BEGAN:6.1f} s  {text}", file=sys.stderr, flush=True)


def wait_for(ready: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Return once `ready`. Raises TimeoutError that names `what`."""
    limit = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > limit:
            raise TimeoutError(f"{what} was not ready after {seconds:.0f} s")
        time.sleep(POLL_SECONDS)
