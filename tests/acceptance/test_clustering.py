"""The clustering walks of the seed at a fortieth of their size; `make acceptance-clustering` runs
them in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.clustering import WALKS, walk_all


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_goes_as_the_seed_tells_it(name: str, tmp_path: Path) -> None:
    lines: list[str] = []
    assert walk_all(tmp_path, 1 / 40, [name], lines.append) == [], "\n".join(lines)
