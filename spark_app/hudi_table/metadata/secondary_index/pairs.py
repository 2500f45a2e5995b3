"""Pairs of a value and a record key, as the rows of a slice make them.

Facts (measured on Hudi 1.0.2 and 1.1.1): the value is the text of the column's, and a row without
one is there under a sign of its own (`codec.metadata.keys`), but for an index that 1.0.2 builds. Of
1.1.1: a boolean is `true` or `false`, a timestamp its microseconds since 1970, a date its days, as
Spark holds them. In version 1 of an index it does not find dates again. Floating point numbers and
decimals have texts of Java's, by which it finds none or others.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.metadata.keys import secondary_keys
from hudi_table.metadata.definitions import SecondaryNote, noted_secondary
from hudi_table.metadata.records import UnkeptError
from hudi_table.model.metadata_table import SecondaryPartition
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.rows.live_keys import LiveKeys
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice

KINDS = "string, int, bigint, boolean and timestamp, and in version 2 of such an index of date"
"""The types of columns that an index is kept of, as SQL names them."""


def is_kind(kind: pa.DataType, *, whole: bool) -> bool:
    """Whether an index is kept of columns of this type: `whole` for version 1 of such an index."""
    if pt.is_date32(kind):
        return not whole
    if pt.is_timestamp(kind):
        return kind.tz is not None and kind.unit == "us"
    plain = pt.is_string(kind) or pt.is_large_string(kind) or pt.is_boolean(kind)
    return bool(plain or pt.is_int32(kind) or pt.is_int64(kind))


def value_texts(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The texts of values of such a column, which pairs are made of."""
    found = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pt.is_timestamp(found.type):
        found = found.cast(pa.int64())
    elif pt.is_date32(found.type):
        found = found.cast(pa.int32())
    return found.cast(pa.string())


def note_of(ctx: TableContext, name: SecondaryPartition) -> SecondaryNote:
    """What is noted of the index. Raises UnkeptError if nothing is, or more than one column."""
    found = noted_secondary(ctx, name)
    if found is None:
        raise UnkeptError(name, "its definition names no column alone")
    return found


class Pairs:
    """The pairs of any slice of one snapshot. Raises UnkeptError if the column is of a type of
    which no index is kept, or its older files hold it under another name. `whole`: whether the
    index is one of version 1; None as its definition says. `schema`: the table's columns where they
    are not those of the snapshot."""

    def __init__(
        self,
        ctx: TableContext,
        timeline: Timeline,
        name: SecondaryPartition,
        *,
        whole: bool | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        note = note_of(ctx, name)
        self.column = note.column
        schema = table_schema(ctx, timeline) if schema is None else schema
        field = None if schema is None or self.column not in schema.names else schema.field(self.column)
        asked = note.whole if whole is None else whole
        if schema is not None and (field is None or not is_kind(field.type, whole=asked)):
            what = "is not there" if field is None else f"has the type {field.type}"
            raise UnkeptError(name, f"its column {self.column!r} {what}; an index is kept of {KINDS}")
        if load_column_history(ctx, timeline) is not None:
            raise UnkeptError(
                name, "columns of the table were renamed or have changed, which its older files do not tell"
            )
        kind = pa.string() if field is None or pt.is_large_string(field.type) else field.type
        # A commit may widen the column: files of both widths are read as the wider one.
        wide = pa.int64() if pt.is_integer(kind) else kind
        self._live = LiveKeys(ctx, timeline, beside=[pa.field(self.column, wide)], schema=schema)

    def of(
        self, storage: Storage, item: FileSlice, among: pa.Array | None = None, *, after: str | None = None
    ) -> Iterator[pa.Array]:
        """The keys of the pairs that a slice has, in pieces: of all its rows, or of those `among`
        some record keys. `after`: the instant that has written it and has not completed.

        Raises CorruptTableError, ObjectNotFoundError if a file was cleaned meanwhile.
        """
        live = self._live if after is None else self._live.after(after)
        for table in live.rows_of(storage, item):
            if among is not None:
                table = table.filter(pc.is_in(table[RECORD_KEY], value_set=among))
            if len(table):
                yield secondary_keys(value_texts(table[self.column]), value_texts(table[RECORD_KEY]))

    def all_of(
        self, storage: Storage, item: FileSlice, among: pa.Array | None = None, *, after: str | None = None
    ) -> pa.Array:
        """The same as one array."""
        found = self.of(storage, item, among, after=after)
        return pa.chunked_array(list(found), pa.string()).combine_chunks()
