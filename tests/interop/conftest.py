"""One warm process for each version of Apache Hudi, shared by the whole run; and which cases a quick run takes.

Hudi's JVMs need half an hour of a processor for all cases. `make test` takes every test with a third of its cases (of two, one), others of
each test; `make test-full` takes all, and so does whoever names tests of this folder.
"""

from __future__ import annotations

import shutil
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.hudi_oracle import VERSIONS, HudiOracle
from tests.support.scale import scale
from tests.support.selection import deselect

T = TypeVar("T")
FOLDER = Path(__file__).parent
SHARE = 3


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any("interop" in argument for argument in config.args) or config.option.keyword
    if named or scale() > 1:
        return
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if FOLDER in item.path.parents:
            cases[item.nodeid.partition("[")[0]].append(item)
    kept = {item for name, found in cases.items() for item in some_of(name, found)}
    left = [item for found in cases.values() for item in found if item not in kept]
    deselect(config, items, left)


def some_of(name: str, found: list[pytest.Item]) -> list[pytest.Item]:
    """A third of a test's cases, at least one; which ones depends on its name."""
    share = min(SHARE, len(found))
    return found[zlib.crc32(name.encode()) % share :: share]


class Hudis:
    """All versions of Hudi, side by side."""

    def __init__(self, oracles: dict[str, HudiOracle]) -> None:
        self.oracles = oracles

    def __getitem__(self, version: str) -> HudiOracle:
        return self.oracles[version]

    def each(self, work: Callable[[HudiOracle], T]) -> dict[str, T]:
        """`work` with every version at once; the first failure is raised with its version noted."""

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
        """`work` with every version on a copy of its own of the table `base`."""

        def run(oracle: HudiOracle) -> T:
            copy = base.with_name(f"{base.name}-{oracle.version}")
            shutil.copytree(base, copy)
            return work(oracle, copy)

        return self.each(run)


@pytest.fixture(scope="session")
def hudis() -> Iterator[Hudis]:
    with ExitStack() as stack:
        yield Hudis({version: stack.enter_context(HudiOracle(version)) for version in VERSIONS})
