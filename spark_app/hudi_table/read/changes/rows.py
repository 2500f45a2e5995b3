"""The changes of one step: read from change data logs, or found by comparing two slices of a file
group.

Two versions of a row differ in their sequence number, which only the commit that writes the row
sets: what the slice after the commit has with the commit's time is new, what it lacks of the slice
before is gone, and both together are an update.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.conform import conform
from hudi_table.codec.log.blocks import BlockType, LogBlock, scan_blocks
from hudi_table.codec.log.rows import read_deletes, read_rows
from hudi_table.errors import CorruptTableError, InvalidDataError, ObjectNotFoundError
from hudi_table.model.names import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY
from hudi_table.model.table.cdc import AFTER, DELETE, INSERT, KEY, TIME, UPDATE
from hudi_table.read.changes.plan import ChangesPlan, Step, just_before
from hudi_table.read.files import gone, stream
from hudi_table.read.filter.predicates import Bound
from hudi_table.table.rows.changes import change_rows
from hudi_table.table.rows.log_scan import slice_blocks
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.file_system_view import FileSlice

LOOKUPS = 8
"""How often the rows that stayed are looked through: every time they are hashed anew."""


def step_batches(ctx: TableContext, plan: ChangesPlan, step: Step) -> Iterator[pa.RecordBatch]:
    """Batches of `plan.schema`. Of one file group its changed rows are held, the sequence numbers
    of those that stayed, and an eighth of the rows before."""
    try:
        for table in _tables(_Reader(ctx, plan, step)):
            yield from table.combine_chunks().to_batches()
    except ObjectNotFoundError as error:
        path = error.path or ""
        raise gone(ctx, path.rpartition("/")[0], path) from error


def _tables(reader: _Reader) -> Iterator[pa.Table]:
    step = reader.step
    if step.cdc:
        yield from _logged(reader)
    elif step.before is None and step.after is not None:
        for rows in reader.rows(step.after, step.moment):
            yield reader.changes(INSERT, None, rows)
    elif step.after is None and step.before is not None:
        for rows in reader.rows(step.before, just_before(step.moment)):
            yield reader.changes(DELETE, rows, None)
    elif step.before is not None and step.after is not None:
        yield from _compared(reader, step.before, step.after)


class _Reader:
    """Reads slices and logs of one step."""

    def __init__(self, ctx: TableContext, plan: ChangesPlan, step: Step) -> None:
        self.ctx, self.plan, self.step = ctx, plan, step

    def rows(
        self, item: FileSlice, upto: str, bound: Bound | None = None, columns: tuple[str, ...] | None = None
    ) -> Iterator[pa.Table]:
        """Rows of a slice as of a moment, with the columns of the slice plan or some of them."""
        plan = self.plan.slice_plan
        schema = plan.schema if columns is None else pa.schema([plan.schema.field(name) for name in columns])
        extra = [plan.schema.field(name) for name in (bound.columns if bound else ()) if name not in schema.names]
        one = replace(
            plan,
            schema=schema,
            reads=pa.schema([*schema, *extra]),
            bound=bound,
            slices=(item,),
            visible=self.plan.visible.upto(upto),
        )
        for batch in stream(self.ctx, one):
            yield pa.Table.from_batches([batch])

    def written(self, after: FileSlice) -> pa.Table:
        """The rows that the commit wrote."""
        time = Bound(pc.field(COMMIT_TIME) == self.step.instant, (COMMIT_TIME,))
        return self._whole(self.rows(after, self.step.moment, time), self.plan.slice_plan.schema)

    def written_and_kept(self, after: FileSlice, only: Bound | None) -> tuple[pa.Table, pa.ChunkedArray]:
        """The rows that the commit wrote, and the sequence numbers of those that it left, of all
        rows or `only` some."""
        instant = self.step.instant
        if only is None:
            older = Bound(pc.field(COMMIT_TIME) != instant, (COMMIT_TIME,))
            numbers = pa.schema([self.plan.slice_plan.schema.field(COMMIT_SEQNO)])
            kept = self._whole(self.rows(after, self.step.moment, older, (COMMIT_SEQNO,)), numbers)
            return self.written(after), kept.column(0)
        found = self._whole(self.rows(after, self.step.moment, only), self.plan.slice_plan.schema)
        mine = pc.equal(found.column(COMMIT_TIME), instant)
        return found.filter(mine), found.filter(pc.invert(mine)).column(COMMIT_SEQNO)

    @staticmethod
    def _whole(tables: Iterator[pa.Table], schema: pa.Schema) -> pa.Table:
        return pa.concat_tables([schema.empty_table(), *tables])

    def changes(self, op: str, before: pa.Table | None, after: pa.Table | None) -> pa.Table:
        """Changes of one kind."""
        return change_rows(op, self.step.instant, before, after, self.plan.schema)

    def logged_keys(self) -> Bound | None:
        """The rows whose keys the commit's log files hold, if it wrote log files alone."""
        step, storage = self.step, self.ctx.storage
        if not step.logs:
            return None
        parts = []
        for block in slice_blocks(storage, step.logs, self.plan.visible.upto(step.moment)):
            if block.instant == step.instant:
                with storage.open_read(block.path) as source:
                    if block.type is BlockType.DELETE:
                        parts.append(read_deletes(source, block).keys)
                    else:
                        parts.append(one_chunk(read_rows(source, block, [RECORD_KEY]).column(RECORD_KEY)))
        keys = pc.unique(pa.chunked_array(parts, pa.string()))
        return Bound(pc.field(RECORD_KEY).isin(keys), (RECORD_KEY,))


