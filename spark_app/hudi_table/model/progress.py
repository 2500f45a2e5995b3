"""How far an operation is, as a caller's function hears it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` tasks of one step of an operation (upsert, compaction, clustering, doctor,
    …); each step counts from 0.

    `total` is None where it is not known: the batches of a stream that is taken in.
    """

    operation: str
    done: int
    total: int | None


ProgressFunction = Callable[[Progress], None]
"""Called from threads, one call at a time. What it raises is logged, and it is not called again."""
