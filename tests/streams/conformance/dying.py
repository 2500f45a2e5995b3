"""A run that dies behind one of its calls of the store or of its source: what the call did is done,
and nothing is asked any more. Or one whose call ends with an error, though what it did is done, and
which puts away what it has begun."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pytest

from hudi_table.errors import HudiError, OutcomeUnknownError, UnavailableError
from hudi_table.table.store.local import LocalStorage
from tests.support.faults import Crash

WRITES = ("put", "put_if_absent", "delete")
"""Of the table's store: what changes nothing leaves a run no other than the call before it."""


@dataclass
class Dying:
    """Counts calls, and ends the run that makes the one of number `at`. `fails`: by an error."""

    fails: bool = False
    at: int = 0
    count: int = 0
    dead: bool = False
    watches: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def watch(self, patch: pytest.MonkeyPatch, calls: list[tuple[Any, str]]) -> None:
        """From now on count these, and the writes of the table's store."""
        for owner, name in [*((LocalStorage, name) for name in WRITES), *calls]:
            error = OutcomeUnknownError if owner is LocalStorage else UnavailableError
            patch.setattr(owner, name, self._counted(getattr(owner, name), error))
        patch.setattr(LocalStorage, "open_write", self._opened(LocalStorage.open_write))

    def counted(self, run: Callable[[], object]) -> int:
        """How many calls a run makes."""
        self._begin(0)
        run()
        self.watches = False
        return self.count

    def ends(self, at: int, run: Callable[[], object]) -> bool:
        """Let a run end behind its call of this number; False if it makes fewer."""
        self._begin(at)
        try:
            run()
        except Crash:
            return True
        finally:
            self.watches = False
        return self.count >= at

    def _begin(self, at: int) -> None:
        self.at, self.count, self.dead, self.watches = at, 0, False, True

    def _counted(self, call: Callable[..., Any], error: type[HudiError]) -> Callable[..., Any]:
        def asked(*args: Any, **more: Any) -> Any:
            self._alive()
            answer = call(*args, **more)
            self._called(error)
            return answer

        return asked

    def _opened(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @contextlib.contextmanager
        def opened(*args: Any) -> Iterator[BinaryIO]:
            self._alive()
            with call(*args) as sink:
                yield sink
                self._alive()
            self._called(OutcomeUnknownError)

        return opened

    def _alive(self) -> None:
        if self.watches and self.dead:
            raise Crash("a call after the death")

    def _called(self, error: type[HudiError]) -> None:
        with self.lock:
            if not self.watches:
                return
            self.count += 1
            meets = self.count == self.at
            self.dead = self.dead or (meets and not self.fails)
        if meets and self.fails:
            raise error("its answer was lost")
        self._alive()