def _compared(reader: _Reader, before: FileSlice, after: FileSlice) -> Iterator[pa.Table]:
    only = reader.logged_keys()
    added, kept = reader.written_and_kept(after, only)
    keys = one_chunk(added.column(RECORD_KEY))
    first = pc.index_in(keys, value_set=keys).to_numpy(zero_copy_only=False)
    met = np.zeros(len(added), dtype=bool)
    for rows in _gathered(reader.rows(before, just_before(reader.step.moment), only), len(kept) // LOOKUPS):
        removed = rows.filter(pc.invert(pc.is_in(rows.column(COMMIT_SEQNO), value_set=kept)))
        if not len(removed):
            continue
        found = one_chunk(pc.index_in(removed.column(RECORD_KEY), value_set=keys))
        places = found.drop_null()
        met[places.to_numpy()] = True
        if len(places):
            yield reader.changes(UPDATE, removed.filter(found.is_valid()), added.take(places))
        if found.null_count:
            yield reader.changes(DELETE, removed.filter(found.is_null()), None)
    new = added.filter(pa.array(~met[first], pa.bool_()))
    if len(new):
        yield reader.changes(INSERT, None, new)


def _gathered(tables: Iterator[pa.Table], least: int) -> Iterator[pa.Table]:
    """The same rows in tables of at least so many rows, but for the last."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= least:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _logged(reader: _Reader) -> Iterator[pa.Table]:
    """The changes as the writer logged them, in today's schema."""
    wanted = reader.plan.schema
    after: pa.Table | None = None
    for path in reader.step.cdc:
        for block, rows in _blocks(reader, path):
            if TIME in wanted.names and TIME not in rows.schema.names:
                rows = rows.append_column(TIME, pa.repeat(pa.scalar(reader.step.instant), len(rows)))
            if AFTER in wanted.names and AFTER not in rows.schema.names:
                assert reader.step.after is not None
                after = reader.written(reader.step.after) if after is None else after
                rows = rows.append_column(AFTER, _looked_up(reader, rows.column(KEY), after))
            missing = set(wanted.names) - set(rows.schema.names)
            try:
                if missing:
                    raise InvalidDataError(f"it has no {', '.join(sorted(missing))}")
                yield conform(rows, wanted)
            except InvalidDataError as error:
                raise CorruptTableError(
                    f"the change data at {block.offset} of {path} does not fit the table: {error.message}", path=path
                ) from error


def _blocks(reader: _Reader, path: str) -> Iterator[tuple[LogBlock, pa.Table]]:
    ctx = reader.ctx
    names = [*reader.plan.schema.names, KEY]
    with ctx.storage.open_read(path) as source:
        for block in scan_blocks(source, path=path):
            if block.type is not BlockType.CDC or block.instant != reader.step.instant:
                raise CorruptTableError(
                    f"{path} holds no change data of {reader.step.instant} at {block.offset}",
                    base_path=ctx.base_path,
                    path=path,
                )
            yield block, read_rows(source, block, list(dict.fromkeys(names)))


def _looked_up(reader: _Reader, keys: pa.ChunkedArray, after: pa.Table) -> pa.Array:
    """The images after, from the rows that the commit wrote; null of keys that it deleted."""
    images = reader.changes(INSERT, None, after).column(AFTER)
    places = one_chunk(pc.index_in(keys, value_set=one_chunk(after.column(RECORD_KEY))))
    return one_chunk(images).take(places)
