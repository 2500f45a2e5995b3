"""One warm process for each version of Apache Hudi, shared by the whole run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.hudi_oracle import VERSIONS, HudiOracle

T = TypeVar("T")


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
