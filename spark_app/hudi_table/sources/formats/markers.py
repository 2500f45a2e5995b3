"""Large values that a change left alone: PostgreSQL sends none, and Debezium a marker in their
place.

Facts (Debezium 3.3.1): the marker is text, of bytes its bytes, of an array of text the one item. A
large value that is left alone is not null: null is sent as null.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.model.names import IS_DELETED
from hudi_table.model.table.merging import UNAVAILABLE
from hudi_table.sources.formats.dialects import OPERATION

NOT_KEPT = (
    "it leaves the large value of {name} alone, which the table does not keep: that takes text in a CopyOnWrite table of version 6 that this ingest has made; "
    "or give the table at the database REPLICA IDENTITY FULL"
)
KEY_CHANGED = (
    "its key has changed, and it leaves the large value of {name} alone, which is stored under the key before: "
    "give the table at the database REPLICA IDENTITY FULL"
)
_BYTES = UNAVAILABLE.encode()
_CREATES = pa.array(["c", "r"])


def filled(rows: pa.Table, key: Sequence[str], *, fills: bool) -> tuple[pa.Table, list[tuple[int, str]]]:
    """Rows in which a marker has the value of the change of its key before it, if that is here; and
    (row, why) of those whose marker nothing fills. `fills`: the table keeps what a marker of text
    stands for, so that it may go on to it; but not that of a row that has just been created, as a
    change of its key does: the table has nothing under that key."""
    bad: dict[int, str] = {}
    order: _Order | None = None
    for number, field in enumerate(rows.schema):
        column = rows.column(number)
        marked = _marked(column)
        if marked is None:
            continue
        order = order or _Order(rows, key)
        takes, left = order.before(marked, column.is_valid().to_numpy())
        rows = rows.set_column(number, field, column.take(pa.array(takes)))
        new = order.new[left]
        for row in left[new].tolist():
            bad.setdefault(row, KEY_CHANGED.format(name=field.name))
        if not (fills and pt.is_string(field.type)):
            for row in left[~new].tolist():
                bad.setdefault(row, NOT_KEPT.format(name=field.name))
    return rows, sorted(bad.items())


def _marked(column: pa.ChunkedArray) -> npt.NDArray[np.bool_] | None:
    """Where markers are; None where none is."""
    kind = column.type
    if pt.is_string(kind) or pt.is_binary(kind):
        found = pc.equal(column, pa.scalar(UNAVAILABLE if pt.is_string(kind) else _BYTES, kind)).fill_null(False)
    elif pt.is_list(kind) and pt.is_string(kind.value_type):
        one = pc.equal(pc.list_value_length(column), 1).fill_null(False)
        places = np.flatnonzero(one.to_numpy())
        items = pc.equal(pc.list_flatten(column.filter(one)), UNAVAILABLE).fill_null(False)
        mask = np.zeros(len(column), bool)
        mask[places[items.to_numpy()]] = True
        return mask if mask.any() else None
    else:
        return None
    return found.to_numpy() if pc.any(found).as_py() else None


class _Order:
    """Rows by their keys, of each key in the order of its changes. A delete parts what comes before
    from what comes behind."""

    def __init__(self, rows: pa.Table, key: Sequence[str]) -> None:
        codes = np.zeros(len(rows), np.int64)
        for name in key:
            one = rows.column(name).combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy() + 1
            codes = np.unique(codes * (int(one.max()) + 1) + one, return_inverse=True)[1].reshape(-1)
        self._rows = np.argsort(codes, kind="stable")
        ends = rows.column(IS_DELETED).to_numpy()[self._rows]
        begins = np.ones(len(rows), bool)
        begins[1:] = (np.diff(codes[self._rows]) != 0) | ends[1:] | ends[:-1]
        self._begins = np.maximum.accumulate(np.where(begins, np.arange(len(rows)), 0))
        created = pc.is_in(rows.column(OPERATION), _CREATES).to_numpy()
        self.new = np.empty(len(rows), bool)
        """Which rows are, or follow, the creation of theirs with nothing but changes between."""
        self.new[self._rows] = created[self._rows[self._begins]]

    def before(
        self, marked: npt.NDArray[np.bool_], valid: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Of each row the row whose value it has: of a marker the change before; and the rows that
        have none."""
        marks = marked[self._rows]
        places = np.arange(len(marks))
        giver = np.maximum.accumulate(np.where(marks, -1, places))
        given = (giver >= self._begins) & valid[self._rows][giver]
        takes = np.empty(len(marks), np.int64)
        takes[self._rows] = self._rows[np.where(marks & given, giver, places)]
        return takes, np.sort(self._rows[marks & ~given])
