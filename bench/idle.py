"""Table services that find nothing to do: the time of each one's job as a process, and whether it
started Java."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from bench.process import ROOT, compiled
from hudi_table import create_table
from hudi_table.api import HudiTable
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.options.write_options import WRITERS_STOPPED
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.index_properties import BUCKETS

SECONDS_MAX = 2.0
RUNS = 3
CALLED = "java-was-called"
_ROWS = 1_000
_BUCKETS = 2


@dataclass(frozen=True, slots=True)
class Idle:
    """Median seconds of wall time, what the job said, and whether it called `java`."""

    wall: float
    outcome: str
    java: bool


def idle_times(folder: Path) -> dict[str, Idle]:
    """Each service's job, asked for Spark, on a table that it has no work on. Raises AssertionError
    if one fails."""
    folder.mkdir()
    env = _with_false_java(folder)
    tables = {name: _table(folder / name, buckets) for name, buckets in (("buckets", _BUCKETS), ("flat", None))}
    gone, kept = _taken_back(tables["buckets"])
    sure = {WRITERS_STOPPED: "true"}
    sections: Mapping[ServiceType, dict[str, Any]] = {
        ServiceType.SAVEPOINT: {"instant": kept},
        ServiceType.RESTORE: {"instant": kept, "options": sure},
        ServiceType.ROLLBACK: {"instant": gone, "options": sure},
        ServiceType.RESIZE: {"options": {BUCKETS: str(_BUCKETS)}},
        ServiceType.PARTITION_TTL: {"options": {"hoodie.partition.ttl.strategy.days.retain": "36500"}},
    }
    idle = {}
    for kind in ServiceType:
        table = tables["flat" if kind is ServiceType.CLUSTERING else "buckets"]
        if kind is ServiceType.INDEXING:
            table.build_metadata()
        idle[kind.value] = _idle({"type": kind.value, **sections.get(kind, {})}, table, folder, env)
    return idle


def _table(base: Path, buckets: int | None) -> HudiTable:
    rows = pa.table({"id": [str(i) for i in range(_ROWS)], "ts": pa.array(range(_ROWS)), "day": ["2013-01-01"] * _ROWS})
    table = create_table(
        base,
        rows.schema,
        record_key="id",
        ordering_fields="ts",
        partition_by="day",
        type="MergeOnRead",
        index="Simple" if buckets is None else {"type": "Bucket", "buckets": buckets},
        version=6,
    )
    table.upsert(rows)
    return table


def _taken_back(table: HudiTable) -> tuple[str, str]:
    """A write that has been rolled back, and the one before it, which a savepoint keeps."""
    kept = table.savepoint(comment="bench").instant
    rows = table.scan(limit=1).to_arrow()
    gone = table.upsert(rows).instant
    assert gone is not None
    table.rollback(gone, writers_stopped=True)
    return gone, kept


def _with_false_java(folder: Path) -> dict[str, str]:
    """An environment whose `java` leaves a mark, so that no start of it goes unseen."""
    java = folder / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch '{folder / CALLED}'\nexit 1\n")
    java.chmod(0o755)
    path = os.pathsep.join((str(java.parent), os.environ.get("PATH", "")))
    return {**compiled(), "JAVA_HOME": str(folder / "jdk"), "PATH": path, "PYTHONPATH": str(ROOT / "spark_app")}


def _idle(work: dict[str, Any], table: HudiTable, folder: Path, env: Mapping[str, str]) -> Idle:
    paths = [folder / "spec.json", folder / "result.json"]
    described = {"name": "idle", "location": table.context.base_path, "type": "MergeOnRead", "recordKey": ["id"]}
    paths[0].write_text(JobSpec("bench", described, work, engine="Spark").to_json())
    (folder / CALLED).unlink(missing_ok=True)
    command = [sys.executable, "-m", "hudi_spark.jobs", *map(str, paths)]
    walls, outcomes = [], set()
    for _ in range(RUNS):
        start = time.perf_counter()
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        walls.append(time.perf_counter() - start)
        result = JobResult.from_json(paths[1].read_text())
        assert done.returncode == 0, f"{work['type']}: {result.message}"
        outcomes.add(result.outcome)
    return Idle(median(walls), ", ".join(sorted(outcomes)), (folder / CALLED).exists())
