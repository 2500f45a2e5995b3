"""How many examples a test runs: HUDI_TEST_SCALE is 1 for `make test`, more for `make
test-full`."""

from __future__ import annotations

import os


def scale() -> float:
    """The factor that multiplies counts of examples, steps and rows."""
    return float(os.environ.get("HUDI_TEST_SCALE", "1"))


def scaled(count: int, *, at_least: int = 1, quick: int | None = None) -> int:
    """`count` times the scale, never below `at_least`; in `make test` `quick`, where other tests
    there prove the same from another side."""
    return quick if quick is not None and scale() == 1 else max(at_least, round(count * scale()))
