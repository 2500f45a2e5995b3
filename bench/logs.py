"""The race over logs: merge-on-read tables written, read, written in small steps, and compacted,
beside Apache Hudi and hudi-rs.

Every contender loads its table once; each round begins with a copy of it. After the last step all
tables must hold the same.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.logs_steps import EXPECTED
from bench.process import Contender, Contenders, Cost
from bench.race import HUDI_PYTHON, Results, Target, Times
from bench.rows import CHECKED, NEWER, Workload, figures, read
from bench.settings import KEY, ORDERING
from hudi_table import open_table

SMALL_ROWS = 10_000
SMALL_WRITES = 3
STEPS = ("upsert", "snapshot", "incremental", "small", "compact")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A contender: its worker, its label, whether it only reads the table of `local-logs`, and the
    version of its tables."""

    worker: str
    label: str
    reads_only: bool = False
    version: int = 6

    @property
    def name(self) -> str:
        return f"{self.worker}{'-9' * (self.version == 9)}"

    @property
    def hudi(self) -> bool:
        return self.worker.startswith("hudi-logs-")


ENTRIES = (
    LogEntry("local-logs", "ours, LocalEngine"),
    LogEntry("spark-logs", "ours, Spark"),
    LogEntry("hudi-logs-1.1.1", "Apache Hudi 1.1.1"),
    LogEntry("hudi-logs-0.15.0", "Apache Hudi 0.15.0"),
    LogEntry("hudi-rs", "hudi-rs", reads_only=True),
)


TARGETS = (
    Target("upsert", "spark-logs", "hudi-logs-1.1.1", 1 / 8),
    Target("upsert", "local-logs", "hudi-logs-1.1.1", 1 / 8),
    Target("compact", "spark-logs", "hudi-logs-1.1.1", 1 / 5),
    Target("compact", "local-logs", "hudi-logs-1.1.1", 1 / 5),
    Target("snapshot", "local-logs", "hudi-rs", 1.0),
    Target("snapshot", "local-logs", "hudi-logs-1.1.1", 1 / 2),
    Target("small", "local-logs", "hudi-logs-1.1.1", 1 / 10),
    Target("small", "spark-logs", "hudi-logs-1.1.1", 1 / 10),
)


def race_logs(
    load: Workload, folder: Path, rounds: int, say: Callable[[str], None], entries: Sequence[LogEntry] = ENTRIES
) -> Results:
    """One cold round and `rounds` warm ones. Raises AssertionError if a contender's rows are not
    those of the others."""
    folder.mkdir()
    results: Results = {entry.name: {step: Times() for step in STEPS} for entry in entries}
    small = _small_batches(load, folder)
    _expect(load)
    with Contenders() as contenders:
        running = {
            entry.name: contenders.of(
                entry.worker, bloom=False, python=HUDI_PYTHON if entry.hudi else None, version=entry.version
            )
            for entry in entries
        }
        writers = [entry for entry in entries if not entry.reads_only]
        for entry in writers:
            cost = running[entry.name].run("load", load.base, folder / f"{entry.name}-loaded", entry.version)
            say(f"{entry.label}: loaded in {cost.wall:.1f} s")
        for number in range(rounds + 1):
            turn = number % len(writers)
            for entry in writers[turn:] + writers[:turn]:
                costs = _round(entry, running, load, folder, small)
                for (worker, step), found in costs.items():
                    times = results[worker][step]
                    if number == 0:
                        times.cold = found[0]
                    else:
                        times.warm += found
                shown = ", ".join(f"{step} {_shown(found)}" for (_, step), found in costs.items())
                say(f"round {number or 'cold'}: {entry.label}: {shown}")
    return {worker: {step: times for step, times in steps.items() if times.warm} for worker, steps in results.items()}


def _shown(costs: list[Cost]) -> str:
    return "/".join(f"{cost.wall:.1f}" for cost in costs) + " s"


def _round(
    entry: LogEntry, running: Mapping[str, Contender], load: Workload, folder: Path, small: list[Path]
) -> dict[tuple[str, str], list[Cost]]:
    mine, base = running[entry.name], folder / entry.name
    shutil.rmtree(base, ignore_errors=True)
    shutil.copytree(folder / f"{entry.name}-loaded", base)
    costs: dict[tuple[str, str], list[Cost]] = {}
    for step in ("upsert", "snapshot", "incremental"):
        costs[(entry.name, step)] = [mine.run(step, load.updates, base, entry.version)]
    reader = entry.name.replace("local-logs", "hudi-rs")
    if reader != entry.name and reader in running:
        costs[(reader, "snapshot")] = [running[reader].run("snapshot", load.updates, base)]
    costs[(entry.name, "small")] = [mine.run("small", batch, base, entry.version) for batch in small]
    before = _held(base)
    costs[(entry.name, "compact")] = [mine.run("compact", load.updates, base, entry.version)]
    assert before == _held(base), f"{entry.label}: the compaction changed rows"
    table = open_table(str(base))
    logs = sum(row["log_files"] for row in table.files().to_pylist() if row["latest"])
    assert logs == 0, f"{entry.label}: {logs} logs are left"
    reference = folder / "reference.json"
    if not reference.exists():
        reference.write_text(repr(before))
    assert repr(before) == reference.read_text(), (
        f"{entry.label} holds {before}, the first held {reference.read_text()}"
    )
    return costs


def _held(base: Path) -> object:
    return figures(open_table(str(base)).scan(columns=list(CHECKED)).to_arrow())


def _expect(load: Workload) -> None:
    new = read(load.updates, (ORDERING,))
    expected = {
        "snapshot": [load.upserted.rows, load.upserted.ordering],
        "incremental": [len(new), pc.sum(new.column(ORDERING)).as_py()],
    }
    (load.updates / EXPECTED).write_text(json.dumps(expected))


def _small_batches(load: Workload, folder: Path) -> list[Path]:
    """Folders of 10,000 random rows each, newer than all before."""
    base = read(load.base)
    chance = np.random.default_rng(20_140_101)
    folders = []
    for number in range(SMALL_WRITES):
        rows = base.take(pa.array(np.sort(chance.choice(len(base), min(SMALL_ROWS, len(base) // 2), replace=False))))
        place = rows.schema.get_field_index(ORDERING)
        newer = pc.add(rows.column(ORDERING), NEWER * (number + 2))
        target = folder / f"small-{number}"
        target.mkdir()
        pq.write_table(rows.set_column(place, ORDERING, newer), target / "0.parquet", compression="zstd")
        folders.append(target)
    assert KEY in base.column_names
    return folders
