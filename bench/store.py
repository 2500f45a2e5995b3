"""Operations on a table in an object store: requests, how many of them follow each other, and wall
time at several delays.

Every operation begins with a new handle, on a table of its own, which was written without a delay.
delta-rs does the same with the same rows, and Apache Hudi by S3A on a warm session of Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from bench.far_store import FarStore, in_sequence, running_far_store
from bench.store_peers import NAME as HUDI
from bench.store_peers import HudiPeer, hudi_peer
from bench.tables import table_lines
from hudi_table import create_table, open_table
from hudi_table.api import HudiTable
from hudi_table.arguments import TableTypeName
from tests.support.s3 import ACCESS, S3Server

DELAYS = (0.0, 0.03, 0.1)
ROWS, UPDATED = 100_000, 10_000
PARTITIONS, BUCKETS = 4, 2
_KEY = "id = 'k0000005' and p = 'p01'"
_TEXT_BYTES = 32


@dataclass(frozen=True, slots=True)
class Step:
    """An operation: how its table is made, and what is done with it on a new handle."""

    name: str
    by: str
    make: Callable[[S3Server], str]
    act: Callable[[S3Server, str], object]


@dataclass(slots=True)
class Figures:
    """Of one operation at one delay: the counts of the last round, the walls of all."""

    requests: int = 0
    sequence: int = 0
    walls: list[float] = field(default_factory=list)


def rows(count: int, version: int, partitions: int = PARTITIONS) -> pa.Table:
    """Rows of the keys from the first on, with text that compresses badly."""
    noise = np.random.default_rng(version).integers(0, 256, (count, _TEXT_BYTES), dtype=np.uint8)
    return pa.table(
        {
            "id": [f"k{number:07}" for number in range(count)],
            "p": [f"p{number % partitions:02}" for number in range(count)],
            "ts": pa.array(np.full(count, version)),
            "text": [row.tobytes().hex() for row in noise],
        }
    )


def _ours(
    kind: TableTypeName, *, logs: int = 0, partitions: int = PARTITIONS, buckets: int = BUCKETS
) -> Callable[[S3Server], str]:
    def make(server: S3Server) -> str:
        uri = server.new_uri()
        table = create_table(
            uri,
            rows(1, 0).schema,
            record_key="id",
            partition_by="p",
            ordering_fields="ts",
            type=kind,
            index={"type": "Bucket", "buckets": buckets},
            storage_options=server.options,
            version=6,
        )
        table.write(rows(ROWS, 0, partitions), operation="bulk_insert")
        for number in range(logs):
            table.upsert(rows(UPDATED, number + 1, partitions))
        return uri

    return make


def _opened(act: Callable[[HudiTable], object]) -> Callable[[S3Server, str], object]:
    return lambda server, uri: act(open_table(uri, storage_options=server.options))


def _delta_options(server: S3Server) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": ACCESS["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": ACCESS["secret_access_key"],
        "conditional_put": "etag",
    }


def _delta(server: S3Server) -> str:
    import deltalake

    uri = server.new_uri()
    deltalake.write_deltalake(uri, rows(ROWS, 0), partition_by=["p"], storage_options=_delta_options(server))
    return uri


def _delta_merge(server: S3Server, uri: str) -> object:
    import deltalake

    table = deltalake.DeltaTable(uri, storage_options=_delta_options(server))
    merger = table.merge(rows(UPDATED, 9), "old.id = new.id and old.p = new.p", source_alias="new", target_alias="old")
    return merger.when_matched_update_all(predicate="new.ts >= old.ts").when_not_matched_insert_all().execute()


def _delta_scan(server: S3Server, uri: str) -> object:
    import deltalake

    return deltalake.DeltaTable(uri, storage_options=_delta_options(server)).to_pyarrow_table()


def _upserted(partitions: int = PARTITIONS) -> Callable[[S3Server, str], object]:
    return _opened(lambda table: table.upsert(rows(UPDATED, 9, partitions)))


OURS, DELTA = "ours", "delta-rs"
STEPS = (
    Step("upsert, merge-on-read", OURS, _ours("MergeOnRead"), _upserted()),
    Step("upsert, copy-on-write", OURS, _ours("CopyOnWrite"), _upserted()),
    Step("merge", DELTA, _delta, _delta_merge),
    Step("upsert, merge-on-read, 64 groups", OURS, _ours("MergeOnRead", partitions=16, buckets=4), _upserted(16)),
    Step("scan, copy-on-write", OURS, _ours("CopyOnWrite"), _opened(lambda table: table.scan().to_arrow())),
    Step("scan", DELTA, _delta, _delta_scan),
    Step(
        "scan, merge-on-read, 3 logs",
        OURS,
        _ours("MergeOnRead", logs=3),
        _opened(lambda table: table.scan().to_arrow()),
    ),
    Step("one key", OURS, _ours("MergeOnRead", logs=3), _opened(lambda table: table.scan(filter=_KEY).to_arrow())),
    Step(
        "compaction of 8 groups", OURS, _ours("MergeOnRead", logs=3), _opened(lambda table: table.compact(force=True))
    ),
    Step("cleaning with nothing to do", OURS, _ours("CopyOnWrite"), _opened(lambda table: table.clean())),
)


def hudi_steps(peer: HudiPeer) -> tuple[Step, ...]:
    """Those of Apache Hudi."""
    first, logs = rows(ROWS, 0), [rows(UPDATED, number + 1) for number in range(3)]
    cow, mor = "COPY_ON_WRITE", "MERGE_ON_READ"
    return (
        Step("upsert, merge-on-read, Hudi", HUDI, peer.made(mor, [first]), peer.does("upsert", mor, rows(UPDATED, 9))),
        Step("upsert, copy-on-write, Hudi", HUDI, peer.made(cow, [first]), peer.does("upsert", cow, rows(UPDATED, 9))),
        Step("scan, copy-on-write, Hudi", HUDI, peer.made(cow, [first]), peer.does("scan", cow)),
        Step("scan, merge-on-read, 3 logs, Hudi", HUDI, peer.made(mor, [first, *logs]), peer.does("scan", mor)),
    )


LIMITS = (
    ("upsert, merge-on-read", "merge", 0.8),
    ("upsert, copy-on-write", "merge", 1.0),
)
"""Of the wall at 30 ms: ours, delta-rs's, and at most how many times that."""


