"""How long a process takes until it has done the least that it can: imports, help, a question, a
small query, an ingest of a file with a transform.

In turns, each in a fresh process, beside the import of delta-rs' library and of what our own
commands cannot do without.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from bench.process import compiled
from hudi_table import create_table
from hudi_table.model.job.jobspec import JobSpec

RUNS = 9
ROWS = 10_000
LIMITS = {
    "import hudi_table": 0.1,
    "from hudi_table import open_table": 0.2,
    "hudictl --help": 0.15,
    "hudictl info": 0.35,
    "hudictl query": 0.5,
    "ingest": 2.0,
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
TRANSFORM = "SELECT id, n + 1 AS n, upper(city) AS city FROM source WHERE n >= 0"
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
    made, ingest = _ingest(folder / "ingest")
    commands = {
        "": [sys.executable, "-c", ""],
        **{code: [sys.executable, "-c", code] for code in IMPORTS},
        "hudictl --help": [*hudictl, "--help"],
        "hudictl info": [*hudictl, "info", base],
        "hudictl query": [*hudictl, "query", base, STATEMENT],
        "ingest": ingest,
    }
    taken: dict[str, list[Start]] = {name: [] for name in commands}
    for _ in range(RUNS + 1):
        for name, command in commands.items():
            # Each time the table is made anew.
            shutil.rmtree(made, ignore_errors=True)
            taken[name].append(_once(command))
    # The first round reads files from disk.
    starts = {name: _median(times[1:]) for name, times in taken.items()}
    bare = starts.pop("")
    less = {
        name: Start(max(0.0, starts[name].wall - bare.wall), max(0.0, starts[name].cpu - bare.cpu)) for name in IMPORTS
    }
    return starts | less


def _rows() -> pa.Table:
    keys = [f"k{number:05d}" for number in range(ROWS)]
    return pa.table({"id": keys, "n": range(ROWS), "city": [f"c{number % 4}" for number in range(ROWS)]})


def _table(base: Path) -> str:
    """A small table on local disk: three commits, eight files."""
    rows = _rows()
    table = create_table(
        base, rows.schema, record_key="id", partition_by="city", index={"type": "Bucket", "buckets": 2}, version=6
    )
    for first in range(3):
        table.upsert(rows.slice(first * ROWS // 10, ROWS // 2))
    return str(base)


def _ingest(folder: Path) -> tuple[Path, list[str]]:
    """Where the table comes to lie, and a job of mode Once that makes it of one Parquet file by a
    SELECT, without a JVM."""
    (folder / "landing").mkdir(parents=True)
    pq.write_table(_rows(), folder / "landing" / "rows.parquet")
    table = {
        "name": "made",
        "location": f"file://{folder}/made",
        "recordKey": ["id"],
        "index": {"type": "Bucket", "buckets": 2},
    }
    source = {"type": "Files", "path": f"file://{folder}/landing", "format": "parquet"}
    work = {
        "type": "Ingest",
        "name": "feed",
        "operation": "Upsert",
        "source": source,
        "transform": [{"sql": TRANSFORM}],
    }
    (folder / "spec.json").write_text(JobSpec("start", table, work, engine="Local").to_json())
    paths = [str(folder / "spec.json"), str(folder / "result.json")]
    return folder / "made", [sys.executable, "-m", "hudi_spark.jobs", *paths]


def _median(times: list[Start]) -> Start:
    return Start(median(each.wall for each in times), median(each.cpu for each in times))


def _once(command: list[str]) -> Start:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=compiled())
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
