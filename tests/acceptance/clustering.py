"""The three clustering walks of the project's seed, through a HudiTable and TableServices in the
local runtime.

    python -m tests.acceptance.clustering [--scale 0.025] [--only inline,…]

Inserts of 96, 213 and 182 MiB with a file limit of 120 MiB and no packing, then clustering of files
below 200 MiB towards 300 MiB, sorted by `review_date`: inline, asynchronous (two jobs, or one), and
semi-asynchronous, whose first plan holds the first insert alone. After each step the table is
looked at, and what is not as the seed tells it is a failure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table.api import open_table
from hudi_table.table.store.clock import SystemClock
from tests.acceptance.reviews import CATEGORY, bytes_per_row, land
from tests.acceptance.seen import Seen, look
from tests.support.manifests import manifest

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "docs" / "results" / "acceptance-clustering.md"
MIB = 1 << 20
FILE_LIMIT, SMALL, TARGET = 120 * MIB, 200 * MIB, 300 * MIB
INSERTS = (96, 213, 182, 14.6)
"""MiB of Parquet in each insert."""
SIZE_TOLERANCE = 0.03
NEAR_EQUAL = 1.25


@dataclass(frozen=True)
class Step:
    """One step: what is done, by how many files the partition grows, and how many plans wait
    afterwards."""

    name: str
    service: str | None
    files: int
    clustered: int = 0
    plans: int = 0
    seed: str = ""


INSERT_1 = Step("Insert 96 MB", None, 1, seed="+1 small")
INSERT_2 = Step("Insert 213 MB", None, 2, seed="+1 max +1 small")
INSERT_3 = Step("Insert 182 MB", None, 2, seed="+1 max +1 small")
WALKS: Mapping[str, tuple[Mapping[str, str], Sequence[Step]]] = {
    "inline": (
        {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3"},
        (INSERT_1, INSERT_2, Step("Insert 182 MB", None, 2, clustered=2, seed="+1 max +1 small +2 clustered")),
    ),
    "async": (
        {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "3"},
        (
            INSERT_1,
            INSERT_2,
            INSERT_3,
            Step("Offline schedule", "Schedule", 0, plans=1, seed="a plan"),
            Step("Offline execute", "Execute", 0, clustered=2, seed="+2 clustered"),
        ),
    ),
    "async, one job": (
        {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "3"},
        (INSERT_1, INSERT_2, INSERT_3, Step("scheduleAndExecute", "ScheduleAndExecute", 0, clustered=2, seed="+2 clustered")),
    ),
    "semi-async": (
        {"hoodie.clustering.schedule.inline": "true"},
        (
            Step("Insert 96 MB", None, 1, plans=1, seed="+1 small, a plan"),
            Step("Insert 213 MB", None, 2, plans=1, seed="+1 max +1 small"),
            Step("Insert 182 MB", None, 2, plans=1, seed="+1 max +1 small"),
            Step("Offline execute", "Execute", 0, clustered=1, seed="+1 clustered"),
            Step("Insert 14.6 MB", None, 1, plans=1, seed="+1 small, a plan"),
            Step("Offline execute", "Execute", 0, clustered=2, seed="+2 clustered"),
        ),
    ),
}  # fmt: skip
"""Options of each walk's writer, and its steps."""


