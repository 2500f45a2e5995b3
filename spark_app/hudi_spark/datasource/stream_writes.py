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
the table knows with other rows. Either would lose rows in silence, so the batch is refused. Set
back by one batch it looks like a repeat, but Spark puts into the batch what has come to the source
since. So the commit also carries how many rows came, and a repeat has as many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from hudi_spark.datasource.format_options import FormatOptions
from hudi_spark.datasource.writes import Staged, Target, staged
from hudi_table.errors import InvalidOptionError, InvalidRequestError, InvariantError, TableNotFoundError
from hudi_table.metadata.port import open_context
from hudi_table.model.counts import counted
from hudi_table.model.options.values import whole
from hudi_table.model.options.write_options import Operation
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import archived_entries, commit_of, has_archive
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.write.operations import BATCH_KEY

ROWS_KEY = f"{BATCH_KEY}.rows"
"""How many rows a batch came with. Earlier releases kept no such number."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch of a query: its number, and how many rows it came with, None if that is not known."""

    number: int
    rows: int | None


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
            if not query:
                self._target.commit(found, "")
                return
            batch = _Batch(batchId, sum(message.rows for message in found))
            first = batchId == self._first
            # A batch that replaces all rows needs none of those before it.
            alone = first or batchId == 0 or self._target.write.operation is Operation.INSERT_OVERWRITE_TABLE
            storage = self._target.open_storage()
            known = _known(storage, query, batch, alone=alone)
            if known is None:
                self._target.commit(found, f"{query}{batchId}", {ROWS_KEY: str(batch.rows)})
            elif not first:
                _check_repeat(storage, known, batch)
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


def _known(storage: Storage, query: str, batch: _Batch, *, alone: bool) -> _Batch | None:
    """This batch of the query as the table has it, None if it is to be written. `alone`: the table
    does not have to have the one before it.

    Raises InvalidRequestError where the table has later batches, or not the one before.
    """
    number = batch.number
    try:
        ctx = open_context(storage)
    except TableNotFoundError:
        newest = None
    else:
        newest = with_relists(ctx, lambda: _newest(_active(ctx, query), number))
        # The oldest leave first: while the active timeline has any commit of the query, it has the newest one.
        if newest is None and has_archive(ctx):
            newest = _newest(_archived(ctx, query), number)
    if newest is not None and newest.number > number:
        raise InvalidRequestError(
            f"batch {number} of the stream comes to a table that has its batch {newest.number}: the checkpoint was set back, and rows would be taken for "
            "written that are not; take the newest checkpoint, or a new one with a source that begins where the table ends",
            base_path=storage.base_path,
        )
    if newest is not None and newest.number == number:
        return newest
    if (newest is None or newest.number < number - 1) and not alone:
        raise InvalidRequestError(
            f"batch {number} of the stream comes to a table without its batch {number - 1}: the table was made again, restored or exchanged since, and "
            "the rows of earlier batches would be missing; give a new checkpointLocation, which reads the source from its begin, or the option "
            f"firstBatch={number} to go on without them",
            base_path=storage.base_path,
        )
    return None


def _check_repeat(storage: Storage, known: _Batch, batch: _Batch) -> None:
    """Raise InvalidRequestError for a batch that comes again with more or fewer rows: some are not
    those that the table has."""
    if known.rows in (None, batch.rows):
        return
    raise InvalidRequestError(
        f"batch {batch.number} of the stream has {counted(batch.rows or 0, 'row')}, and the table has its batch {known.number} with {known.rows}: "
        "the checkpoint was set back by one batch, or the query gives other rows when it is repeated; take the newest checkpoint, or the option "
        f"firstBatch={batch.number} to pass over this batch, without its rows",
        base_path=storage.base_path,
    )


def _newest(batches: Iterator[_Batch], number: int) -> _Batch | None:
    """The first of `batches` that decides about batch `number`: itself, a later one, the one
    before; else the one of the largest number."""
    largest: _Batch | None = None
    for found in batches:
        if found.number >= number - 1:
            return found
        largest = found if largest is None or found.number > largest.number else largest
    return largest


def _active(ctx: TableContext, query: str) -> Iterator[_Batch]:
    """The query's batches in the active timeline, the newest first."""
    for instant in reversed(load_timeline(ctx).commits):
        yield from _batches(commit_metadata(ctx, instant).extra_metadata, query)


def _archived(ctx: TableContext, query: str) -> Iterator[_Batch]:
    """The query's batches in the archive; the largest number of each file first."""
    for entries in archived_entries(ctx):
        found = [batch for entry in entries for batch in _batches(commit_of(entry).extra_metadata, query)]
        yield from sorted(found, key=lambda batch: batch.number, reverse=True)


def _batches(extra: Mapping[str, str], query: str) -> Iterator[_Batch]:
    """The batch of the query that a commit with this metadata wrote, if any."""
    name, rows = extra.get(BATCH_KEY, ""), extra.get(ROWS_KEY)
    if name.startswith(query):
        yield _Batch(int(name.removeprefix(query)), None if rows is None else int(rows))


def _query(messages: Sequence[Staged], number: int) -> str:
    """What the names of the query's micro-batches begin with; '' of one without tasks, which does
    the same if it comes again."""
    queries = {message.query for message in messages}
    if len(queries) > 1 or queries == {""}:
        raise InvariantError(f"batch {number} of a stream has tasks of the queries {sorted(queries)}")
    return f"spark-stream/{queries.pop()}/" if queries else ""
