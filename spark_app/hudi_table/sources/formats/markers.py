"""Large values that a change left alone: PostgreSQL sends none, and Debezium a marker in their
place.

Facts (Debezium 3.3.1, PostgreSQL 17): the marker is text, of bytes its bytes, of `hstore` an object
of itself; of an array of texts or bytes the one item, of uuids the one that its bytes name, of
whole numbers and dates its bytes as numbers. Of bare numerics, bits and arrays of smaller or other
items null comes. A large value that is left alone is not null: null is sent as null.
A change of the key is a delete and a create of one place in the log; the create may hold markers,
and its header `__debezium.oldkey` the key before.

What a marker stands for lies in the change of the row before it, in this commit, or else in the
table: in its newest snapshot, or, where a commit before has deleted the row already, in one of
those that cleaning has left. Of a change that comes again, and of what follows it, it is in the row
that the table has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.model.names import IS_DELETED
from hudi_table.model.table.merging import UNAVAILABLE
from hudi_table.sources.formats.dialects import OPERATION
from hudi_table.sources.formats.json import joined, parsed

NOT_KEPT = (
    "it leaves the large value of {name} alone, and the table has none of that row to keep: "
    "give the table at the database REPLICA IDENTITY FULL, and take a new snapshot of the row"
)
NO_MARKER = (
    "it leaves the large value of {name} alone, of whose type no marker can be told: "
    "give the table at the database REPLICA IDENTITY FULL"
)
KEY_CHANGED = (
    "its key has changed, and it leaves the large value of {name} alone, and nothing tells the key before: "
    "let the header __debezium.oldkey come through, of a key of texts, whole numbers and truth values, or give the table at the database REPLICA IDENTITY FULL"
)
KEY_BEFORE_STANDS = (
    "its key has changed, and it leaves the large value of {name} alone, and the delete of the key before has not come yet: "
    "it lies in another partition, so read again, or give the topic one partition"
)
UNTOLD = (
    "its {name} is null, and large in the row before: Debezium sends null, too, where a change leaves a large value of that type alone; "
    "give the table at the database REPLICA IDENTITY FULL, and take a new snapshot of the row"
)
_BYTES = UNAVAILABLE.encode()
_SMALL_BYTES = 128
"""PostgreSQL moves values out of a row only where they make it large."""
_HSTORE = f'{{"{UNAVAILABLE}":"{UNAVAILABLE}"}}'
_CREATES = pa.array(["c", "r"])
_UUID = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class StoredRows(Protocol):
    """The rows of the table that events go to."""

    def versions(self, keys: pa.Table, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Rows of these keys, with those of the columns that there are: as they are in the newest
        snapshot, then in one after the other of those before it."""
        ...


def is_untold(kind: pa.DataType) -> bool:
    """Whether null comes for a large value of this type that a change leaves alone."""
    item = kind.value_type if pt.is_list(kind) else None
    return item is not None and (
        pt.is_floating(item) or pt.is_decimal(item) or pt.is_boolean(item) or pt.is_timestamp(item)
    )


def filled(
    rows: pa.Table, key: Sequence[str], order: str, old_keys: pa.Array, stored: StoredRows, changes: Mask | None = None
) -> tuple[pa.Table, list[tuple[int, str]]]:
    """Rows in which a marker has the value that it stands for; and (row, why) of those whose value
    is nowhere. `order`: the column of the place in the log; `old_keys`: what the events' headers
    say of the keys before; `changes`: which rows do not tell what was before them. A row that loses
    to another one of its key keeps what it has."""
    nulls = _nulls(rows, changes, old_keys)
    marks = dict(nulls)
    for name in rows.column_names:
        mask = _marked(rows.column(name))
        if mask is not None:
            marks[name] = mask
    if not marks:
        return rows, []
    chains = _Chains(rows, key, order, old_keys, np.logical_or.reduce(list(marks.values())))
    sought = _look(chains, lambda: {name: chains.seek(rows.column(name), mask) for name, mask in marks.items()}, stored)
    bad: dict[int, str] = {}
    for name, found in sought.items():
        if name in nulls:
            for row in _large(rows.column(name), found, np.flatnonzero(nulls[name] & ~chains.loses)):
                bad.setdefault(row, UNTOLD.format(name=name))
            continue
        place = rows.schema.get_field_index(name)
        values = pa.chunked_array([*rows.column(name).chunks, *found.values])
        rows = rows.set_column(place, rows.schema.field(place), values.take(pa.array(found.takes)))
        for row in found.rows[(found.open | found.lost) & ~chains.loses[found.rows]].tolist():
            bad.setdefault(row, chains.why(row).format(name=name))
    return rows, sorted(bad.items())


