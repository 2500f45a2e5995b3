"""Tests that a run leaves out, told to pytest so that its summary counts them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def deselect(config: pytest.Config, items: list[pytest.Item], left: Iterable[pytest.Item]) -> None:
    """Take `left` out of the collected `items`."""
    gone = set(left)
    if gone:
        config.hook.pytest_deselected(items=list(gone))
        items[:] = [item for item in items if item not in gone]