@dataclass
class Walk:
    """One walk in a folder of its own. `scale` shrinks every size; `row_bytes` is what a row takes
    on disk."""

    folder: Path
    options: Mapping[str, str]
    scale: float
    row_bytes: float
    say: Callable[[str], None]
    landed: int = 0
    rows: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def location(self) -> Path:
        return self.folder / "lake" / "reviews"

    def run(self, steps: Sequence[Step]) -> None:
        """Every step, looked at; raises nothing, what is wrong stands in `failures`."""
        before = Seen()
        for number, step in enumerate(steps):
            started = time.monotonic()
            self._do(number, step)
            seen = look(open_table(str(self.location)), CATEGORY)
            self._judge(step, before, seen)
            new = ", ".join(f"{size / MIB:.1f}" for size in seen.new_sizes(before))
            self.say(
                f"  {number + 1} {step.name:<19}{step.seed:<30}{seen.growth(before):<28}{new + ' MiB' if new else '–':<38}"
                f"{seen.overlap:6.2f}{seen.rows:>11,}  {seen.checksum}{time.monotonic() - started:7.1f} s"
            )
            before = seen

    def _do(self, number: int, step: Step) -> None:
        service = step.service
        if service is None:
            size = INSERTS[self.landed] * MIB * self.scale
            count = round(size / self.row_bytes)
            land(self.folder / "in" / f"{self.landed}.parquet", self.rows, count)
            self.landed, self.rows = self.landed + 1, self.rows + count
            documents = [self._table()]
        else:
            documents = [self._table(), self._service(f"step-{number + 1}", service)]
        path = self.folder / "manifest.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        lines: list[str] = []
        for document in LocalRuntime([path], self.folder / "state", SystemClock(), lines.append).run():
            ready = [
                c["message"] for c in document["status"]["conditions"] if c["type"] == "Ready" and c["status"] != "True"
            ]
            if ready:
                said = "; ".join(lines[-5:])
                self.failures.append(f"{step.name}: {document['kind']} is not ready: {ready[0]} ({said})")

    def _judge(self, step: Step, before: Seen, seen: Seen) -> None:
        def check(holds: bool, text: str) -> None:
            if not holds:
                self.failures.append(f"{step.name}: {text}")

        new = seen.new_sizes(before)
        check(len(new) == step.files + step.clustered, f"{len(new)} new files, not {step.files + step.clustered}")
        check(seen.plans == step.plans, f"{seen.plans} plans wait, not {step.plans}")
        check(seen.rows == self.rows, f"{seen.rows:,} rows, not {self.rows:,}")
        if step.service is None:
            size, asked = sum(seen.written(before)), INSERTS[self.landed - 1] * MIB * self.scale
            check(abs(size / asked - 1) <= SIZE_TOLERANCE, f"{size / MIB:.2f} MiB on disk, not {asked / MIB:.2f}")
        else:
            check(seen.checksum == before.checksum, "the keys are not those of before")
        if step.clustered > 1:
            made = seen.clustered_sizes()
            check(
                max(made, default=1) <= NEAR_EQUAL * min(made, default=0),
                f"clustered files of {made} bytes are not near-equal",
            )
            check(len(seen.sizes) == step.clustered, f"{len(seen.sizes)} files are read, not the clustered ones alone")
            check(seen.overlap < 1.1, f"a day lies in {seen.overlap:.2f} files on average")

    def _table(self) -> dict[str, Any]:
        return manifest(
            "reviews",
            location=f"file://{self.location}",
            recordKey=["review_id"],
            partitionBy=[{"field": "product_category"}],
            files={"targetSize": str(round(FILE_LIMIT * self.scale))},
            ingest=[
                {
                    "name": "reviews",
                    "operation": "Insert",
                    "source": {"type": "Files", "path": f"file://{self.folder}/in/", "format": "parquet"},
                }
            ],
            options={
                "hoodie.parquet.small.file.limit": "0",
                "hoodie.copyonwrite.record.size.estimate": "175",
                **self._sizes(),
                **self.options,
            },
        )

    def _service(self, name: str, mode: str) -> dict[str, Any]:
        sizes = {"smallFileLimit": str(round(SMALL * self.scale)), "targetFileSize": str(round(TARGET * self.scale))}
        return manifest(
            name,
            kind="TableService",
            tableRef={"name": "reviews"},
            type="Clustering",
            mode=mode,
            clustering={"sortColumns": ["review_date"], **sizes},
        )

    def _sizes(self) -> dict[str, str]:
        return {
            "hoodie.clustering.plan.strategy.small.file.limit": str(round(SMALL * self.scale)),
            "hoodie.clustering.plan.strategy.target.file.max.bytes": str(round(TARGET * self.scale)),
            "hoodie.clustering.plan.strategy.sort.columns": "review_date",
        }


def walk_all(folder: Path, scale: float, names: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """Run the walks and print each beside the seed's table; returns what was not as it should
    be."""
    row_bytes = bytes_per_row(folder / "sample")
    say(f"a row takes {row_bytes:.1f} bytes on disk; sizes are {scale:g} of the seed's")
    failures = []
    for name in names:
        options, steps = WALKS[name]
        say(f"\n{name}: {', '.join(f'{key}={value}' for key, value in options.items())}")
        say(f"    {'step':<19}{'in the seed':<30}{'here':<28}{'new files':<38}{'files/day':>6}{'rows':>9}  keys")
        walk = Walk(folder / name.replace(", ", "-").replace(" ", "-"), options, scale, row_bytes, say)
        walk.run(steps)
        failures += [f"{name}: {text}" for text in walk.failures]
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the walks; 1 if one did not go as the seed tells."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.clustering", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the seed's sizes (1)")
    parser.add_argument("--only", default=",".join(WALKS), help="walks, separated by commas")
    parser.add_argument("--scratch", help="folder for the tables, 3 GiB at full size")
    parsed = parser.parse_args(arguments)
    names = [name for name in WALKS if name in parsed.only]
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    with tempfile.TemporaryDirectory(prefix="acceptance-", dir=parsed.scratch) as folder:
        failures = walk_all(Path(folder), parsed.scale, names, say)
    say("\n" + ("as in the seed" if not failures else "NOT as in the seed:\n" + "\n".join(failures)))
    if parsed.scale == 1 and len(names) == len(WALKS):
        RESULT.write_text(report(commit(), lines))
    return 1 if failures else 0


def report(of: str, lines: Sequence[str]) -> str:
    """The page of a run at full size."""
    table = "\n".join(lines)
    return (
        f"# The clustering walks of the seed\n\nWritten by `make acceptance-clustering`; commit {of}. *files/day*: in how many of the files "
        "that are read\na day of `review_date` lies, by their smallest and largest value; *keys*: a checksum of all record keys.\n\n"
        f"```\n{table}\n```\n"
    )


def commit() -> str:
    """The commit that is checked out, by its short name."""
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