def _nulls(rows: pa.Table, changes: Mask | None, old_keys: pa.Array) -> dict[str, Mask]:
    """By column which nulls of changes may be values that are left alone."""
    if changes is None:
        return {}
    asked = changes & (
        ~pc.is_in(rows.column(OPERATION), _CREATES).to_numpy() | old_keys.is_valid().to_numpy(zero_copy_only=False)
    )
    found = {
        field.name: asked & rows.column(field.name).is_null().to_numpy()
        for field in rows.schema
        if is_untold(field.type)
    }
    return {name: mask for name, mask in found.items() if mask.any()}


def _large(column: pa.ChunkedArray, found: _Sought, rows: Places) -> list[int]:
    """Those of these rows before which the value was a large one."""
    values = pa.chunked_array([*column.chunks, *found.values], column.type).take(pa.array(found.takes[rows]))
    sizes = pc.list_value_length(values).fill_null(0).to_numpy() * max(1, column.type.value_type.bit_width // 8)
    large: list[int] = rows[sizes > _SMALL_BYTES].tolist()
    return large


def _marked(column: pa.ChunkedArray) -> Mask | None:
    """Where markers are; None where none is."""
    kind = column.type
    if pt.is_string(kind):
        found = pc.is_in(column, pa.array([UNAVAILABLE, _HSTORE]))
    elif pt.is_binary(kind):
        found = pc.equal(column, pa.scalar(_BYTES, kind)).fill_null(False)
    elif pt.is_list(kind):
        return _marked_lists(column, kind.value_type)
    else:
        return None
    return found.to_numpy() if pc.any(found).as_py() else None


def _marked_lists(column: pa.ChunkedArray, item: pa.DataType) -> Mask | None:
    """Which lists are the marker; None where none is."""
    numbers = pt.is_integer(item) or pt.is_date32(item)
    if not (numbers or pt.is_string(item) or pt.is_binary(item)):
        return None
    size = len(_BYTES) if numbers else 1
    fit = pc.equal(pc.list_value_length(column), size).fill_null(False)
    places = np.flatnonzero(fit.to_numpy())
    if not len(places):
        return None
    items = pc.list_flatten(column.filter(fit))
    if numbers:
        plain = items.cast(pa.int32()) if pt.is_date32(item) else items
        marker = pa.array(np.tile(np.frombuffer(_BYTES, np.uint8).astype(np.int64), len(places)))
        same = pc.equal(plain.cast(pa.int64()), marker)
    else:
        same = pc.is_in(items, pa.array([_BYTES] if pt.is_binary(item) else [UNAVAILABLE, _UUID], item))
    mask = np.zeros(len(column), bool)
    mask[places[same.fill_null(False).to_numpy().reshape(len(places), size).all(axis=1)]] = True
    return mask if mask.any() else None


@dataclass(slots=True)
class _Sought:
    """What one column's markers stand for. `rows`: those that have one which nothing in the commit
    tells; `roots`: the first row of each one's chain; `open`: which of them are not told yet;
    `lost`: which have none. `takes`: of each row of the commit the place of its value among those
    of the column and, behind them, `values`."""

    rows: Places
    roots: Places
    open: Mask
    lost: Mask
    takes: Places
    values: list[pa.Array] = field(default_factory=list)

    def give(self, which: Places, values: pa.Array, newer: Mask) -> None:
        """What the table has for some of `rows`; of those for which that is no value nothing has
        one, unless the table has `newer` rows, to which these lose."""
        self.open[which] = False
        good = values.is_valid().to_numpy(zero_copy_only=False)
        marks = _marked(pa.chunked_array([values]))
        good = newer | (good if marks is None else good & ~marks)
        self.lost[which[~good]] = True
        start = len(self.takes) + sum(map(len, self.values))
        self.values.append(values)
        self.takes[self.rows[which[good]]] = start + np.flatnonzero(good)


class _Chains:
    """Rows and the change before each, in the order of the log: of a row whose key has changed that
    of the key before. `table` has the rows' own keys, then the keys before; `asked`: the place of
    the key under which the table has what was before each row."""

    def __init__(self, rows: pa.Table, key: Sequence[str], order: str, old_keys: pa.Array, marked: Mask) -> None:
        count = len(rows)
        self.order, self.key = order, list(key)
        self.orders = rows.column(order).to_numpy()
        self.ends = rows.column(IS_DELETED).to_numpy()
        self.moved = pc.is_in(rows.column(OPERATION), _CREATES).to_numpy() & marked
        own = rows.select(self.key)
        old, known = _keys_before(own.schema, old_keys, self.moved)
        self.unknown = self.moved & ~known
        self.table = pa.concat_tables([own, old])
        self.asked = np.arange(count) + np.where(self.moved & known, count, 0)
        codes = codes_of(self.table)
        places = np.lexsort((np.arange(count), self.orders))
        rank = np.empty(count, np.int64)
        rank[places] = np.arange(count)
        self._lines = codes[:count] * count + rank
        lined = np.sort(self._lines)
        at = np.searchsorted(lined, codes[self.asked] * count + rank) - 1
        there = (at >= 0) & (lined[at] // count == codes[self.asked]) & ~self.unknown
        self._before = np.where(there, places[lined[at] % count], -1)
        paired = there & self.ends[self._before] & (self.orders[self._before] == self.orders)
        self._before[self.moved & ~paired] = -1
        newest = np.append(np.diff(lined // count) != 0, True)
        self.loses = np.ones(count, bool)
        """Which rows have one of their key behind them."""
        self.loses[places[lined[newest] % count]] = False
        self.stands = np.zeros(count, bool)
        """Of which rows whose keys have changed the table has the key before still."""

    def begin_at(self, newest: _Version) -> bool:
        """Begin chains at creates that come again: the table has their rows, as they were then or
        later. What was before them may be gone. Whether there are such."""
        moved = np.flatnonzero(self.moved)
        stored = newest.places(moved)
        orders = newest.orders[stored]
        # Behind a delete of this commit stands another row of that key.
        again = moved[(stored >= 0) & (orders >= self.orders[moved]) & (orders < self._ended(moved))]
        self.moved[again] = self.unknown[again] = False
        self.asked[again], self._before[again] = again, -1
        return len(again) > 0

    def _ended(self, rows: Places) -> Places:
        """Where in the log the next delete of the key of each row is."""
        ends = np.flatnonzero(self.ends)
        ends = ends[np.argsort(self._lines[ends])]
        at = np.searchsorted(self._lines[ends], self._lines[rows])
        ends = np.append(ends, -1)[at]
        same = (ends >= 0) & (self._lines[ends] // len(self.ends) == self._lines[rows] // len(self.ends))
        return np.where(same, self.orders[ends], np.iinfo(np.int64).max)

    def seek(self, column: pa.ChunkedArray, marked: Mask) -> _Sought:
        """What is in the commit. A delete hands on what was before it."""
        at = np.arange(len(marked))
        passes = marked | self.ends
        roots = np.where(passes & (self._before >= 0), self._before, at)
        while not np.array_equal(after := roots[roots], roots):
            roots = after
        given = marked & ~passes[roots]
        rows = np.flatnonzero(marked & ~given)
        none = np.zeros(len(rows), bool)
        found = _Sought(rows, roots[rows], ~none, none, np.where(given, roots, at))
        empty = ~column.is_valid().to_numpy()[roots] & given
        if empty.any():
            # A column that the events before did not have yet.
            found.rows = np.append(rows, np.flatnonzero(empty))
            found.roots = np.append(found.roots, roots[empty])
            found.open = np.append(found.open, np.zeros(int(empty.sum()), bool))
            found.lost = np.append(none, np.ones(int(empty.sum()), bool))
        return found

    def why(self, row: int) -> str:
        """Why the value of a row is nowhere."""
        if self.unknown[row]:
            return KEY_CHANGED
        return KEY_BEFORE_STANDS if self.stands[row] else NOT_KEPT


def _look(chains: _Chains, seek: Callable[[], dict[str, _Sought]], stored: StoredRows) -> dict[str, _Sought]:
    """What is sought, and what the table has of it."""
    sought = seek()
    rows = np.unique(np.concatenate([each.rows[each.open] for each in sought.values()]))
    roots = _roots(sought)
    if not len(rows):
        return sought
    asked = reduce(np.union1d, [rows, chains.asked[roots], np.flatnonzero(chains.moved)])
    for number, version in enumerate(stored.versions(chains.table.take(pa.array(asked)), [chains.order, *sought])):
        found = _Version(chains, version)
        if number == 0:
            if chains.begin_at(found):
                sought = seek()
                roots = _roots(sought)
            moved = roots[chains.moved[roots]]
            at = found.places(chains.asked[moved])
            chains.stands[moved[(at >= 0) & (found.orders[at] < chains.orders[moved])]] = True
        for name, each in sought.items():
            if name in version.column_names:
                _give(chains, each, found, version.column(name), newest=number == 0)
        if not any(each.open.any() for each in sought.values()):
            break
    return sought


def _roots(sought: Mapping[str, _Sought]) -> Places:
    return np.unique(np.concatenate([each.roots[each.open] for each in sought.values()]))


def _give(chains: _Chains, sought: _Sought, found: _Version, column: pa.ChunkedArray, *, newest: bool) -> None:
    """Values of one snapshot: of a row that stands there in the same state or a newer one, as that
    of an event that comes again, its own; else that before the first row of the chain."""
    which = np.flatnonzero(sought.open)
    rows, roots = sought.rows[which], sought.roots[which]
    own, before = found.places(rows), found.places(chains.asked[roots])
    own[found.orders[own] < chains.orders[rows]] = -1
    moved = chains.moved[roots]
    strict = moved | chains.ends[roots]
    barred = chains.unknown[roots] | chains.stands[roots] | (moved & newest)
    before[barred | (strict & (found.orders[before] >= chains.orders[roots]))] = -1
    chosen = np.where(own >= 0, own, before)
    got = chosen >= 0
    if got.any():
        sought.give(which[got], column.take(pa.array(chosen[got])).combine_chunks(), (own >= 0)[got])


class _Version:
    """Rows of one snapshot, by places of their keys in the table of `chains`."""

    def __init__(self, chains: _Chains, version: pa.Table) -> None:
        count = len(chains.table)
        codes = codes_of(pa.concat_tables([chains.table, version.select(chains.key)]))
        self._codes = codes[:count]
        self._rows = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
        self._rows[codes[count:]] = np.arange(len(version))
        # One more, so that -1 can be asked.
        self.orders = np.append(version.column(chains.order).to_numpy(), 0)

    def places(self, keys: Places) -> Places:
        """The row of each key, -1 where there is none."""
        return self._rows[self._codes[keys]]


def _keys_before(schema: pa.Schema, texts: pa.Array, wanted: Mask) -> tuple[pa.Table, Mask]:
    """Of each row the key before, as its header says it, null where it does not; and of which it
    does, of those that are wanted."""
    known = np.zeros(len(wanted), bool)
    places = np.flatnonzero(wanted & texts.is_valid().to_numpy(zero_copy_only=False))
    empty = pa.table([pa.nulls(len(wanted), kind) for kind in schema.types], schema=schema)
    plain = all(pt.is_string(kind) or pt.is_integer(kind) or pt.is_boolean(kind) for kind in schema.types)
    if not plain or not len(places):
        return empty, known
    # A header of JSON with a schema holds the key in its payload.
    some = texts.take(pa.array(places))
    bare = pc.replace_substring_regex(some, rb'(?s)^\s*\{\s*"schema"\s*:.*"payload"\s*:\s*(\{.*\})\s*\}\s*$', rb"\1")
    try:
        found = parsed(joined(bare.cast(pa.large_binary())), len(places), schema)
    except (pa.ArrowInvalid, ValueError):
        return empty, known
    spots = np.full(len(wanted), -1)
    spots[places] = np.arange(len(places))
    keys = pa.table([found.field(name) for name in schema.names], schema=schema)
    known[places] = True
    for column in keys.columns:
        known[places] &= column.is_valid().to_numpy()
    return keys.take(pa.array(np.where(spots < 0, 0, spots), mask=spots < 0)), known


def codes_of(keys: pa.Table) -> Places:
    """Numbers that are equal where all columns are."""
    codes = np.zeros(len(keys), np.int64)
    for column in keys.columns:
        one = column.combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64) + 1
        codes = np.unique(codes * (int(one.max(initial=0)) + 1) + one, return_inverse=True)[1].reshape(-1)
    return codes
