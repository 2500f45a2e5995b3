"""An engine that reports how far it is. All long work of this library goes through an engine, so
all of it can be followed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from hudi_table.model.progress import Progress, ProgressFunction
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Engine

T = TypeVar("T")
R = TypeVar("R")
_LOG = logging.getLogger(__name__)


def reporting(engine: Engine, operation: str, progress: ProgressFunction | None) -> Engine:
    """The engine, or one that calls `progress` for each task that has ended."""
    if progress is None:
        return engine
    if isinstance(engine, LocalEngine):
        return _Reporting(engine, TaskReport(operation, progress))
    return _Around(engine, TaskReport(operation, progress))


class TaskReport:
    """One function of a caller, or none, called by one thread at a time."""

    def __init__(self, operation: str, progress: ProgressFunction | None) -> None:
        self._operation = operation
        self._progress = progress
        self._lock = threading.Lock()

    def begin(self, total: int | None) -> Callable[[], None]:
        """Reports that a step begins; the result reports that one more task of it has ended."""
        done = 0
        self._report(0, total)

        def one() -> None:
            nonlocal done
            with self._lock:
                done += 1
                self._report(done, total)

        return one

    def whole(self, total: int) -> None:
        """Reports that all tasks of a step have ended."""
        self._report(total, total)

    def _report(self, done: int, total: int | None) -> None:
        if self._progress is None:
            return
        try:
            self._progress(Progress(self._operation, done, total))
        except Exception:  # noqa: BLE001 - whoever looks on must not break the work
            _LOG.warning("the progress function of %s failed and is not called again", self._operation, exc_info=True)
            self._progress = None


class _Reporting(LocalEngine):
    """Threads of this process, followed task by task."""

    def __init__(self, inner: LocalEngine, task_report: TaskReport) -> None:
        super().__init__(inner.parallelism)
        self._inner = inner
        self._task_report = task_report

    def with_threads(self, threads: int) -> LocalEngine:
        """As `LocalEngine.with_threads`, followed as before."""
        return _Reporting(self._inner.with_threads(threads), self._task_report)

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """As `LocalEngine.map`."""
        one = self._task_report.begin(len(items))

        def counted(item: T) -> R:
            result = function(item)
            one()
            return result

        return self._inner.map(counted, items)

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """As `LocalEngine.imap`."""
        one = self._task_report.begin(None)
        for result in self._inner.imap(function, items):
            one()
            yield result


class _Around:
    """Tasks in other processes: a function of this one cannot go along, so only beginning and end
    of a step are reported."""

    def __init__(self, inner: Engine, task_report: TaskReport) -> None:
        self._inner = inner
        self._task_report = task_report

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return self._inner.parallelism

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """As the engine's."""
        self._task_report.begin(len(items))
        found = self._inner.map(function, items)
        self._task_report.whole(len(items))
        return found

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """As the engine's."""
        return self._inner.imap(function, items)
