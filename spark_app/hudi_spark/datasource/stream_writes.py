"""`writeStream.format("hudi")`: every micro-batch is one commit, and once, by the query's id and the batch's number.

Spark repeats the last batch of a query that stopped before it had noted its end. The commit carries the batch's name, so
a batch that comes again changes nothing, also where its commit has been archived meanwhile. The id lies in the query's checkpoint: a query with a new checkpoint is another one,
even in the same folder, and none of its batches is taken for an older one. Output modes: append; complete, which
replaces all rows; update is refused by Spark for sources in Python, and append with the operation upsert does what it means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from hudi_spark.datasource.format_options import FormatOptions
from hudi_spark.datasource.writes import Staged, Target, staged
from hudi_table.errors import InvalidOptionError, InvariantError, TableNotFoundError
from hudi_table.metadata.port import open_context
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import archived_entries, commit_of, has_archive
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.write.operations import BATCH_KEY


class BatchWriter(ds.DataSourceStreamArrowWriter):
    """Commits micro-batches. Options: those of `RowsWriter` but `batch` and `saveMode`, which are the query's own."""

    def __init__(self, spark_options: FormatOptions, schema: StructType, overwrite: bool) -> None:
        for name in ("batch", "savemode"):
            if name in spark_options.own:
                raise InvalidOptionError(
                    f"option {name!r} does not go with writeStream, which names its batches itself; remove it"
                )
        self._target = Target.of(spark_options, schema, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of one task."""
        return self._target.stage(iterator)

    def commit(self, messages: list[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Write and commit, unless this batch has been. Raises what `hudi_table.write_hudi` raises."""
        found = staged(messages)
        try:
            batch = _batch(found, batchId)
            if not _archived(self._target.open_storage(), batch):
                self._target.commit(found, batch)
        finally:
            self._discard(messages)

    def abort(self, messages: list[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Delete what was staged."""
        del batchId
        self._discard(messages)

    def _discard(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        # Every batch has a writer of its own on this side, so the files are known by the messages alone.
        storage = self._target.open_storage()
        for message in messages:
            if isinstance(message, Staged) and message.path:
                retry.delete(storage, message.path)


def _archived(storage: Storage, batch: str) -> bool:
    """Whether the commit of a batch has left the active timeline, as where a query rested while others wrote.

    The oldest leave first: while the active timeline has any commit of the query, the write itself finds the one that matters.
    """
    try:
        ctx = open_context(storage)
    except TableNotFoundError:
        return False
    query = batch.rpartition("/")[0]

    def is_active() -> bool:
        commits = reversed(load_timeline(ctx).commits)
        return any(
            commit_metadata(ctx, each).extra_metadata.get(BATCH_KEY, "").startswith(f"{query}/") for each in commits
        )

    if not query or not has_archive(ctx) or with_relists(ctx, is_active):
        return False
    return any(
        commit_of(entry).extra_metadata.get(BATCH_KEY) == batch
        for entries in archived_entries(ctx)
        for entry in entries
    )


def _batch(messages: Sequence[Staged], number: int) -> str:
    """The name of a micro-batch; '' of one without tasks, which does the same if it comes again."""
    queries = {message.query for message in messages}
    if len(queries) > 1 or queries == {""}:
        raise InvariantError(f"batch {number} of a stream has tasks of the queries {sorted(queries)}")
    return f"spark-stream/{queries.pop()}/{number}" if queries else ""
