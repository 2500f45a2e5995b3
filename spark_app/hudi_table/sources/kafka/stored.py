"""Rows of the table that an ingest writes to, by their keys: what an event means that does not say
all of its row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import chain
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import ExpiredError
from hudi_table.read.reader import TableReader
from hudi_table.sources.formats.markers import codes_of
from hudi_table.table.timeline.active import load_timeline

SNAPSHOTS_MAX = 20
"""Snapshots before the newest one in which a row is looked for."""


class StoredTable:
    """`opened` opens the table, None while there is none. What holds this is sent to tasks."""

    def __init__(self, opened: Callable[[], TableReader | None]) -> None:
        self._opened = opened
        self._table: TableReader | None = None
        self._seen: frozenset[str] | None = None

    def __reduce__(self) -> tuple[type[StoredTable], tuple[Callable[[], TableReader | None]]]:
        return StoredTable, (self._opened,)

    def note(self) -> None:
        """Rows are about to be looked at: the table's commits of this moment are `seen` until they
        are taken."""
        table = self._reader()
        if self._seen is None and table is not None:
            self._seen = frozenset(each.time for each in load_timeline(table.context).commits)

    def seen(self) -> frozenset[str] | None:
        """Those commits, None where no row was looked at; forgotten then."""
        found, self._seen = self._seen, None
        return found

    def versions(self, keys: pa.Table, columns: Sequence[str]) -> Iterator[pa.Table]:
        """See `StoredRows`. Ends where cleaning has taken what comes next."""
        self.note()
        table = self._reader()
        if table is None:
            return
        times = [instant.time for instant in reversed(load_timeline(table.context).commits)][1:]
        for as_of in chain([None], times[:SNAPSHOTS_MAX]):
            try:
                yield _rows(table, keys, columns, as_of)
            except ExpiredError:
                return

    def _reader(self) -> TableReader | None:
        self._table = self._table or self._opened()
        return self._table


def _rows(table: TableReader, keys: pa.Table, columns: Sequence[str], as_of: str | None) -> pa.Table:
    there = (table if as_of is None else TableReader(table.context, as_of)).schema()
    wanted = keys.cast(pa.schema([there.field(name) for name in keys.column_names]))
    asked = [pc.field(name).isin(wanted.column(name).combine_chunks().unique()) for name in wanted.column_names]
    names = [*keys.column_names, *(name for name in columns if name in there.names)]
    found = table.scan(columns=names, filter=reduce(and_, asked), as_of=as_of).to_arrow()
    found = pa.table([found.column(name) for name in names], names=names)
    for number, name in enumerate(keys.column_names):
        found = found.set_column(number, name, found.column(name).cast(keys.schema.field(name).type))
    # Of several columns each asks for more than their combinations.
    codes = codes_of(pa.concat_tables([keys, found.select(keys.column_names)], promote_options="permissive"))
    return found.filter(pc.is_in(pa.array(codes[len(keys) :]), pa.array(codes[: len(keys)])))
