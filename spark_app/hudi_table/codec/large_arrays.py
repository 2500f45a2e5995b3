"""Memory of large arrays that are made and soon let go."""

from __future__ import annotations

import functools

import pyarrow as pa


@functools.cache
def pool() -> pa.MemoryPool:
    """Where columns of a merge are put together: jemalloc instead of mimalloc, Arrow's default.

    mimalloc hands every large array back to the system at once and has its pages cleared anew for
    the next one: that was half of the processor time of a merge (measured on pyarrow 26). Whoever
    chose another allocator for Arrow keeps it.
    """
    known = pa.default_memory_pool()
    if known.backend_name != "mimalloc" or "jemalloc" not in pa.supported_memory_backends():
        return known
    return pa.jemalloc_memory_pool()


def give_back() -> None:
    """Hand memory that Arrow has freed back to the system: its allocators keep pages for arrays of
    the same size."""
    for each in {id(found): found for found in (pa.default_memory_pool(), pool())}.values():
        each.release_unused()
