"""A table of very many file groups, for planning alone: its timeline is whole, its base files are
empty.

Synthetic: each partition has `.hoodie_partition_metadata` and one base file of no bytes for each
bucket, which a listing shows and planning never opens; `COMMITS` commits name all of them, with
made-up numbers of rows, as a writer without our chain leaves them. The metadata table's partition
`files` is built of that listing by `build_metadata`, as of any table.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_table import create_table
from hudi_table.model.names import HOODIE, PARTITION_METADATA, BaseFileName, bucket_file_id, join
from hudi_table.model.timeline.commits import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import Action, Instant, State, format_instant_time
from hudi_table.write.attempt import partition_metadata

BUCKETS = 10
COMMITS = 20
ROWS_PER_PARTITION = 100
"""Of an upsert, in each partition that it touches."""
_FIRST_DAY = date(2000, 1, 1)
_SEED = uuid.UUID(int=20_130_101)
_ROWS_MADE_UP = 1_000


@dataclass(frozen=True, slots=True)
class Shape:
    """How many file groups, in partitions of `BUCKETS` each."""

    groups: int

    @property
    def partitions(self) -> int:
        """Partitions of the table."""
        return self.groups // BUCKETS


def make_table(base: Path, shape: Shape, *, metadata: bool) -> None:
    """The table; `metadata`: with a metadata table."""
    table = create_table(
        base,
        _rows(np.empty(0, np.int64), 0).schema,
        record_key="id",
        ordering_fields="ts",
        partition_by="day",
        index={"type": "Bucket", "buckets": BUCKETS},
        version=6,
    )
    schema = table.context.config.create_schema or ""
    step = -(-shape.partitions // COMMITS)
    begun = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=2)
    for number, first in enumerate(range(0, shape.partitions, step)):
        instant = format_instant_time(begun + timedelta(minutes=number))
        stats = []
        for day in days(range(first, min(first + step, shape.partitions))):
            stats += _partition(base, day, instant)
        body = CommitMetadata("BULK_INSERT", tuple(stats), {SCHEMA_KEY: schema}).to_json()
        for state, data in ((State.REQUESTED, b""), (State.INFLIGHT, b""), (State.COMPLETED, body)):
            (base / HOODIE / Instant(instant, Action.COMMIT, state).file_name).write_bytes(data)
    if metadata:
        table.build_metadata()


def make_rows(folder: Path, shape: Shape, touched: int) -> None:
    """Rows for `touched` partitions that lie spread over the table, as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.linspace(0, shape.partitions - 1, min(touched, shape.partitions)).astype(np.int64)
    pq.write_table(_rows(numbers, ROWS_PER_PARTITION), folder / "rows.parquet")


def days(numbers: range) -> list[str]:
    """The partition paths of these numbers."""
    return [(_FIRST_DAY + timedelta(days=number)).isoformat() for number in numbers]


def _rows(numbers: np.ndarray, each: int) -> pa.Table:
    every = np.arange(len(numbers) * each)
    names = pa.array([(_FIRST_DAY + timedelta(days=int(number))).isoformat() for number in numbers], pa.string())
    day = names.take(pa.array(np.repeat(np.arange(len(numbers)), each)))
    return pa.table({"id": pa.array(every).cast(pa.string()), "ts": pa.array(every), "day": day})


def _partition(base: Path, day: str, instant: str) -> list[WriteStat]:
    """The files of one partition, and what its commit says of them."""
    folder = base / day
    folder.mkdir()
    (folder / PARTITION_METADATA).write_bytes(partition_metadata(instant, day))
    stats = []
    for bucket in range(BUCKETS):
        file_id = bucket_file_id(_SEED, day, bucket)
        name = str(BaseFileName(file_id, f"{bucket}-0-0", instant))
        os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY, 0o644))
        made_up = WriteStat(file_id, join(day, name), day, num_writes=_ROWS_MADE_UP, num_inserts=_ROWS_MADE_UP)
        stats.append(made_up)
    return stats
