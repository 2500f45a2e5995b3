"""The memory of one Python worker: bulk_insert and upsert of many rows on Spark with one task at a
time."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench.process import Contender, Cost
from bench.race import STEPS, Entry, held_by
from bench.rows import Workload

ENTRY = Entry("spark-1", "ours, Spark, one worker")


def worker_memory(load: Workload, folder: Path) -> dict[str, Cost]:
    """What each step cost; `worker_peak` is the resident memory of the largest Python worker."""
    base = folder / ENTRY.name
    shutil.rmtree(base, ignore_errors=True)
    costs = {}
    with Contender(ENTRY.worker, bloom=False) as contender:
        for step, rows, expected in zip(STEPS, (load.base, load.updates), (load.loaded, load.upserted), strict=True):
            costs[step] = contender.run(step, rows, base)
            held = held_by("spark", base)
            assert held == expected, f"after {step} the table holds {held}, must hold {expected}"
    shutil.rmtree(base)
    return costs