def measured_store(folder: Path, rounds: int, say: Callable[[str], None]) -> dict[Step, dict[float, Figures]]:
    """Every step at every delay, in turns; the first round is not counted."""
    with running_far_store(folder) as store, hudi_peer(store, folder.with_name("store-hudi"), BUCKETS) as peer:
        if peer is None:
            say(f"without {HUDI}: make interop-env setup-s3a fetches it")
        steps = (*STEPS, *(hudi_steps(peer) if peer is not None else ()))
        found = {step: {delay: Figures() for delay in DELAYS} for step in steps}
        for number in range(rounds + 1):
            for delay in DELAYS:
                for step in steps:
                    _measure(store, step, delay, found[step][delay], counts=number > 0)
            say(f"round {number or 'cold'} of {rounds}")
    return found


def _measure(store: FarStore, step: Step, delay: float, figures: Figures, *, counts: bool) -> None:
    uri = step.make(store.near)
    store.wait(delay)
    store.taken()
    begun = time.perf_counter()
    step.act(store.far, uri)
    wall = time.perf_counter() - begun
    sent = store.taken()
    figures.requests, figures.sequence = len(sent), in_sequence(sent)
    if counts:
        figures.walls.append(wall)


def store_record(rounds: int, found: Mapping[Step, Mapping[float, Figures]]) -> dict[str, Any]:
    """Counts at 30 ms, walls at each delay, and the targets."""
    steps = {
        step.name: {
            "by": step.by,
            "requests": figures[DELAYS[1]].requests,
            "sequence": figures[DELAYS[1]].sequence,
            "walls": {f"{delay * 1000:.0f}": round(median(figures[delay].walls), 3) for delay in DELAYS},
        }
        for step, figures in found.items()
    }

    def ratio(ours: str, other: str) -> float:
        return round(float(steps[ours]["walls"]["30"]) / float(steps[other]["walls"]["30"]), 2)  # type: ignore[index]

    targets = [
        {"step": ours, "beside": other, "limit": limit, "ratio": ratio(ours, other), "met": ratio(ours, other) <= limit}
        for ours, other, limit in LIMITS
    ]
    return {"rows": ROWS, "updated": UPDATED, "rounds": rounds, "steps": steps, "targets": targets}


def store_lines(record: Mapping[str, Any], machine: list[str]) -> list[str]:
    """The section as Markdown."""
    text = (
        f"An S3 server (versitygw) behind a proxy that lets each request wait. {record['rows']:,} rows in {PARTITIONS} partitions × {BUCKETS} "
        f"buckets, upserts of {record['updated']:,} rows, every operation on a new table by a new handle. Requests, and the longest chain of them one after the "
        f"other, at 30 ms; median wall of {record['rounds']} rounds."
    )
    head = ("operation", "by", "requests", "in sequence", *(f"{delay * 1000:.0f} ms" for delay in DELAYS))
    body = [
        (
            name,
            step["by"],
            str(step["requests"]),
            str(step["sequence"]),
            *(f"{wall} s" for wall in step["walls"].values()),
        )
        for name, step in record["steps"].items()
    ]
    targets = [
        (t["step"], t["beside"], f"{t['limit']:.1f}", f"{t['ratio']:.2f}", "yes" if t["met"] else "**no**")
        for t in record["targets"]
    ]
    goals = table_lines(("operation", "beside delta-rs's", "wall at 30 ms at most", "wall ratio", "met"), targets)
    return ["## On an object store", "", *machine, "", text, "", *table_lines(head, body), "", *goals, ""]
