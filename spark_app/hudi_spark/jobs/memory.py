"""How much memory a driver that has no end of its own has taken, and how much it may. One that is
near that ends between two commits, before the kernel ends it amid one, and its successor begins
with little.

It is measured as the resident memory of the driver with its children, a JVM among them; pages that
processes share count once. Where the system does not tell (no /proc), nothing is measured.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hudi_table.codec import large_arrays
from hudi_table.model.digits import is_digits
from hudi_table.model.job.jobspec import MEMORY_BYTES, RESIDENT_BYTES, JobResult

FULL = 0.85
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Environment variable that spark-submit gives to the program that it runs, as its child."""
_ENDLESS = 1 << 60
"""Version 1 of control groups says some number above this where there is no limit."""


@dataclass(frozen=True, slots=True)
class Fill:
    """How many bytes are resident, of how many that may be."""

    resident: int
    limit: int

    @property
    def is_full(self) -> bool:
        """Whether the next commit might be one too many."""
        return self.resident > FULL * self.limit

    def __str__(self) -> str:
        return f"{self.resident / 2**20:,.0f} of {self.limit / 2**20:,.0f} MiB of memory are taken"

    def told(self, result: JobResult) -> JobResult:
        """The result of a driver that has ended for this."""
        figures = {**result.figures, RESIDENT_BYTES: float(self.resident), MEMORY_BYTES: float(self.limit)}
        return replace(
            result, figures=figures, message=f"{result.message}; ended for a successor to go on, since {self}"
        )


def limit_of(work: Mapping[str, Any], root: Path = Path("/")) -> int | None:
    """How many bytes a driver may have: the limit of its container, or what the work of its JobSpec
    says, the lower of the two; None where nothing says it."""
    told = work.get(MEMORY_BYTES)
    known = [found for found in (_of_group(root), int(told) if told is not None else None) if found is not None]
    return min(known, default=None)


def fill_of(limit: int | None) -> Fill | None:
    """What is taken now; None where there is no limit, or it cannot be told. Before it says that it
    is full, what nobody holds is let go."""
    found = _fill(limit)
    if found is not None and found.is_full:
        gc.collect()
        large_arrays.give_back()
        found = _fill(limit)
    return found


def _fill(limit: int | None) -> Fill | None:
    resident = resident_bytes(os.getppid() if SUBMITTED in os.environ else os.getpid())
    return Fill(resident, limit) if limit is not None and resident else None


def resident_bytes(process: int, proc: Path = Path("/proc")) -> int:
    """Resident memory of a process with all its children, 0 where the system does not tell."""
    parents = {each.name: _parent(each) for each in proc.glob("[0-9]*")}
    own, found = {str(process)}, {str(process)}
    while own:
        own = {name for name, parent in parents.items() if parent in own}
        found |= own
    return sum(_resident(proc / name) for name in found)


def _parent(process: Path) -> str:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[1]
    except (OSError, IndexError):
        return ""  # it has just ended


def _resident(process: Path) -> int:
    """By its share of the pages that it has, else by all of them."""
    for name, line in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        try:
            text = (process / name).read_text()
        except OSError:
            continue
        found = next((each for each in text.splitlines() if each.startswith(line)), None)
        if found is not None:
            return int(found.split()[1]) << 10
    return 0


def _of_group(root: Path) -> int | None:
    """The limit of the control group of this process, of version 2 or 1."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        mounted = root / "sys/fs/cgroup" / folder
        # In a container the folder that is mounted may be the group's own, whatever its path is outside.
        for place in (mounted / path.lstrip("/"), mounted):
            found = _number(place / name)
            if found is not None:
                return found if found < _ENDLESS else None
    return None


def _number(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if is_digits(text) else _ENDLESS
