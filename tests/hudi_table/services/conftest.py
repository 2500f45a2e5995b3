"""What several files of these tests begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bootstrapped import contents, folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of Parquet that is bootstrapped."""
    return folder(tmp_path)


@pytest.fixture
def untouched(source: Path) -> Iterator[None]:
    """Nothing is written there."""
    before = contents(source)
    yield
    assert contents(source) == before, "the source was changed"
