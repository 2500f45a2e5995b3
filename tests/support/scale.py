"""How many examples a test runs: HUDI_TEST_SCALE is 1 for `make test`, more for `make test-full`."""

from __future__ import annotations

import os


def scale() -> float:
    """The factor that multiplies counts of examples, steps and rows."""
    return float(os.environ.get("HUDI_TEST_SCALE", "1"))


def scaled(count: int, *, at_least: int = 1) -> int:
    """`count` times the scale, never below `at_least`."""
    return max(at_least, round(count * scale()))
