"""How long a process takes until it has done the least that it can: imports, help, a question, a
small query.

In turns, each in a fresh process, beside the import of delta-rs' library and of what our own
commands cannot do without.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa

from bench.process import compiled
from hudi_table import create_table

RUNS = 9
ROWS = 10_000
LIMITS = {
    "import hudi_table": 0.1,
    "from hudi_table import open_table": 0.2,
    "hudictl --help": 0.15,
    "hudictl info": 0.35,
    "hudictl query": 0.5,
}
"""Seconds of wall time."""
IMPORTS = (
    "import hudi_table",
    "from hudi_table import open_table",
    "import deltalake",
    "import pyarrow",
    "import duckdb",
    "import hudi_operator.cli.kubectl.verb_status",
)
STATEMENT = "select city, count(*), sum(n) from this_table group by 1"


@dataclass(frozen=True, slots=True)
class Start:
    """Median seconds of wall and processor time."""

    wall: float
    cpu: float


def measured_starts(folder: Path) -> dict[str, Start]:
    """Each command by its name; of imports, what a bare interpreter takes is deducted."""
    base = _table(folder / "starts")
    hudictl = [sys.executable, "-m", "hudi_table"]
    commands = {
        "": [sys.executable, "-c", ""],
        **{code: [sys.executable, "-c", code] for code in IMPORTS},
        "hudictl --help": [*hudictl, "--help"],
        "hudictl info": [*hudictl, "info", base],
        "hudictl query": [*hudictl, "query", base, STATEMENT],
    }
    taken: dict[str, list[Start]] = {name: [] for name in commands}
    for _ in range(RUNS + 1):
        for name, command in commands.items():
            taken[name].append(_once(command))
    # The first round reads files from disk.
    starts = {name: _median(times[1:]) for name, times in taken.items()}
    bare = starts.pop("")
    less = {
        name: Start(max(0.0, starts[name].wall - bare.wall), max(0.0, starts[name].cpu - bare.cpu)) for name in IMPORTS
    }
    return starts | less


def _table(base: Path) -> str:
    """A small table on local disk: three commits, eight files."""
    keys = [f"k{number:05d}" for number in range(ROWS)]
    rows = pa.table({"id": keys, "n": range(ROWS), "city": [f"c{number % 4}" for number in range(ROWS)]})
    table = create_table(
        base, rows.schema, record_key="id", partition_by="city", index={"type": "Bucket", "buckets": 2}
    )
    for first in range(3):
        table.upsert(rows.slice(first * ROWS // 10, ROWS // 2))
    return str(base)


def _median(times: list[Start]) -> Start:
    return Start(median(each.wall for each in times), median(each.cpu for each in times))


def _once(command: list[str]) -> Start:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=compiled())
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
