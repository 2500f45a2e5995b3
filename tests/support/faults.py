"""`FaultyStorage`: any storage, with a fault at a chosen call.

Every request that reaches the store is one call: the methods of `Storage`, and of `open_write` both
its begin and its end. The calls of all wrappers that share a `FaultPlan` are counted together, so a
task's calls through `reopen()` count as well. What each fault does:

| fault | effect |
|---|---|
| CRASH_BEFORE | nothing is done; `Crash` |
| CRASH_AFTER | the call is done; `Crash` |
| TORN | a `put` of a path that the plan calls `tearable` leaves half of its bytes; everything else is as CRASH_BEFORE, since single requests and streams are atomic on every store that we have. Then `Crash` |
| LOST_REPLY | the call is done; OutcomeUnknownError for a write, UnavailableError for a read |
| LOST_REQUEST | nothing is done; the same errors |
| UNAVAILABLE | nothing is done; UnavailableError |
| EXISTS | `put_if_absent` finds an object that another writer made just before; otherwise as UNAVAILABLE |

After a crash every further call of every wrapper of the plan raises `Crash` again: a dead process
asks nothing more.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, BinaryIO, TypeVar

from hudi_table.errors import OutcomeUnknownError, UnavailableError
from hudi_table.table.store.ports import Names, ObjectInfo, Objects, Storage

T = TypeVar("T")
WRITES = frozenset({"put", "put_if_absent", "delete", "open_write", "close_write"})


class Crash(BaseException):
    """The process is dead. Not an Exception, so that no handler of the code under test goes on."""


class Fault(StrEnum):
    """What goes wrong at the chosen call; see the table above."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    TORN = "torn write"
    LOST_REPLY = "lost reply"
    LOST_REQUEST = "lost request"
    UNAVAILABLE = "unavailable"
    EXISTS = "exists"


@dataclass(frozen=True, slots=True)
class Call:
    """One counted call: its number from 1, the method, the path."""

    number: int
    method: str
    path: str

    @property
    def writes(self) -> bool:
        """Whether it may change the store."""
        return self.method in WRITES


@dataclass
class FaultPlan:
    """Where the fault strikes: at call number `at` (None: nowhere, only count), and at the `times -
    1` calls after it.

    `only` narrows the counting to some calls, e.g. `lambda call: call.writes`; `calls` are the
    counted ones so far and `fired` those that met the fault.
    """

    at: int | None = None
    fault: Fault = Fault.CRASH_BEFORE
    times: int = 1
    only: Callable[[Call], bool] = lambda call: True
    calls: list[Call] = field(default_factory=list)
    fired: list[Call] = field(default_factory=list)
    tearable: Callable[[str], bool] = lambda path: path.endswith(".parquet")
    crashed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def meet(self, method: str, path: str) -> Fault | None:
        """Count a call; the fault that it meets, if any. Raises Crash once the plan has crashed."""
        with self.lock:
            if self.crashed:
                raise Crash(f"{method} {path} after the crash")
            call = Call(len(self.calls) + 1, method, path)
            if not self.only(call):
                return None
            self.calls.append(call)
            if self.at is None or not self.at <= call.number < self.at + self.times:
                return None
            self.fired.append(call)
            return self.fault

    def crash(self) -> Crash:
        """The exception to raise; from now on every call raises one."""
        with self.lock:
            self.crashed = True
            last = self.fired[-1] if self.fired else None
        return Crash(f"{self.fault} at {last}")


class FaultyStorage:
    """A storage whose calls meet the faults of a plan."""

    def __init__(self, inner: Storage, plan: FaultPlan) -> None:
        self.inner = inner
        self.plan = plan

    @property
    def base_path(self) -> str:
        return self.inner.base_path

    def get(self, path: str) -> bytes:
        return self._call("get", path, lambda: self.inner.get(path))

    def head(self, path: str) -> ObjectInfo:
        return self._call("head", path, lambda: self.inner.head(path))

    def list(self, prefix: str = "", *, start_after: str | None = None, limit: int | None = None) -> Objects:
        return self._call("list", prefix, lambda: self.inner.list(prefix, start_after=start_after, limit=limit))

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        return self._call("list_dir", prefix, lambda: self.inner.list_dir(prefix))

    def open_read(self, path: str) -> Any:
        return self._call("open_read", path, lambda: self.inner.open_read(path))

    def put(self, path: str, data: bytes) -> None:
        torn = data[: len(data) // 2]
        self._call("put", path, lambda: self.inner.put(path, data), torn=lambda: self.inner.put(path, torn))

    def put_if_absent(self, path: str, data: bytes) -> None:
        def create() -> None:
            self.inner.put_if_absent(path, data)

        self._call("put_if_absent", path, create, foreign=lambda: self.inner.put_if_absent(path, b"somebody else's"))

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        torn = data[: len(data) // 2]
        self._call(
            "put", seen.path, lambda: self.inner.replace(seen, data), torn=lambda: self.inner.put(seen.path, torn)
        )

    def delete(self, path: str) -> None:
        self._call("delete", path, lambda: self.inner.delete(path))

    def delete_all(self, paths: Iterable[str]) -> None:
        """A store may have done any part of it, so each deletion is a call."""
        for path in paths:
            self.delete(path)

    @contextlib.contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        self._call("open_write", path, lambda: None)
        with contextlib.ExitStack() as stack:
            yield stack.enter_context(self.inner.open_write(path))
            # The fault strikes inside the inner context: what it raises aborts the stream, as a death does.
            fault = self.plan.meet("close_write", path)
            if fault in (None, Fault.CRASH_AFTER, Fault.LOST_REPLY):
                stack.close()
            self._raise(fault, "close_write", path)

    def reopen(self) -> Callable[[], Storage]:
        """In the same process and of the same plan: what a task does counts and dies with the
        rest."""
        inner = self.inner.reopen()
        return lambda: FaultyStorage(inner(), self.plan)

    def _call(
        self,
        method: str,
        path: str,
        action: Callable[[], T],
        *,
        torn: Callable[[], object] | None = None,
        foreign: Callable[[], object] | None = None,
    ) -> T:
        fault = self.plan.meet(method, path)
        if fault is Fault.EXISTS and foreign is not None:
            foreign()
            return action()  # raises ObjectExistsError by itself
        if fault is Fault.TORN and torn is not None and self.plan.tearable(path):
            torn()
        if fault in (None, Fault.CRASH_AFTER, Fault.LOST_REPLY):
            result = action()
            if fault is None:
                return result
        self._raise(fault, method, path)
        raise AssertionError("unreachable: a fault raises")

    def _raise(self, fault: Fault | None, method: str, path: str) -> None:
        if fault is None:
            return
        if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.TORN):
            raise self.plan.crash()
        if fault in (Fault.LOST_REPLY, Fault.LOST_REQUEST) and method in WRITES:
            raise OutcomeUnknownError(f"{fault} of {method} {path}", path=path)
        raise UnavailableError(f"{fault} of {method} {path}", path=path)
