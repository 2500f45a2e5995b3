"""`writeStream.format("hudi")`: every micro-batch is one commit, and once, by the query's id and
the batch's number.

Spark repeats the last batch of a query that stopped before it had noted its end. The commit carries
the batch's name, so a batch that comes again changes nothing, also where its commit has been
archived meanwhile. The id lies in the query's checkpoint: a query with a new checkpoint is another
one, even in the same folder, and none of its batches is taken for an older one. Output modes:
append; complete, which replaces all rows; update is refused by Spark for sources in Python, and
append with the operation upsert does what it means.

Checkpoint and table have to tell one story. A table that was deleted and made again lacks the
batches that the checkpoint counts as written, and a checkpoint that was set back has numbers that
the table knows with other rows. Either would lose rows in silence, so the batch is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from hudi_spark.datasource.format_options import FormatOptions
from hudi_spark.datasource.writes import Staged, Target, staged
from hudi_table.errors import InvalidOptionError, InvalidRequestError, InvariantError, TableNotFoundError
from hudi_table.metadata.port import open_context
from hudi_table.model.options.values import whole
from hudi_table.model.options.write_options import Operation
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import archived_entries, commit_of, has_archive
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.write.operations import BATCH_KEY


class BatchWriter(ds.DataSourceStreamArrowWriter):
    """Commits micro-batches. Options: those of `RowsWriter` but `batch` and `saveMode`, which are
    the query's own."""

    def __init__(self, spark_options: FormatOptions, schema: StructType, overwrite: bool) -> None:
        for name in ("batch", "savemode"):
            if name in spark_options.own:
                raise InvalidOptionError(
                    f"option {name!r} does not go with writeStream, which names its batches itself; remove it"
                )
        self._first = whole("firstBatch", spark_options.own.get("firstbatch", "0"), 0)
        self._target = Target.of(spark_options, schema, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of one task."""
        return self._target.stage(iterator)

    def commit(self, messages: list[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Write and commit, unless this batch has been. Raises what `hudi_table.write_hudi`
        raises."""
        found = staged(messages)
        try:
            query = _query(found, batchId)
            # A batch that replaces all rows needs none of those before it.
            alone = batchId in (0, self._first) or self._target.write.operation is Operation.INSERT_OVERWRITE_TABLE
            if not query or not _is_written(self._target.open_storage(), query, batchId, alone=alone):
                self._target.commit(found, f"{query}{batchId}" if query else "")
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


def _is_written(storage: Storage, query: str, number: int, *, alone: bool) -> bool:
    """Whether the table has this batch of the query. `alone`: it does not have to have the one
    before it.

    Raises InvalidRequestError where the table has later batches, or not the one before.
    """
    try:
        ctx = open_context(storage)
    except TableNotFoundError:
        newest = None
    else:
        newest = with_relists(ctx, lambda: _newest(_active(ctx, query), number))
        # The oldest leave first: while the active timeline has any commit of the query, it has the newest one.
        if newest is None and has_archive(ctx):
            newest = _newest(_archived(ctx, query), number)
    if newest is not None and newest > number:
        raise InvalidRequestError(
            f"batch {number} of the stream comes to a table that has its batch {newest}: the checkpoint was set back, and rows would be taken for "
            "written that are not; take the newest checkpoint, or a new one with a source that begins where the table ends",
            base_path=storage.base_path,
        )
    if newest == number:
        return True
    if newest != number - 1 and not alone:
        raise InvalidRequestError(
            f"batch {number} of the stream comes to a table without its batch {number - 1}: the table was made again, restored or exchanged since, and "
            "the rows of earlier batches would be missing; give a new checkpointLocation, which reads the source from its begin, or the option "
            f"firstBatch={number} to go on without them",
            base_path=storage.base_path,
        )
    return False


def _newest(numbers: Iterator[int], number: int) -> int | None:
    """The first of `numbers` that decides about batch `number`: itself, a later one, the one
    before; else the largest one."""
    largest: int | None = None
    for found in numbers:
        if found >= number - 1:
            return found
        largest = found if largest is None else max(largest, found)
    return largest


def _active(ctx: TableContext, query: str) -> Iterator[int]:
    """Numbers of the query's batches in the active timeline, the newest first."""
    for instant in reversed(load_timeline(ctx).commits):
        name = commit_metadata(ctx, instant).extra_metadata.get(BATCH_KEY, "")
        if name.startswith(query):
            yield int(name.removeprefix(query))


def _archived(ctx: TableContext, query: str) -> Iterator[int]:
    """Numbers of the query's batches in the archive; the largest of each file first."""
    for entries in archived_entries(ctx):
        names = [commit_of(entry).extra_metadata.get(BATCH_KEY, "") for entry in entries]
        yield from sorted((int(name.removeprefix(query)) for name in names if name.startswith(query)), reverse=True)


def _query(messages: Sequence[Staged], number: int) -> str:
    """What the names of the query's micro-batches begin with; '' of one without tasks, which does
    the same if it comes again."""
    queries = {message.query for message in messages}
    if len(queries) > 1 or queries == {""}:
        raise InvariantError(f"batch {number} of a stream has tasks of the queries {sorted(queries)}")
    return f"spark-stream/{queries.pop()}/" if queries else ""
