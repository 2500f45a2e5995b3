"""The race: every contender takes both steps in every round, one after the other, each checked."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from bench.process import ROOT, Contender, Contenders, Cost
from bench.rows import CHECKED, Figures, Workload, figures
from hudi_table import open_table

STEPS = ("bulk_insert", "upsert")
HUDI_PYTHON = ROOT / ".venv-hudi" / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Entry:
    """Who takes part: a worker's name, its label, whether it writes bloom filters, and the version
    of its tables."""

    worker: str
    label: str
    bloom: bool = False
    version: int = 6

    @property
    def name(self) -> str:
        return f"{self.worker}{'-bloom' * self.bloom}{'-9' * (self.version == 9)}"


ENTRIES = (
    Entry("floor", "pyarrow alone"),
    Entry("local", "ours, LocalEngine"),
    Entry("spark", "ours, Spark"),
    Entry("hudi", "Apache Hudi"),
    Entry("delta", "delta-rs"),
    Entry("local", "ours, LocalEngine, bloom", bloom=True),
    Entry("spark", "ours, Spark, bloom", bloom=True),
    Entry("hudi", "Apache Hudi, bloom", bloom=True),
)


@dataclass(slots=True)
class Times:
    """Costs of one step of one contender: the first, cold one apart."""

    cold: Cost | None = None
    warm: list[Cost] = field(default_factory=list)

    def middle(self, of: Callable[[Cost], float]) -> float:
        return median(of(cost) for cost in self.warm)


@dataclass(frozen=True, slots=True)
class Target:
    """`ours` may take at most `limit` times the wall time of `other` in `step`."""

    step: str
    ours: str
    other: str
    limit: float


TARGETS = (
    Target("upsert", "spark", "floor", 2.0),
    Target("upsert", "spark", "hudi", 1 / 5),
    Target("bulk_insert", "spark", "floor", 2.5),
    Target("bulk_insert", "spark", "hudi", 1 / 2),
    Target("upsert", "spark-bloom", "hudi-bloom", 1 / 5),
    Target("bulk_insert", "spark-bloom", "hudi-bloom", 1 / 2),
    Target("upsert", "local", "delta", 1.0),
    Target("bulk_insert", "local", "delta", 2.0),
)
Results = dict[str, dict[str, Times]]


def race(load: Workload, folder: Path, rounds: int, entries: Iterable[Entry], say: Callable[[str], None]) -> Results:
    """One cold round and `rounds` warm ones. Raises AssertionError if a table does not hold what it
    must."""
    entries = list(entries)
    results: Results = {entry.name: {step: Times() for step in STEPS} for entry in entries}
    with Contenders() as contenders:
        running = {
            entry.name: contenders.of(
                entry.worker,
                bloom=entry.bloom,
                python=HUDI_PYTHON if entry.worker == "hudi" else None,
                version=entry.version,
            )
            for entry in entries
        }
        for number in range(rounds + 1):
            # Each round begins with another contender, so that none always has the same neighbour in the machine's caches.
            turn = number % len(entries)
            for entry in entries[turn:] + entries[:turn]:
                costs = _round(entry, running[entry.name], load, folder / entry.name)
                for step, cost in zip(STEPS, costs, strict=True):
                    times = results[entry.name][step]
                    if number == 0:
                        times.cold = cost
                    else:
                        times.warm.append(cost)
                shown = ", ".join(
                    f"{step} {cost.wall:.1f} s (CPU {cost.cpu:.1f} s)" for step, cost in zip(STEPS, costs, strict=True)
                )
                say(f"round {number or 'cold'}: {entry.label}: {shown}")
    return results


def _round(entry: Entry, contender: Contender, load: Workload, base: Path) -> list[Cost]:
    shutil.rmtree(base, ignore_errors=True)
    costs = []
    for step, rows, expected in (
        ("bulk_insert", load.base, load.loaded),
        ("upsert", load.updates, load.upserted),
    ):
        costs.append(contender.run(step, rows, base, entry.version))
        held = held_by(entry.worker, base)
        assert held == expected, f"{entry.label} after {step} holds {held}, must hold {expected}"
    shutil.rmtree(base)
    return costs


def held_by(worker: str, base: Path) -> Figures:
    """The figures of a contender's table, read from outside its session."""
    if worker in ("local", "spark", "hudi"):
        return figures(open_table(str(base)).scan(columns=list(CHECKED)).to_arrow())
    files: list[Path] = sorted(base.rglob("*.parquet"))
    if worker == "delta":
        import deltalake

        files = [base / uri.split(f"{base.name}/", 1)[1] for uri in deltalake.DeltaTable(base).file_uris()]
    return figures(pa.concat_tables(pq.ParquetFile(file).read(columns=list(CHECKED)) for file in files))
