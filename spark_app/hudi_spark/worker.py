"""Setting up Spark's Python workers for our tasks; a worker runs many, so this is done once in
each."""

from __future__ import annotations

import functools
import gc

import pyarrow as pa

from hudi_table.codec import large_arrays


@functools.cache
def set_up_worker() -> None:
    """Called at the start of every task.

    Spark collects garbage after each task, over every object that the imports made: 60 to 100 ms,
    as long as a small task takes. Frozen objects are left out. Arrow takes its memory from jemalloc
    where its build has it: a merge of large columns then takes a tenth less time (both measured).
    """
    gc.collect()
    gc.freeze()
    pa.set_memory_pool(large_arrays.pool())
