"""The race of table services: a table of many small files, all of it clustered by one column,
beside Apache Hudi.

Every contender clusters a copy of the same table. Rows, the number of files, and their order are
checked after each round.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from bench.idle import Idle, idle_times
from bench.ours import options_of
from bench.process import Contender, Cost
from bench.race import HUDI_PYTHON, Results, Target, Times
from bench.rows import CHECKED, Figures, Workload, figures, read
from bench.services_steps import CURVE, CURVE_OUTPUTS, FILES, OUTPUTS, SORTED_BY, clustering_options, sorted_by
from bench.settings import KEY, ORDERING
from hudi_table import create_table, open_table
from hudi_table.api import HudiTable
from hudi_table.codec.parquet import BaseFileFooter, read_footer
from hudi_table.read.pruning.partitions import matching_row_groups

STEPS = ("cluster",)
UNSORTED = "unsorted"
LAYOUTS = ("linear", "z-order", "hilbert")
FILES_READ_MAX = 0.25
_BOXES = 5
"""Ranges of each column that filters ask for, spread over all of it."""
_SHARE = 0.05
"""Of a column's rows, what a range holds."""
_MONTH = "l_shipdate >= '1995-06-01' and l_shipdate < '1995-07-01'"
_WHOLE_FILE = 1 << 30


@dataclass(frozen=True, slots=True)
class ServicesEntry:
    """A contender: its worker and its label."""

    worker: str
    label: str


ENTRIES = (
    ServicesEntry("local-services", "ours, LocalEngine"),
    ServicesEntry("spark-services", "ours, Spark"),
    ServicesEntry("hudi-services-1.1.1", "Apache Hudi 1.1.1"),
)
TARGETS = (
    Target("cluster", "local-services", "hudi-services-1.1.1", 1 / 4),
    Target("cluster", "spark-services", "hudi-services-1.1.1", 1 / 4),
)


@dataclass(frozen=True, slots=True)
class ServicesResults:
    """Everything that the section measures. `files`: what each contender left of `before`."""

    before: int
    bytes_before: int
    results: Results
    files: Mapping[str, int]
    read: Mapping[str, FilesRead]
    idle: Mapping[str, Idle]


@dataclass(frozen=True, slots=True)
class FilesRead:
    """Share of the table's files that filters on both columns of the curve, or on one of them,
    read; a mean over ranges."""

    both: float
    first: float
    second: float


def measured_services(load: Workload, folder: Path, rounds: int, say: Callable[[str], None]) -> ServicesResults:
    """The race, what the layouts spare, and the services that find nothing to do."""
    folder.mkdir()
    table = folder / "small"
    before = small_files(load, table)
    size = sum(file.stat().st_size for file in table.glob("*.parquet"))
    results, files = race_services(load, table, folder, rounds, say)
    read = files_read(load, table, folder, say)
    return ServicesResults(before, size, results, files, read, idle_times(folder / "idle"))


