"""The race of readers: the same base files of a copy-on-write table read by ours, DuckDB, Polars,
DataFusion, pyarrow, delta-rs, pyiceberg and hudi-rs; and a merge-on-read table with a tenth of the
rows in logs.

Base files are those that ours wrote, meta columns included; delta-rs and pyiceberg get tables over
hard links of them. Queries join lineitem with plain Parquet files. Readers take turns round by
round, each in a process of its own, and nothing is kept between two reads but what the libraries
keep themselves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from bench.ours import Local, options_of
from bench.process import Contender
from bench.race import Results, Target, Times
from bench.reads_queries import QUERIES, SIDES
from bench.reads_steps import DATA, DELTA, EXPECTED, HUDI, ICEBERG, JOINED, THREE, comparable, held, iceberg_catalog
from bench.rows import CHECKED, Workload, figures, read, side_tables
from bench.settings import KEY
from hudi_table import open_table

READ_ROWS = 3_000_000
SCANS = ("all", "three")
STEPS = (*SCANS, *QUERIES)
PLAIN, MERGED = "plain", "merged"
"""The folder whose table is copy-on-write, and the one whose table has a tenth of its rows in
logs."""


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """A reader, what it is asked, and whether it reads logs."""

    worker: str
    label: str
    steps: tuple[str, ...] = STEPS
    merges: bool = False


ENTRIES = (
    ReadEntry("reads-ours", "ours", merges=True),
    ReadEntry("reads-ours-polars", "ours, by Polars", merges=True),
    ReadEntry("reads-ours-datafusion", "ours, by DataFusion", merges=True),
    ReadEntry("reads-duckdb", "DuckDB"),
    ReadEntry("reads-polars", "Polars"),
    ReadEntry("reads-datafusion", "DataFusion"),
    ReadEntry("reads-pyarrow", "pyarrow", SCANS),
    ReadEntry("reads-delta", "delta-rs"),
    ReadEntry("reads-iceberg", "pyiceberg", SCANS),
    ReadEntry("reads-hudi-rs", "hudi-rs", SCANS, merges=True),
)
FASTEST = "fastest"
"""Of delta-rs, DuckDB, Polars and pyarrow, step by step."""
_RACED = ("reads-delta", "reads-duckdb", "reads-polars", "reads-pyarrow")


def merged(step: str) -> str:
    """The name of a step over the table with logs."""
    return f"{step}, logs"


TARGETS = (
    Target("all", "reads-ours", FASTEST, 1.1),
    Target("three", "reads-ours", FASTEST, 1.2),
    Target("q1", "reads-ours", "reads-duckdb", 1.1),
    Target("q6", "reads-ours", "reads-duckdb", 1.1),
    *(Target(merged(step), "reads-ours", "reads-hudi-rs", 0.35) for step in SCANS),
)
LOGS_MAX = 2.0
"""How much longer a read may take with a tenth of the rows in logs."""


def race_reads(
    load: Workload, folder: Path, rounds: int, say: Callable[[str], None], only: Sequence[str] = ()
) -> Results:
    """One cold round and `rounds` warm ones; steps over the table with logs are called as `merged`
    does. Raises RuntimeError if a reader gave another answer than it must."""
    entries = [entry for entry in ENTRIES if not only or entry.worker in only]
    tables = make_tables(load, folder, {entry.worker for entry in entries})
    say(f"{load.rows:,} rows written, {load.updated:,} of them once more to logs")
    results: Results = {entry.worker: {} for entry in entries}
    with ExitStack() as sessions:
        running = {entry.worker: sessions.enter_context(Contender(entry.worker, bloom=False)) for entry in entries}
        for number in range(rounds + 1):
            for step in STEPS:
                turn = number % len(entries)
                for entry in entries[turn:] + entries[:turn]:
                    _read(entry, running[entry.worker], step, tables, results[entry.worker], number)
            say(f"round {number or 'cold'} done")
    return results


def _read(
    entry: ReadEntry, worker: Contender, step: str, tables: Mapping[str, Path], times: dict[str, Times], number: int
) -> None:
    for name, which in ((step, PLAIN), (merged(step), MERGED)):
        if step not in entry.steps or (which == MERGED and not entry.merges):
            continue
        cost = worker.run(step, tables[which], tables[which])
        found = times.setdefault(name, Times())
        if number == 0:
            found.cold = cost
        else:
            found.warm.append(cost)


def with_fastest(results: Results) -> Results:
    """The results, and the fastest of the raced readers step by step."""
    best: dict[str, Times] = {}
    for step in SCANS:
        known = [results[name][step] for name in _RACED if step in results.get(name, {})]
        if known:
            best[step] = min(known, key=lambda times: times.middle(lambda cost: cost.wall))
    return {**results, FASTEST: best}


def make_tables(load: Workload, folder: Path, workers: set[str]) -> dict[str, Path]:
    """A folder without logs and one with them, what lies in them told by `reads_steps`; and the
    answers beside."""
    folder.mkdir(parents=True)
    plain, merged_folder = folder / PLAIN, folder / MERGED
    sides = {name: str(path) for name, path in side_tables(load, SIDES).items()}
    Local(bloom=False).bulk_insert(load.base, plain / HUDI)
    writer = _Writer()
    writer.bulk_insert(load.base, merged_folder / HUDI)
    writer.upsert(load.updates, merged_folder / HUDI)
    for base, expected in ((plain, load.loaded), (merged_folder, load.upserted)):
        table = open_table(str(base / HUDI))
        assert figures(table.scan(columns=list(CHECKED)).to_arrow()) == expected
        (base / JOINED).write_text(json.dumps(sides))
        (base / DATA).write_text(json.dumps(table.scan().plan_files().column("path").to_pylist()))
    rows = read(load.base)
    new = read(load.updates)
    _expect(plain, rows, sides)
    _expect(merged_folder, pa.concat_tables([_without(rows, new), new]), sides)
    if "reads-delta" in workers:
        _delta(plain)
    if "reads-iceberg" in workers:
        _iceberg(plain)
    return {PLAIN: plain, MERGED: merged_folder}


class _Writer(Local):
    table_type = "MergeOnRead"

    def __init__(self) -> None:
        super().__init__(bloom=False)
        self.more = options_of(bloom=False)


def _without(rows: pa.Table, new: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows.column(KEY), value_set=new.column(KEY).combine_chunks())))


def _expect(base: Path, lineitem: pa.Table, sides: Mapping[str, str]) -> None:
    with duckdb.connect() as connection:
        connection.register("lineitem", lineitem)
        for name, path in sides.items():
            connection.read_parquet(path).create_view(name)
        answers = {name: connection.sql(text).fetchall() for name, text in QUERIES.items()}
    plain = {name: comparable(found) for name, found in answers.items()}
    scans = {"all": held(lineitem), "three": held(lineitem.select(list(THREE)))}
    (base / EXPECTED).write_text(json.dumps(plain | scans))


def _linked(base: Path, folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    links = []
    for number, path in enumerate(json.loads((base / DATA).read_text())):
        link = folder / f"{number:03}.parquet"
        os.link(path, link)
        links.append(link)
    return links


def _delta(base: Path) -> None:
    import deltalake

    _linked(base, base / DELTA)
    deltalake.convert_to_deltalake(base / DELTA)


def _iceberg(base: Path) -> None:
    import pyarrow.parquet as pq

    links = _linked(base, base / ICEBERG / "data")
    catalog = iceberg_catalog(base)
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.lineitem", schema=pq.read_schema(links[0]).remove_metadata())
    table.add_files([f"file://{link}" for link in links])
