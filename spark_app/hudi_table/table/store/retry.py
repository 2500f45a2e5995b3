"""Repeating idempotent requests whose reply was lost, within a bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hudi_table.errors import OutcomeUnknownError, UnavailableError
from hudi_table.table.store.ports import Storage

T = TypeVar("T")
ATTEMPTS_MAX = 5


def until_confirmed(request: Callable[[], T], *, attempts_max: int = ATTEMPTS_MAX) -> T:
    """The reply of an idempotent request, asked again while its outcome is unknown.

    Raises UnavailableError when no attempt got a definite answer.
    """
    last: OutcomeUnknownError | None = None
    for _ in range(attempts_max):
        try:
            return request()
        except OutcomeUnknownError as error:
            last = error
    assert last is not None
    raise UnavailableError(f"the store did not confirm a request in {attempts_max} attempts: {last.message}") from last


def put(storage: Storage, path: str, data: bytes) -> None:
    """Put, repeated until confirmed: the same bytes at the same path change nothing."""
    until_confirmed(lambda: storage.put(path, data))


def delete_all(storage: Storage, paths: Sequence[str]) -> None:
    """Delete several objects, repeated until confirmed."""
    if paths:
        until_confirmed(lambda: storage.delete_all(paths))


def delete(storage: Storage, path: str) -> None:
    """Delete, repeated until confirmed."""
    until_confirmed(lambda: storage.delete(path))
