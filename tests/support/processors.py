"""What a run of several processes made of the cores: how much they worked for tests and for being
ready, so that it shows where they waited.

`make test` has one process more than cores, since some of them wait for servers: where the share
is low at the end, the last pieces are too long, or too many wait at once.
"""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

USED = "processor_seconds"
_begun = time.monotonic()
_used: list[float] = []


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process among several tells what it used, with those that it has started and waited for."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[USED] = sum(os.times()[:4])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The first process hears it."""
    _used.append(float(getattr(node, "workeroutput", {}).get(USED, 0.0)))


def told() -> str | None:
    """The line for the summary, None where one process ran all."""
    if not _used:
        return None
    there = (time.monotonic() - _begun) * (os.cpu_count() or 1)
    return f"{sum(_used):,.0f} of {there:,.0f} seconds of the processors were used by {len(_used)} processes"
