"""Panics of obstore's Rust code end at this border.

pyo3 raises a panic as `PanicException`, a BaseException that no `except Exception` takes and that no module offers for import: it
is known by its name. Its text may quote what was given, a credential perhaps, so it is not repeated, not even as the cause.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hudi_table.errors import HudiError

T = TypeVar("T")


def unpanicked(call: Callable[[], T], instead: Callable[[], HudiError]) -> T:
    """What `call` returns. Raises what it raises, and `instead` in the place of a panic."""
    try:
        return call()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
    raise instead()
