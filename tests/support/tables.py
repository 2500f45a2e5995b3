"""Small tables for tests: a context on any storage, a clock that tests move, data files written by
hand."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hudi_table.metadata.port import open_context
from hudi_table.model.names import BaseFileName, MarkerType, bucket_file_id, join
from hudi_table.model.table.config import IndexSpec, IndexType, TableConfig, TableType
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.model.timeline.conflict_keys import bucket_conflict_key
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.transaction import Transaction, begin
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext, TxnSettings
from hudi_table.table.timeline.properties import create_properties


@dataclass
class TestClock:
    """A clock that stands still unless a test moves it; sleeping moves it."""

    __test__ = False

    moment: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    seconds: float = 0.0

    def now(self) -> datetime:
        return self.moment

    def boot_seconds(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
        self.seconds += seconds


def memory_storage() -> Storage:
    """A new in-memory store."""
    return open_storage(f"memory://{uuid.uuid4().hex}/table")


def simple_config(**changes: object) -> TableConfig:
    """A copy-on-write table with key `id` and two buckets."""
    base: dict[str, object] = {
        "name": "t",
        "type": TableType.COPY_ON_WRITE,
        "record_key": ("id",),
        "index": IndexSpec(IndexType.BUCKET, 2),
    }
    return TableConfig(**(base | changes))  # type: ignore[arg-type] # a bag of changes


def new_context(storage: Storage | None = None, *, quarantine: float = 3600.0, suspect: float = 900.0) -> TableContext:
    """A fresh table on `storage` (in memory by default), seen by a process of its own."""
    used = storage or memory_storage()
    create_properties(used, simple_config())
    return reopen(used, quarantine=quarantine, suspect=suspect)


def reopen(storage: Storage, *, quarantine: float = 3600.0, suspect: float = 900.0) -> TableContext:
    """The table as another process opens it: no memory of the chain."""
    return open_context(storage, TestClock(), TxnSettings(quarantine, suspect))


def write_file(txn: Transaction, bucket: int, partition: str = "p", data: bytes = b"rows") -> WriteStat:
    """One data file of the transaction's instant, through its right to write."""
    file_id = bucket_file_id(txn.seed, partition, bucket)
    name = str(BaseFileName(file_id, "0-0-0", txn.time))
    with txn.right.create_file(partition, name, MarkerType.CREATE) as sink:
        sink.write(data)
    return WriteStat(file_id, join(partition, name), partition, num_writes=1, file_size_in_bytes=len(data))


def commit_buckets(ctx: TableContext, buckets: Sequence[int], partition: str = "p") -> str:
    """One commit that writes a file into each bucket; returns its instant."""
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    finish(txn, [write_file(txn, bucket, partition) for bucket in buckets], buckets, partition)
    return txn.time


def finish(txn: Transaction, stats: Sequence[WriteStat], buckets: Sequence[int], partition: str = "p") -> None:
    """Commit what `write_file` wrote."""
    txn.commit(CommitMetadata("UPSERT", tuple(stats)), [bucket_conflict_key(partition, bucket) for bucket in buckets])
