"""Being asked to end: SIGTERM, as kubelets and launchers send it, becomes a question that a long
job asks itself."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Self

import pyarrow as pa

Told = Callable[[], bool]
"""Whether the process is to end."""


class ToldToEndError(Exception):
    """A read was given up, for the process is to end. Nothing of it is committed."""


def never() -> bool:
    """Of work that is not asked to end."""
    return False


def until_told(batches: pa.RecordBatchReader, told: Told) -> pa.RecordBatchReader:
    """The same rows. Raises ToldToEndError between two batches."""

    def given() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if told():
                raise ToldToEndError
            yield batch

    return pa.RecordBatchReader.from_batches(batches.schema, given())


class Stopping:
    """While it is entered, SIGTERM does not end the process; `told` says that it came, also while
    the main thread waits in code that is not Python's."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._entered = contextlib.ExitStack()

    def __enter__(self) -> Self:
        # Only a main thread hears signals; elsewhere nobody sends any.
        if threading.current_thread() is threading.main_thread():
            self._hear()
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.close()

    def _hear(self) -> None:
        """A handler in Python waits until the main thread is in Python again. A byte comes at
        once."""
        heard, signalled = socket.socketpair()
        signalled.setblocking(False)
        hearing = threading.Thread(target=self._wait_for, args=(heard,), name="stopping", daemon=True)
        hearing.start()
        self._entered.callback(heard.close)
        self._entered.callback(hearing.join)
        self._entered.callback(signalled.close)
        before = signal.signal(signal.SIGTERM, _ignore)
        self._entered.callback(signal.signal, signal.SIGTERM, before)
        self._entered.callback(
            signal.set_wakeup_fd, signal.set_wakeup_fd(signalled.fileno(), warn_on_full_buffer=False)
        )

    def _wait_for(self, heard: socket.socket) -> None:
        while signals := heard.recv(64):
            if signal.SIGTERM in signals:
                self._event.set()

    def told(self) -> bool:
        """Whether the process is to end."""
        return self._event.is_set()

    def tell(self) -> None:
        """End, as a signal would."""
        self._event.set()

    def wait(self, seconds: float) -> None:
        """So long, or until somebody asks to stop."""
        self._event.wait(seconds)


def _ignore(number: int, frame: FrameType | None) -> None:
    """What hears waits at its socket."""
    del number, frame


_masks = threading.local()
"""Of each thread that forks: what it did not hear before."""


def _forks() -> None:
    """A signal that comes to the new process before it is one of its own waits."""
    if signal.getsignal(signal.SIGTERM) is _ignore:
        _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _has_forked() -> None:
    if (before := _masks.__dict__.pop("before", None)) is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_forked() -> None:
    """What a source has forked ends by its own signals, of which its parent is not to hear."""
    if signal.getsignal(signal.SIGTERM) is _ignore:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _has_forked()


os.register_at_fork(before=_forks, after_in_parent=_has_forked, after_in_child=_is_forked)
