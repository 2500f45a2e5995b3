"""`RecordingStorage`: any storage, with an ordered trace of who asked what and what came of it.

Several processes of a test share one `Trace`; an entry is appended when the reply is there, so
mutating calls of one store stand in the order in which they took effect only as far as the test
itself runs them one after the other.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypeVar

from hudi_table.errors import HudiError
from hudi_table.model.names import TEMP
from hudi_table.table.store.ports import Names, ObjectInfo, Objects, Storage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """One call. `condition` is `absent` for an exclusive create; `result` is `ok` or the stable
    name of the error.

    `keys`: what a listing returned (paths, folders with a trailing slash). `size`: bytes written or
    read.
    """

    process: str
    call: str
    key: str
    condition: str = ""
    result: str = "ok"
    keys: tuple[str, ...] = ()
    size: int = 0

    def __str__(self) -> str:
        condition = f" if {self.condition}" if self.condition else ""
        return f"{self.process}: {self.call} {self.key or '/'}{condition} -> {self.result}"


@dataclass
class Trace:
    """The steps of all processes, in order."""

    steps: list[Step] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, step: Step) -> None:
        """Append."""
        with self.lock:
            self.steps.append(step)

    def writes(self) -> list[Step]:
        """The steps that may have changed the store."""
        return [step for step in self.steps if step.call in ("put", "delete", "write")]

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


class RecordingStorage:
    """A storage whose calls go into a trace, under a process's name."""

    def __init__(self, inner: Storage, trace: Trace, process: str = "p") -> None:
        self.inner = inner
        self.trace = trace
        self.process = process

    @property
    def base_path(self) -> str:
        return self.inner.base_path

    def get(self, path: str) -> bytes:
        return self._note("get", path, lambda: self.inner.get(path), lambda data: {"size": len(data)})

    def head(self, path: str) -> ObjectInfo:
        return self._note("head", path, lambda: self.inner.head(path), lambda info: {"size": info.size})

    def list(self, prefix: str = "", *, start_after: str | None = None, limit: int | None = None) -> Objects:
        return self._note(
            "list",
            prefix,
            lambda: self.inner.list(prefix, start_after=start_after, limit=limit),
            lambda found: {"keys": tuple(info.path for info in found)},
            condition="" if start_after is None else f"after {start_after}",
        )

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        return self._note(
            "list_dir",
            prefix,
            lambda: self.inner.list_dir(prefix),
            lambda found: {"keys": (*(f"{folder}/" for folder in found[0]), *(info.path for info in found[1]))},
        )

    def open_read(self, path: str) -> Any:
        return self._note("open_read", path, lambda: self.inner.open_read(path), lambda file: {})

    def put(self, path: str, data: bytes) -> None:
        self._note("put", path, lambda: self.inner.put(path, data), lambda _: _of_put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._note(
            "put",
            path,
            lambda: self.inner.put_if_absent(path, data),
            lambda _: {"size": len(data)},
            condition="absent",
        )

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        self._note("put", seen.path, lambda: self.inner.replace(seen, data), lambda _: _of_put(seen.path, data))

    def delete(self, path: str) -> None:
        self._note("delete", path, lambda: self.inner.delete(path), lambda _: {})

    def delete_all(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    @contextlib.contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        result = "aborted"
        try:
            with self.inner.open_write(path) as sink:
                yield sink
            result = "ok"
        except HudiError as error:
            result = error.name()
            raise
        finally:
            self.trace.add(Step(self.process, "write", path, result=result))

    def reopen(self) -> Callable[[], Storage]:
        """In the same process, into the same trace, as a task of this process."""
        inner = self.inner.reopen()
        return lambda: RecordingStorage(inner(), self.trace, f"{self.process}/task")

    def _note(
        self,
        call: str,
        key: str,
        action: Callable[[], T],
        details: Callable[[T], dict[str, Any]],
        *,
        condition: str = "",
    ) -> T:
        try:
            result = action()
        except HudiError as error:
            self.trace.add(Step(self.process, call, key, condition, error.name()))
            raise
        except BaseException as error:
            self.trace.add(Step(self.process, call, key, condition, type(error).__name__))
            raise
        self.trace.add(Step(self.process, call, key, condition, **details(result)))
        return result


def _of_put(path: str, data: bytes) -> dict[str, Any]:
    """Of a batch of markers, `keys` are its lines."""
    is_batch = path.startswith(f"{TEMP}/") and ".marker." not in path
    return {"size": len(data)} | ({"keys": tuple(data.decode().splitlines())} if is_batch else {})
