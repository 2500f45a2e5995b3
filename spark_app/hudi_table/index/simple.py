"""The simple indexes: look the keys up in the key columns of the base files, and of logs.

Simple looks into the partition of the incoming row only. Global simple looks everywhere: a key that is found in
another partition is deleted there and inserted into the new one (Hudi 0.15's default,
`hoodie.simple.index.update.partition.path=true`), unless event time decides and the stored row is newer, which
then stays where it is. Files whose key range, from the footer, meets no incoming key are not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.keyrange import may_lie_within
from hudi_table.codec.parquet import BaseFileFooter, read_batches, read_footer
from hudi_table.errors import InvariantError
from hudi_table.index.base import Codes, Keys, Lookup, Positions, Routed, Slot
from hudi_table.index.logged import logged_keys
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.merge import one_chunk, strictly_less
from hudi_table.table.view import BaseFile, FileSlice

_BATCH_ROWS = 250_000


@dataclass(frozen=True, slots=True)
class _Hit:
    """Rows of `Keys` whose key a file holds, and for event time the stored ordering values."""

    rows: Positions
    ordering: pa.Array | None


@dataclass(frozen=True, slots=True)
class SimpleIndex:
    """Looks keys up in base files; `is_global` decides whether in all partitions."""

    is_global: bool = False

    @property
    def reads_snapshot(self) -> bool:
        """True: the keys are in the files."""
        return True

    def groups(self, slices: Iterable[FileSlice]) -> dict[Slot, FileSlice]:
        """Slot of every group."""
        return {Slot(item.partition, file_id=item.file_id): item for item in slices}

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """Rows of known keys to their group, others to their partition."""
        if lookup is None:
            raise InvariantError("the simple index was asked to route without a snapshot")
        slices = list(lookup.slices)
        if not self.is_global:
            wanted = set(keys.partition_paths)
            slices = [item for item in slices if item.partition in wanted]
        places = tuple(Slot(path) for path in keys.partition_paths)
        slots = places + tuple(Slot(item.partition, file_id=item.file_id) for item in slices)
        ordering = lookup.ordering_field if self.is_global else None
        searches = self._searches(keys, slices)

        def search(item: FileSlice) -> _Hit:
            rows = searches["" if self.is_global else item.partition]
            return _search(lookup, item, keys.record_keys, rows, ordering)

        found = _Found(keys, slots, len(places))
        for number, hit in enumerate(lookup.engine.imap(search, slices)):
            found.add(hit, len(places) + number)
        return found.routed()

    def _searches(self, keys: Keys, slices: list[FileSlice]) -> dict[str, Positions]:
        """Per partition (or '' for all) the rows whose keys are looked for there."""
        if self.is_global:
            return {"": np.arange(len(keys.record_keys), dtype=np.int64)}
        order = np.argsort(keys.partitions, kind="stable")
        ends = np.searchsorted(keys.partitions[order], np.arange(len(keys.partition_paths) + 1))
        wanted = {item.partition for item in slices}
        return {
            path: order[ends[code] : ends[code + 1]].astype(np.int64)
            for code, path in enumerate(keys.partition_paths)
            if path in wanted
        }


class _Found:
    """What the files hold of the keys, put together file by file."""

    def __init__(self, keys: Keys, slots: tuple[Slot, ...], places: int) -> None:
        self.keys = keys
        self.slots = slots
        self.places = places
        self.codes = keys.partitions.astype(np.int32).copy()
        self.moves: list[tuple[Positions, Codes]] = []
        self.copies: list[tuple[Positions, Codes]] = []

    def add(self, hit: _Hit, code: int) -> None:
        """Send the rows of one file's hits to it; rows that leave its partition are deleted from it instead."""
        if len(hit.rows) == 0:
            return
        keys = self.keys
        home = np.array([path == self.slots[code].partition for path in keys.partition_paths])
        at_home = home[keys.partitions[hit.rows]]
        rows = np.unique(hit.rows[at_home])
        again = self.codes[rows] >= self.places
        self.codes[rows[~again]] = code
        self.copies.append((rows[again], np.full(int(again.sum()), code, dtype=np.int32)))
        leaving = np.flatnonzero(~at_home)
        rows = hit.rows[leaving]
        if keys.ordering is not None and hit.ordering is not None:
            stays = strictly_less(keys.ordering.take(pa.array(rows)), hit.ordering.take(pa.array(leaving)))
            self.codes[rows[stays]] = -1
            rows = rows[~stays]
        rows = np.unique(rows)
        self.moves.append((rows, np.full(len(rows), code, dtype=np.int32)))

    def routed(self) -> Routed:
        """All of it."""
        deletes, delete_codes = _joined(self.moves)
        copies, copy_codes = _joined(self.copies)
        return Routed(self.slots, self.codes, deletes, delete_codes, copies, copy_codes)


def _joined(parts: list[tuple[Positions, Codes]]) -> tuple[Positions, Codes]:
    rows = [np.empty(0, dtype=np.int64), *(part[0] for part in parts)]
    codes = [np.empty(0, dtype=np.int32), *(part[1] for part in parts)]
    return np.concatenate(rows), np.concatenate(codes)


def _may_hold(footer: BaseFileFooter, keys: pa.Array) -> bool:
    if footer.min_key is None or footer.max_key is None:
        return True
    return bool(pc.any(may_lie_within(keys, footer.min_key, footer.max_key)).as_py())


def _search(lookup: Lookup, item: FileSlice, keys: pa.Array, rows: Positions, ordering: str | None) -> _Hit:
    """Which of `rows` have their key in one slice."""
    none = _Hit(np.empty(0, dtype=np.int64), None)
    if len(rows) == 0:
        return none
    wanted = keys if len(rows) == len(keys) else keys.take(pa.array(rows))
    stored = none if item.base is None else _in_base(lookup, item.base, wanted, rows, ordering) or none
    if not item.logs or lookup.visible is None:
        return stored
    logged = pc.index_in(logged_keys(lookup.storage, item, lookup.visible), value_set=wanted).drop_null()
    # Tables with logs compare no ordering values here (write/prepare.py refuses the one kind that would).
    return _Hit(np.unique(np.concatenate([stored.rows, rows[logged.to_numpy()]])), None)


def _in_base(lookup: Lookup, base: BaseFile, wanted: pa.Array, rows: Positions, ordering: str | None) -> _Hit | None:
    virtual = lookup.virtual_keys
    columns = [RECORD_KEY] if virtual is None else list(virtual.columns)
    columns += [] if ordering is None or ordering in columns else [ordering]
    with lookup.storage.open_read(base.path) as source:
        if not _may_hold(read_footer(source, path=base.path), wanted):
            return None
        found: list[Positions] = []
        values: list[pa.Array] = []
        for batch in read_batches(source, columns, path=base.path, batch_rows=_BATCH_ROWS):
            stored = batch.column(RECORD_KEY) if virtual is None else virtual.record_keys(batch)
            places = one_chunk(pc.index_in(stored, value_set=wanted))
            found.append(rows[places.drop_null().to_numpy()])
            if ordering is not None:
                values.append(batch.column(ordering).filter(places.is_valid()))
    if not found:
        return None
    return _Hit(np.concatenate(found), pa.concat_arrays([one_chunk(v) for v in values]) if values else None)
