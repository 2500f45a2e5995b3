"""The real parts, each started once for all cases, and what is in the way of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.streams.conformance.dying import Dying
from tests.streams.conformance.matrix import BY_NAME
from tests.streams.conformance.part import Part
from tests.streams.conformance.store import Store
from tests.support import postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    with postgres.running_postgres() as found:
        yield found


@pytest.fixture(scope="session")
def store() -> Iterator[Store]:
    found = Store()
    try:
        yield found
    finally:
        found.end()


@pytest.fixture
def part(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Part]:
    """The source that a test is asked of, and an ingest of its own from it."""
    made = BY_NAME[request.param](request, tmp_path)  # type: ignore[call-arg]
    try:
        yield made
    finally:
        made.mend()


@pytest.fixture
def dying(part: Part, monkeypatch: pytest.MonkeyPatch) -> Dying:
    """Ends a run of that ingest where it is told to."""
    found = Dying()
    found.watch(monkeypatch, part.calls())
    return found
