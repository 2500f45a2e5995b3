"""One warm process for each version of Apache Hudi, shared by the whole run; and which cases a
quick run takes.

Hudi's JVMs need half an hour of a processor for all cases. `make test` takes every test with a
twelfth of its cases (of twelve and fewer, one), others of each test; and of tests that both
versions pass alike, marked `by_turns`, one with the one version and the next with the other. `make
test-full` takes all, and so does whoever names tests of this folder.
"""

from __future__ import annotations

import itertools
import shutil
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from tests.interop.further import Releases
from tests.support.hudi_oracle import VERSIONS, HudiOracle
from tests.support.scale import scale
from tests.support.selection import deselect

T = TypeVar("T")
FOLDER = Path(__file__).parent
SHARE = 12
TURN = pytest.StashKey[str]()
"""Of a test that is driven by one version alone: which."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any("interop" in argument for argument in config.args) or config.option.keyword
    if named or scale() > 1:
        return
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        # What is for larger scales alone is left out elsewhere, and must not be a test's one case.
        long = any(scale() < mark.args[0] for mark in item.iter_markers("at_scale"))
        if FOLDER in item.path.parents and not long:
            cases[item.nodeid.partition("[")[0]].append(item)
    kept = {item for name, found in cases.items() for item in some_of(name, found)}
    left = [item for found in cases.values() for item in found if item not in kept]
    deselect(config, items, left)
    turns = itertools.cycle(VERSIONS)
    for item in items:
        marked = item.get_closest_marker("by_turns") if item in kept else None
        if marked is not None:
            item.stash[TURN] = marked.args[0] if marked.args else next(turns)


def some_of(name: str, found: list[pytest.Item]) -> list[pytest.Item]:
    """A twelfth of a test's cases, at least one; which ones depends on its name."""
    share = min(SHARE, len(found))
    return found[zlib.crc32(name.encode()) % share :: share]


class Hudis:
    """The versions of Hudi that drive a test, side by side; by its name each of them can be had."""

    def __init__(self, warm: Releases, turn: str | None) -> None:
        self._warm = warm
        self.oracles = {version: warm[version] for version in (VERSIONS if turn is None else [turn])}

    def __getitem__(self, version: str) -> HudiOracle:
        return self._warm[version]

    def each(self, work: Callable[[HudiOracle], T]) -> dict[str, T]:
        """`work` with every one of them at once; the first failure is raised with its version
        noted."""

        def run(oracle: HudiOracle) -> T:
            try:
                return work(oracle)
            except BaseException as error:
                error.add_note(f"with Apache Hudi {oracle.version}")
                raise

        with ThreadPoolExecutor(len(self.oracles)) as pool:
            futures = {version: pool.submit(run, oracle) for version, oracle in self.oracles.items()}
        return {version: future.result() for version, future in futures.items()}

    def each_on_a_copy(self, base: Path, work: Callable[[HudiOracle, Path], T]) -> dict[str, T]:
        """`work` with every one of them on a copy of its own of the table `base`."""

        def run(oracle: HudiOracle) -> T:
            copy = base.with_name(f"{base.name}-{oracle.version}")
            shutil.copytree(base, copy)
            return work(oracle, copy)

        return self.each(run)


@pytest.fixture(scope="session")
def releases() -> Iterator[Releases]:
    with ExitStack() as stack:
        yield Releases(stack)


@pytest.fixture(scope="session")
def start(releases: Releases) -> Callable[[str], HudiOracle]:
    """The process of a release, which no other one runs beside unasked."""
    return releases.__getitem__


@pytest.fixture
def hudis(releases: Releases, request: pytest.FixtureRequest) -> Hudis:
    return Hudis(releases, request.node.stash.get(TURN, None))
