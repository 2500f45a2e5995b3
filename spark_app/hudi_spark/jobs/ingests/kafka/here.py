"""A batch of Kafka in this process: what an ingest without a JVM does, and the driver of one on
Spark with so few messages that tasks would cost more than they spare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_spark.jobs.shaping import Shaped, Shaping
from hudi_table.api import CommitResult, HudiTable
from hudi_table.model.job.positions import Positions
from hudi_table.services.ingesting import Ingest
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import HeldPositions
from hudi_table.sources.kafka.source import KafkaBatch, KafkaSource


@dataclass(frozen=True, slots=True)
class Here:
    """In this process."""

    source: KafkaSource
    ingest: Ingest
    shaping: Shaping

    def following(self, start: Positions, deadline: float, told: Callable[[], bool]) -> KafkaBatch:
        """See `Way`."""
        return self.source.batch(start, replace(self.source.until, deadline=deadline, told=told))

    def read(self, batch: KafkaBatch, known: pa.Schema | None, before: tuple[int, int]) -> Shaped[Positions]:
        """See `Way`."""
        return self.shaping.shaped(self.rows(batch, known), known, before)

    def rows(self, batch: KafkaBatch, known: pa.Schema | None) -> Rows[Positions]:
        """The rows of a batch, before anything is asked of them."""
        stored = self.source.decoding.stored
        if stored is not None:
            # What a reading before this one has looked at, and committed nothing.
            stored.seen()
        return batch.read(self.shaping.chain.read_as(known))

    def commit(self, target: HudiTable, shaped: Shaped[Positions], held: HeldPositions | None) -> CommitResult:
        """See `Way`."""
        ingest, deleted = self.ingest.without_older(target.context, shaped.rows, held)
        done = ingest.commit(target.context, shaped.rows, held)
        return replace(done, rows_deleted=done.rows_deleted + deleted)

    def close(self) -> None:
        """Nothing is held."""