def small_files(load: Workload, base: Path) -> int:
    """The table that everybody clusters: no partitions, rows as they came. Returns the number of
    its files."""
    rows = read(load.base)
    table = create_table(
        base, rows.schema.remove_metadata(), record_key=KEY, ordering_fields=ORDERING, type="CopyOnWrite", version=6
    )
    size = -(-load.rows // FILES)
    more = {
        "hoodie.parquet.max.file.size": str(_WHOLE_FILE),
        "hoodie.copyonwrite.record.size.estimate": str(_WHOLE_FILE // size),
        "hoodie.parquet.small.file.limit": "0",
    }
    table.write(rows, operation="insert", options=options_of(bloom=False) | more)
    return len(table.scan().plan_files())


def race_services(
    load: Workload, table: Path, folder: Path, rounds: int, say: Callable[[str], None]
) -> tuple[Results, dict[str, int]]:
    """One cold round and `rounds` warm ones; and how many files each contender left. Raises
    AssertionError if a clustering left other rows, files or another order."""
    results: Results = {entry.worker: {step: Times() for step in STEPS} for entry in ENTRIES}
    files: dict[str, int] = {}
    with ExitStack() as sessions:
        running: Mapping[str, Contender] = {
            entry.worker: sessions.enter_context(
                Contender(entry.worker, bloom=False, python=HUDI_PYTHON if "hudi" in entry.worker else None)
            )
            for entry in ENTRIES
        }
        for number in range(rounds + 1):
            turn = number % len(ENTRIES)
            for entry in ENTRIES[turn:] + ENTRIES[:turn]:
                base = folder / entry.worker
                cost, files[entry.worker] = _clustered(entry, running[entry.worker], table, base, load.loaded)
                times = results[entry.worker]["cluster"]
                if number == 0:
                    times.cold = cost
                else:
                    times.warm.append(cost)
                say(f"round {number or 'cold'}: {entry.label}: cluster {cost.wall:.1f} s (CPU {cost.cpu:.1f} s)")
    return results, files


def _clustered(entry: ServicesEntry, mine: Contender, table: Path, base: Path, expected: Figures) -> tuple[Cost, int]:
    shutil.rmtree(base, ignore_errors=True)
    shutil.copytree(table, base)
    cost = mine.run("cluster", table, base)
    found = open_table(str(base))
    held = figures(found.scan(columns=list(CHECKED)).to_arrow())
    assert held == expected, f"{entry.label} holds {held}, must hold {expected}"
    files = len(found.scan().plan_files())
    ours = "hudi-" not in entry.worker
    assert files == OUTPUTS if ours else OUTPUTS <= files < FILES, f"{entry.label} left {files} files, not {OUTPUTS}"
    of_month = _read_by(found, _MONTH, _footers(found))
    assert of_month <= max(2, files // 8), f"{entry.label}: a month of {SORTED_BY} lies in {of_month} of {files} files"
    shutil.rmtree(base)
    return cost, files


def files_read(load: Workload, table: Path, folder: Path, say: Callable[[str], None]) -> dict[str, FilesRead]:
    """By layout, "unsorted" the first: what filters on the two columns read after clustering by
    them."""
    shares = {UNSORTED: _shares_read(load, open_table(str(table)))}
    for layout in LAYOUTS:
        base = folder / layout
        shutil.copytree(table, base)
        options = (
            clustering_options(base, CURVE_OUTPUTS) | sorted_by(*CURVE) | {"hoodie.layout.optimize.strategy": layout}
        )
        open_table(str(base)).cluster(options, force=True)
        shares[layout] = _shares_read(load, open_table(str(base)))
        shutil.rmtree(base)
        say(f"{layout}: a filter on both columns reads {shares[layout].both:.0%} of the files")
    return shares


def _shares_read(load: Workload, table: HudiTable) -> FilesRead:
    first, second = (_ranges(load, column) for column in CURVE)
    footers = _footers(table)

    def share(filters: list[str]) -> float:
        return sum(_read_by(table, text, footers) for text in filters) / len(filters) / len(footers)

    return FilesRead(share([f"{a} and {b}" for a in first for b in second]), share(first), share(second))


def _footers(table: HudiTable) -> list[BaseFileFooter]:
    found = []
    for item in table.scan().plan.slices:
        assert item.base is not None
        with table.context.storage.open_read(item.base.path) as source:
            found.append(read_footer(source, path=item.base.path))
    return found


def _read_by(table: HudiTable, text: str, footers: list[BaseFileFooter]) -> int:
    """Files of which a scan reads more than the footer: what the reader's own pruning leaves."""
    plan = table.scan(filter=text).plan
    assert plan.bound is not None
    assert len(plan.slices) == len(footers), "no file is left out before its footer is read"
    return sum(bool(matching_row_groups(plan.bound, foot.schema, foot.metadata, plan.reads)) for foot in footers)


def _ranges(load: Workload, column: str) -> list[str]:
    """Filters, each on a range that holds `_SHARE` of the rows."""
    values = read(load.base, (column,)).column(column).combine_chunks()
    ranked = values.take(pc.array_sort_indices(values))
    starts = [len(ranked) * (2 * number + 1) // (2 * _BOXES) for number in range(_BOXES)]
    limits = [(ranked[at].as_py(), ranked[at + int(_SHARE * len(ranked))].as_py()) for at in starts]
    return [f"{column} >= {_literal(low)} and {column} < {_literal(high)}" for low, high in limits]


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"
