"""How long it takes to begin: the import of the library, and the help of the command line."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.process import compiled

RUNS = 7


@dataclass(frozen=True, slots=True)
class Start:
    """Median seconds of wall and processor time."""

    wall: float
    cpu: float


def startup_times() -> dict[str, Start]:
    """Each command in a fresh process; of imports, what a bare interpreter takes is deducted."""
    hudictl = str(Path(sys.executable).with_name("hudictl"))
    bare = _start([sys.executable, "-c", ""])
    imports = {
        "import hudi_table": "import hudi_table",
        "from hudi_table import open_table": "from hudi_table import open_table",
    }
    times = {name: _start([sys.executable, "-c", code]) for name, code in imports.items()}
    less = {name: Start(max(0.0, t.wall - bare.wall), max(0.0, t.cpu - bare.cpu)) for name, t in times.items()}
    return less | {"hudictl --help": _start([hudictl, "--help"])}


def _start(command: list[str]) -> Start:
    walls, cpus = [], []
    for _ in range(RUNS):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env=compiled())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(time.perf_counter() - start)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return Start(median(walls), median(cpus))
