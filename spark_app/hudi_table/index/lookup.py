"""The lookup that the simple and the bloom indexes share: which slice of the snapshot holds which
of the incoming keys.

A `Pruning` tells of every base file which keys it may hold; what is left is compared with the
file's key column, and with the keys of logs. Where the rows then go is the same for all: a known
key to its file, another to its partition. A global lookup deletes a key that it finds in another
partition there and inserts it into the new one (Hudi 0.15's default,
`hoodie.simple.index.update.partition.path=true` and
`hoodie.bloom.index.update.partition.path=true`), unless event time decides and the stored row is
newer, which then stays where it is. (If these are false, the row stays in the partition of the
stored one, whatever its partition column says then: measured on Hudi 0.15.0 and 1.1.1 with the
bloom index.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.parquet import read_batches
from hudi_table.errors import InvariantError
from hudi_table.index.base import Codes, Index, Keys, Lookup, Positions, Routed, Slot
from hudi_table.index.filters import OpenBase
from hudi_table.index.log_keys import logged_keys
from hudi_table.index.sorted_keys import Candidates, Wanted
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.rows.merge import one_chunk, strictly_less
from hudi_table.table.view.file_system_view import BaseFile, FileSlice

_BATCH_ROWS = 250_000


class Pruning(Protocol):
    """Which keys a base file may hold, told without its rows. Called on several threads at once."""

    def candidates(self, file: OpenBase, wanted: Wanted) -> Candidates:
        """Every wanted key that the file holds, and as few others as possible."""
        ...


class LookedUp(Index):
    """What every index has in common that looks keys up, wherever it does."""

    __slots__ = ()

    @property
    def reads_snapshot(self) -> bool:
        """True: which answers count follows from the files of the snapshot."""
        return True


@dataclass(frozen=True, slots=True)
class SearchingIndex(LookedUp):
    """An index that looks keys up in the files, with a pruning of its own; `is_global` decides
    whether in all partitions."""

    is_global: bool = False

    @abstractmethod
    def pruning(self, slices: Sequence[FileSlice]) -> Pruning:
        """Which keys the base files of these slices may hold."""

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """Rows of known keys to their group, others to their partition."""
        slices = searched_slices(keys, lookup, is_global=self.is_global)
        assert lookup is not None
        pruning = self.pruning(slices)
        return route_by_lookup(keys, lookup, slices, pruning, is_global=self.is_global, prepare=self.needs_filters)


@dataclass(frozen=True, slots=True)
class Hit:
    """Rows of `Keys` whose key a slice holds, and for event time the stored ordering values."""

    rows: Positions
    ordering: pa.Array | None = None


def no_hit() -> Hit:
    """Nothing found."""
    return Hit(np.empty(0, dtype=np.int64))


def searched_slices(keys: Keys, lookup: Lookup | None, *, is_global: bool) -> list[FileSlice]:
    """The slices that may hold a key. Raises InvariantError without a snapshot."""
    if lookup is None:
        raise InvariantError("an index that looks keys up was asked to route without a snapshot")
    wanted = set(keys.partition_paths)
    return [item for item in lookup.slices if is_global or item.partition in wanted]


def route_by_lookup(
    keys: Keys, lookup: Lookup, slices: Sequence[FileSlice], pruning: Pruning, *, is_global: bool, prepare: bool = False
) -> Routed:
    """Rows of known keys to their group, others to their partition. `prepare`: the pruning asks
    bloom filters."""
    places = tuple(Slot(path) for path in keys.partition_paths)
    slots = places + tuple(Slot(item.partition, file_id=item.file_id) for item in slices)
    ordering = lookup.ordering_field if is_global else None
    sought = searches(keys, slices, is_global=is_global, prepare=prepare)

    def search(item: FileSlice) -> Hit:
        return search_slice(lookup, item, sought["" if is_global else item.partition], pruning, ordering)

    routing = _Routing(keys, slots, len(places))
    for number, hit in enumerate(lookup.engine.imap(search, slices)):
        routing.add(hit, len(places) + number)
    return routing.routed()


def search_slice(lookup: Lookup, item: FileSlice, wanted: Wanted, pruning: Pruning, ordering: str | None) -> Hit:
    """Which of the wanted keys one slice holds."""
    if len(wanted.rows) == 0:
        return no_hit()
    stored = no_hit() if item.base is None else _in_base(lookup, item.base, wanted, pruning, ordering)
    if not item.logs or lookup.visible is None:
        return stored
    logged = pc.index_in(
        logged_keys(lookup.storage, item, lookup.visible, lookup.virtual_keys), value_set=wanted.keys
    ).drop_null()
    # Tables with logs compare no ordering values here (write/checks/request.py refuses the one kind that would).
    return Hit(np.unique(np.concatenate([stored.rows, wanted.rows[logged.to_numpy()]])))


def searches(keys: Keys, slices: Sequence[FileSlice], *, is_global: bool, prepare: bool = False) -> dict[str, Wanted]:
    """Per partition (or '' for all) the keys that are looked for there."""
    if is_global:
        every = np.arange(len(keys.record_keys), dtype=np.int64)
        return {"": Wanted.of(keys.record_keys, every, prepare=prepare and len(slices) > 1)}
    order = np.argsort(keys.partitions, kind="stable")
    ends = np.searchsorted(keys.partitions[order], np.arange(len(keys.partition_paths) + 1))
    files: dict[str, int] = {}
    for item in slices:
        files[item.partition] = files.get(item.partition, 0) + 1
    return {
        path: Wanted.of(
            keys.record_keys,
            order[ends[code] : ends[code + 1]].astype(np.int64),
            prepare=prepare and files[path] > 1,
        )
        for code, path in enumerate(keys.partition_paths)
        if path in files
    }


def _in_base(lookup: Lookup, base: BaseFile, wanted: Wanted, pruning: Pruning, ordering: str | None) -> Hit:
    virtual = lookup.virtual_keys
    columns = [RECORD_KEY] if virtual is None else list(virtual.columns)
    columns += [] if ordering is None or ordering in columns else [ordering]
    with OpenBase(lookup.storage, base) as file:
        sought = pruning.candidates(file, wanted)
        if len(sought.rows) == 0:
            return no_hit()
        positions: list[Positions] = []
        values: list[pa.Array] = []
        for batch in read_batches(file.source, columns, path=base.path, batch_rows=_BATCH_ROWS, metadata=file.metadata):
            stored = batch.column(RECORD_KEY) if virtual is None else virtual.record_keys(batch)
            places = one_chunk(pc.index_in(stored, value_set=sought.keys))
            positions.append(sought.rows[places.drop_null().to_numpy()])
            if ordering is not None:
                values.append(batch.column(ordering).filter(places.is_valid()))
    if not positions:
        return no_hit()
    return Hit(np.concatenate(positions), pa.concat_arrays([one_chunk(v) for v in values]) if values else None)


class _Routing:
    """What the files hold of the keys, put together file by file."""

    def __init__(self, keys: Keys, slots: tuple[Slot, ...], places: int) -> None:
        self.keys = keys
        self.slots = slots
        self.places = places
        self.codes = keys.partitions.astype(np.int32).copy()
        self.moves: list[tuple[Positions, Codes]] = []
        self.copies: list[tuple[Positions, Codes]] = []

    def add(self, hit: Hit, code: int) -> None:
        """Send the rows of one file's hits to it; rows that leave its partition are deleted from it
        instead."""
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
