"""The releases of Hudi: a process each, started by the first test that asks for it. Others than
those of `make interop-env` are fetched then."""

from __future__ import annotations

from contextlib import ExitStack

from scripts import setup_oracles
from tests.support.hudi_oracle import VERSIONS, HudiOracle, environment


class Releases(dict[str, HudiOracle]):
    """Release → its process, which ends with `stack`."""

    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        self._stack = stack

    def __missing__(self, release: str) -> HudiOracle:
        if release not in VERSIONS:
            python, ivy = environment()
            setup_oracles.fetch(release, python.parent.parent, ivy)
        self[release] = self._stack.enter_context(HudiOracle(release))
        return self[release]
