"""Change events of a database, as Debezium writes them: each is the newest state of a row, or its
end.

Facts (Debezium 3.3.1; samples in `tests/data/debezium`): `op` is r (snapshot), c, u, d, t
(truncate) or m (message). `after` is the row; `before` of a delete holds the key and invented
values unless the replica identity is full, so the key alone is taken from it. A change of the key
is a delete and a create.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError
from hudi_table.model.table.merging import UNAVAILABLE
from hudi_table.sources.formats.columns import BadValueError, fields_of, refuse
from hudi_table.sources.formats.connect import Kind
from hudi_table.sources.formats.decoder import Settled, UndecodableError
from hudi_table.sources.formats.dialects import LSN, OPERATION, Dialect, check_connectors
from hudi_table.sources.formats.envelopes import NO_EVENT, Envelopes, Group
from hudi_table.sources.formats.markers import NO_MARKER, StoredRows, filled, is_untold
from hudi_table.sources.formats.unions import together

_MARKERS = pa.array([UNAVAILABLE, base64.b64encode(UNAVAILABLE.encode()).decode()])
_CHANGES = "_lakeops_changes"
"""Boolean column of rows that `settled` takes away: which do not tell what was before them, where a
null may mean that."""
_ROWS = pa.array(["r", "c", "u", "d", "t"])
_TRUNCATED = "the table was truncated, which a stream of rows cannot express: give source.debezium.onTruncate Delete to delete its rows here, too, or Ignore to keep them"
_PARTED = (
    "the table was truncated, and its events lie in {count} partitions, so that some from before may come behind: "
    "give the topic one partition, or source.debezium.onTruncate Ignore, and delete the rows of the table here"
)


class DebeziumDecoder:
    """`key`: columns of the record key. `columns`: types that are asked for. `infinite_is_null`:
    what becomes of dates without an end. `on_truncate`: Refuse, Delete or Ignore. `stored`: the
    rows of the table."""

    def __init__(
        self,
        envelopes: Envelopes,
        dialect: Dialect,
        key: Sequence[str],
        columns: pa.Schema | None,
        *,
        infinite_is_null: bool = False,
        on_truncate: str = "Refuse",
        stored: StoredRows,
    ) -> None:
        self._envelopes = envelopes
        self._dialect = dialect
        self._own = dialect.own
        self._key = tuple(key)
        self._columns = columns
        self._infinite_is_null = infinite_is_null
        self._on_truncate = on_truncate
        self._stored = stored

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`. The columns of the dialect come behind those of the rows. Markers and
        truncates are left for `settled`."""
        groups = self._envelopes.groups(messages)
        found = [self._table(group) for group in groups]
        if not found:
            return self._own.empty_table()
        if len(found) == 1:
            return self._as_wanted(found[0], known)
        try:
            joined = together(found)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            last = max(int(group.places[0]) for group in groups)
            raise UndecodableError(last, f"its columns do not fit those before it: {error}") from error
        order = np.argsort(np.concatenate([group.places for group in groups]), kind="stable")
        joined = self._as_wanted(joined.take(pa.array(order)), known)
        own = [*self._own.names, *(name for name in joined.column_names if name == _CHANGES)]
        return joined.select([*(name for name in joined.column_names if name not in own), *own])

    def settled(self, rows: pa.Table, old_keys: pa.Array, partitions: int) -> Settled:
        """Rows of one commit, in their order, with what their markers stand for and without what a
        truncate has taken. `old_keys`: of each what its header says of the key before;
        `partitions`: over how many events are spread."""
        truncates = pc.equal(rows.column(OPERATION), "t").to_numpy()
        if truncates.any():
            if self._on_truncate == "Delete" and partitions > 1:
                why = _PARTED.format(count=partitions)
                left = self._filled(rows, np.arange(len(rows)), old_keys)
                bad = [(row, why) for row in np.flatnonzero(truncates).tolist()]
                return replace(left, bad=[*bad, *left.bad], waits=False)
            return self._truncated(rows, old_keys, truncates)
        return self._filled(rows, np.arange(len(rows)), old_keys)

    def _filled(self, rows: pa.Table, of: npt.NDArray[np.int64], old_keys: pa.Array) -> Settled:
        key = [name for name in self._key if name in rows.column_names]
        # Binlogs hold rows whole.
        changes = None
        if _CHANGES in rows.column_names:
            changes = rows.column(_CHANGES).fill_null(False).to_numpy()
            rows = rows.drop_columns(_CHANGES)
        if self._dialect.order != LSN or not len(rows):
            return Settled(rows, of)
        found, bad = filled(rows, key, self._dialect.order, old_keys, self._stored, changes)
        return Settled(found, of, bad)

    def _truncated(self, rows: pa.Table, old_keys: pa.Array, truncates: npt.NDArray[np.bool_]) -> Settled:
        """Without what was before the last truncate, in the order of the log: rows of the commit
        are left out, and those of the table are deleted by whoever commits."""
        order = self._dialect.order
        if self._on_truncate != "Delete":
            kept = np.flatnonzero(~truncates)
            return self._filled(rows.take(pa.array(kept)), kept, old_keys.take(pa.array(kept)))
        last = pc.max(rows.column(order).filter(pa.array(truncates)))
        behind = pc.greater_equal(rows.column(order), last).to_numpy() & ~truncates
        kept = np.flatnonzero(behind)
        left = self._filled(rows.take(pa.array(kept)), kept, old_keys.take(pa.array(kept)))
        return replace(left, since=last)

    def _as_wanted(self, rows: pa.Table, known: pa.Schema | None) -> pa.Table:
        """In the types that are asked for, and else in the table's where those hold every value: a
        database widens its columns as it goes."""
        for number, field in enumerate(rows.schema):
            asked = _type_in(self._columns, field.name)
            wanted = asked or _type_in(known, field.name)
            if wanted is None or wanted == field.type:
                continue
            try:
                column = rows.column(number).cast(asked) if asked is not None else _kept(rows, field.name, wanted)
                rows = rows.set_column(number, field.name, column)
            except InvalidDataError:
                continue  # the column's own type stands: who evolves the table widens it, or refuses the column
            except pa.ArrowException as error:
                raise InvalidDataError(
                    f"column {field.name} is {field.type} and not {asked}, as source.columns says: {error}"
                ) from error
        return rows

    def _table(self, group: Group) -> pa.Table:
        """The rows of one shape."""
        try:
            return self._rows(group)
        except BadValueError as error:
            raise UndecodableError(int(group.places[error.row]), " ".join(error.why.split())) from error

    def _rows(self, group: Group) -> pa.Table:
        event = fields_of(group.events)
        operations, source, before, after = (event[name] for name in ("op", "source", "before", "after"))
        origin = fields_of(source)
        refuse(pc.or_(operations.is_null(), source.is_null()), operations, NO_EVENT)
        check_connectors(origin["connector"], self._dialect)
        deleted = self._checked(operations, before, after)
        rows, keys = fields_of(after), fields_of(before)
        has_deletes = pc.any(deleted).as_py()
        arrays, fields = [], []
        for name, kind in group.shape.items():
            raw = rows[name]
            if has_deletes:
                is_key = name in self._key
                if is_key:
                    refuse(pc.and_(deleted, keys[name].is_null()), raw, f"it has no {name}")
                raw = pc.if_else(deleted, keys[name] if is_key else pa.nulls(len(raw), raw.type), raw)
            arrays.append(self._values(name, kind, raw))
            fields.append(pa.field(name, kind.type))
        for name in self._key if has_deletes else ():
            if name not in rows:
                refuse(deleted, operations, f"it has no {name}")
        own = self._dialect.columns(operations, origin, deleted)
        found = pa.Table.from_arrays([*arrays, *own], schema=pa.schema([*fields, *self._own]))
        untold = [name for name, kind in group.shape.items() if is_untold(kind.type) and rows[name].null_count]
        if untold and self._dialect.order == LSN:
            changes = pc.and_(pc.invert(deleted), before.is_null())
            if pc.any(pc.and_(changes, functools.reduce(pc.or_, [rows[name].is_null() for name in untold]))).as_py():
                found = found.append_column(_CHANGES, changes)
        return found

    def _checked(self, operations: pa.Array, before: pa.Array, after: pa.Array) -> pa.Array:
        """Which events delete. Raises BadValueError for one that is of no row."""
        truncates = pc.equal(operations, "t")
        if self._on_truncate == "Refuse":
            refuse(truncates, operations, _TRUNCATED)
        refuse(pc.invert(pc.is_in(operations, _ROWS)), operations, "its op is {}, which is of no row")
        deleted = pc.equal(operations, "d")
        refuse(
            pc.and_not(pc.if_else(deleted, before.is_null(), after.is_null()), truncates),
            operations,
            "it says not which row it is of: give the table a replica identity",
        )
        return deleted

    def _values(self, name: str, kind: Kind, raw: pa.Array) -> pa.Array:
        if pt.is_string(raw.type) and not (pt.is_string(kind.type) or pt.is_binary(kind.type)):
            refuse(pc.is_in(raw, _MARKERS), raw, NO_MARKER.format(name=name))
        try:
            return kind.read(raw, self._infinite_is_null)
        except BadValueError as error:
            raise BadValueError(error.row, f"{name}: {error.why}") from error


def _kept(rows: pa.Table, name: str, wanted: pa.DataType) -> pa.ChunkedArray:
    """A column in the table's type. Raises InvalidDataError where that does not hold every value:
    Arrow's own cast narrows floats, reads numbers in texts and cuts moments unasked."""
    return conform(rows.select([name]), pa.schema([(name, wanted)])).column(0)


def _type_in(schema: pa.Schema | None, name: str) -> pa.DataType | None:
    place = schema.get_field_index(name) if schema is not None else -1
    return schema.field(place).type if schema is not None and place >= 0 else None
