"""Columns of few values in a stream of tables: every table brings dictionaries of its own, a spill
file takes none.

Between, such a column is one of numbers, which one growing dictionary explains: a fraction of the
texts' memory.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt


class SharedDictionaries:
    """The dictionaries of one stream. The first table decides which columns have one; later tables
    may bring either."""

    def __init__(self) -> None:
        self._values: dict[str, pa.Array] = {}
        self._schema: pa.Schema | None = None

    def encoded(self, table: pa.Table) -> pa.Table:
        """The table with numbers in place of the columns that have a dictionary."""
        if self._schema is None:
            self._schema = table.schema
            self._values = {
                field.name: pa.array([], field.type.value_type)
                for field in table.schema
                if pt.is_dictionary(field.type)
            }
        columns = []
        for field in self._schema:
            column = table.column(field.name)
            if field.name in self._values:
                columns.append(self._numbers(field.name, column))
            else:
                columns.append(column.cast(field.type) if pt.is_dictionary(column.type) else column)
        return pa.table(columns, names=self._schema.names)

    def decoded(self, table: pa.Table) -> pa.Table:
        """The table as it was, every dictionary the same."""
        columns = {
            name: table.column(name) if name not in self._values else self._explained(name, table.column(name))
            for name in table.column_names
        }
        return pa.table(columns)

    def _explained(self, name: str, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
        values = self._values[name]
        kind = pa.dictionary(pa.int32(), values.type)
        return pa.chunked_array([pa.DictionaryArray.from_arrays(chunk, values) for chunk in numbers.chunks], kind)

    def _numbers(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        known = column if pt.is_dictionary(column.type) else column.dictionary_encode()
        return pa.chunked_array([self._mapped(name, chunk) for chunk in known.chunks], pa.int32())

    def _mapped(self, name: str, chunk: pa.DictionaryArray) -> pa.Array:
        values, words = self._values[name], chunk.dictionary
        new = words.filter(pc.invert(pc.is_in(words, value_set=values)))
        if len(new):
            self._values[name] = values = pa.concat_arrays([values, pc.unique(new)])
        return pc.index_in(words, value_set=values).take(chunk.indices)
