"""`python -m bench`, called by `make bench` (BENCH="--rounds 3" hands options on)."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.index_report import indexes_record, lookups_record, planning_record
from bench.index_rows import batch
from bench.indexes import race_indexes
from bench.logs import race_logs
from bench.lookups import measured_lookups
from bench.memory import worker_memory
from bench.peers import HUDI_OF
from bench.planning import FULL_GROUPS, measured_planning
from bench.process import ROOT
from bench.race import ENTRIES, HUDI_PYTHON, race
from bench.reads import ENTRIES as READ_ENTRIES
from bench.reads import READ_ROWS, race_reads
from bench.reads_report import reads_record
from bench.report import (
    logs_record,
    machine_facts,
    markdown,
    memory_record,
    race_record,
    services_record,
    starts_record,
)
from bench.rows import workload
from bench.services import measured_services
from bench.starts import measured_starts
from bench.store import measured_store, store_record
from bench.stream_hour import HOUR_SECONDS, hour_record, measured_hour
from bench.streams import FOLLOW_SECONDS, race_streams, streams_record
from bench.streams import ROWS as STREAM_ROWS
from bench.versions import LATER, race_versions, versions_record
from bench.writers import WRITE_SECONDS, measured_writers, writers_record
from scripts.setup_env import IVY
from scripts.setup_oracles import fetch

RESULTS = ROOT / "docs" / "results"
CACHE = ROOT / ".cache" / "bench"
FULL_ROWS = 3_000_000
MEMORY_ROWS = 30_000_000
LOG_ROUNDS_MAX = 3
PARTS = ("upsert", "lookups", "planning")


def main() -> None:
    options = _options()
    kept = RESULTS / "bench.json"
    record: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.scratch) as folder:
        for name, measure in MEASURED.items():
            if name in options.sections:
                record[name] = _on_this_machine(partial(measure, options, Path(folder)))
        if "indexes" in options.sections:
            _indexes(options, Path(folder), record, kept)
    text = markdown({name: value for name, value in record.items() if name in options.sections})
    print(text)
    if options.keep:
        _keep(record, kept)


def _starts(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    del options
    return {"times": starts_record(measured_starts(folder))}


def _race(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    names = options.only.split(",") if options.only else [entry.name for entry in ENTRIES]
    entries = [entry for entry in ENTRIES if entry.name in names]
    load = workload(CACHE, options.rows)
    return race_record(load, options.rounds, race(load, folder, options.rounds, entries, _say))


def _logs(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    load, rounds = workload(CACHE, options.rows), _few(options)
    return logs_record(load, rounds, race_logs(load, folder / "logs", rounds, _say))


def _versions(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    fetch(HUDI_OF[LATER], HUDI_PYTHON.parent.parent, Path(os.environ.get("HUDI_INTEROP_IVY") or IVY))
    load, rounds = workload(CACHE, options.rows), _few(options)
    return versions_record(load, rounds, race_versions(load, folder / "versions", rounds, _say))


def _services(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    load, rounds = workload(CACHE, options.rows), _few(options)
    return services_record(load, rounds, measured_services(load, folder / "services", rounds, _say))


def _reads(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    load = workload(CACHE, options.read_rows)
    only = [f"reads-{name}" for name in options.only.split(",") if name]
    return reads_record(load, options.rounds, race_reads(load, folder / "reads", options.rounds, _say, only))


def _store(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    return store_record(_few(options), measured_store(folder / "store", _few(options), _say))


def _writers(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    return writers_record(measured_writers(folder / "writers", options.write_seconds, _say))


def _streams(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    return streams_record(race_streams(folder / "streams", options.stream_rows, options.stream_seconds, _say))


def _hour(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    return hour_record(options.hour_seconds, measured_hour(folder / "hour", options.hour_seconds, _say))


def _memory(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    large = workload(CACHE, options.memory_rows)
    return memory_record(large, worker_memory(large, folder))


MEASURED = {
    "starts": _starts,
    "race": _race,
    "logs": _logs,
    "versions": _versions,
    "services": _services,
    "reads": _reads,
    "store": _store,
    "writers": _writers,
    "streams": _streams,
    "hour": _hour,
    "memory": _memory,
}
"""Section → what measures it; that of indexes is kept part by part."""


def _few(options: argparse.Namespace) -> int:
    return min(options.rounds, LOG_ROUNDS_MAX)


def _indexes(options: argparse.Namespace, folder: Path, record: dict[str, Any], kept: Path) -> None:
    """The parts of the section of indexes, each kept as soon as it is measured: `--parts` goes on
    where a run ended."""
    rounds, parts = _few(options), options.parts.split(",")

    def measure(name: str, figures: Callable[[], dict[str, Any]]) -> None:
        if name in parts:
            record.setdefault("indexes", {})[name] = _on_this_machine(figures)
            if options.keep:
                _keep(record, kept)

    def raced() -> dict[str, Any]:
        load = workload(CACHE, options.rows)
        figures = batch(load)
        return indexes_record(load, figures, rounds, race_indexes(load, figures, folder / "upsert", rounds, _say))

    def looked_up() -> dict[str, Any]:
        load = workload(CACHE, options.rows)
        return lookups_record(load, rounds, measured_lookups(load, folder / "lookups", rounds, _say))

    measure("upsert", raced)
    measure("lookups", looked_up)
    measure(
        "planning",
        lambda: planning_record(rounds, measured_planning(folder / "planning", options.groups, rounds, _say)),
    )


def _keep(record: dict[str, Any], kept: Path) -> None:
    kept.write_text(json.dumps(record, indent=1) + "\n")
    (RESULTS / "bench.md").write_text(markdown(record))


def _on_this_machine(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    machine = machine_facts()
    measured = measure()
    return {"machine": machine | {"load_at_end": round(os.getloadavg()[0], 1)}} | measured


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Race the write path.")
    parser.add_argument("--rows", type=int, default=FULL_ROWS, help="rows of the race")
    parser.add_argument("--rounds", type=int, default=5, help="warm rounds after the cold one")
    parser.add_argument(
        "--only",
        default="",
        help=f"race alone, of {','.join(_names(['race']))}; with --reads of {','.join(_names(['reads']))}",
    )
    parser.add_argument("--memory", action="store_true", help="measure one worker's memory instead of racing")
    parser.add_argument("--memory-rows", type=int, default=MEMORY_ROWS)
    parser.add_argument("--logs", action="store_true", help="race over merge-on-read tables only")
    parser.add_argument("--versions", action="store_true", help="both races on table version 9, beside version 6, only")
    parser.add_argument(
        "--services", action="store_true", help="race clusterings, and time services with nothing to do"
    )
    parser.add_argument("--indexes", action="store_true", help="upserts by indexes, point lookups, and planning only")
    parser.add_argument("--parts", default=",".join(PARTS), help="of --indexes, some of these")
    parser.add_argument(
        "--groups", type=int, default=FULL_GROUPS, help="file groups of the largest table that is planned on"
    )
    parser.add_argument("--reads", action="store_true", help="race readers of the same files only")
    parser.add_argument("--read-rows", type=int, default=READ_ROWS, help="rows of that race")
    parser.add_argument("--store", action="store_true", help="operations on an object store at several delays only")
    parser.add_argument("--writers", action="store_true", help="writers beside each other in an object store only")
    parser.add_argument("--write-seconds", type=float, default=WRITE_SECONDS, help="how long they write")
    parser.add_argument("--streams", action="store_true", help="a topic into a table, beside Spark and Hudi, only")
    parser.add_argument("--stream-rows", type=int, default=STREAM_ROWS, help="messages that are caught up with")
    parser.add_argument("--stream-seconds", type=float, default=FOLLOW_SECONDS, help="how long a topic is followed")
    parser.add_argument("--hour", action="store_true", help="follow a topic for an hour with services on, only")
    parser.add_argument("--hour-seconds", type=float, default=HOUR_SECONDS, help="how long that hour is")
    parser.add_argument(
        "--starts", action="store_true", help="time imports, help, a question, a small query and an ingest only"
    )
    parser.add_argument("--scratch", help="folder on whose disk the tables are written")
    parser.add_argument("--no-keep", dest="keep", action="store_false", help="print only, write no results")
    options = parser.parse_args()
    chosen = [name for name in (*MEASURED, "indexes") if name != "race" and getattr(options, name)]
    # Whoever takes part in a race is named for that race.
    options.sections = chosen or (["race"] if options.only else ["starts", "race", "logs", "versions"])
    if unknown := sorted({*options.only.split(",")} - {"", *_names(options.sections)}):
        parser.error(f"--only names {', '.join(unknown)}: it takes some of {','.join(_names(options.sections))}")
    return options


def _names(sections: Sequence[str]) -> list[str]:
    """Who takes part in the races of these sections."""
    if "reads" in sections:
        return [entry.worker.removeprefix("reads-") for entry in READ_ENTRIES]
    return [entry.name for entry in ENTRIES]


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


if __name__ == "__main__":
    main()
