"""An insert that leaves stored rows alone: incoming rows whose key is stored are dropped, or the
write fails before a file is written.

Facts (measured on Hudi 1.1.1). `hoodie.datasource.write.insert.drop.duplicates=true` and
`hoodie.datasource.insert.dup.policy=drop` drop them, `fail` raises HoodieDuplicateKeyException.
Hudi asks its index alone: one of buckets says of every row of a bucket with a file that it is
stored, so that new keys are dropped too, and a key that a log has deleted counts as stored. Here a
key counts if a reader sees its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import InvalidDataError
from hudi_table.index.base import Index, Keys, Lookup, Routed, Slot
from hudi_table.model.counts import counted
from hudi_table.model.options.write_options import DUPLICATE_POLICY, DuplicatePolicy
from hudi_table.table.rows.live_keys import LiveKeys
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.write.attempt import Attempt
from hudi_table.write.incoming import Marks, Taken, filled


def duplicates_error(key: str, count: int) -> InvalidDataError:
    """What a write raises whose policy is `fail`, for one of the `count` keys that are stored."""
    many = "" if count == 1 else f", as {'is' if count == 2 else 'are'} {counted(count - 1, 'more key')} of the data"
    return InvalidDataError(
        f"record key {key!r} is stored already{many}, and {DUPLICATE_POLICY}=fail; leave such rows out, drop them with "
        f"{DUPLICATE_POLICY}=drop, or write them with operation upsert"
    )


class StoredRows:
    """The keys whose rows a reader of a snapshot sees, and which of the incoming ones are among
    them. Picklable."""

    def __init__(self, ctx: TableContext, timeline: Timeline) -> None:
        self._live = LiveKeys(ctx, timeline)

    def marks(self, storage: Storage, item: FileSlice, keys: pa.Array) -> Marks:
        """True for each of the keys, strings, whose row the slice has now. Raises
        CorruptTableError."""
        found = np.zeros(len(keys), dtype=bool)
        for stored in self.keys_of(storage, item):
            found |= np.asarray(pc.is_in(keys, value_set=stored))
        return found

    def keys_of(self, storage: Storage, item: FileSlice) -> Iterator[pa.Array]:
        """The record keys of a slice's rows, in pieces. Raises CorruptTableError."""
        return self._live.of(storage, item)

    def of_routed(self, keys: Keys, routed: Routed, lookup: Lookup) -> Marks:
        """True for each of `keys` that an index which looked into the snapshot found in a slice,
        and that is seen there."""
        slices = {Slot(item.partition, file_id=item.file_id): item for item in lookup.slices}
        groups = np.array([slot in slices for slot in routed.slots], dtype=bool)
        home = np.flatnonzero((routed.codes >= 0) & groups[routed.codes])
        rows = np.concatenate([home, routed.deletes, routed.copies]).astype(np.int64)
        codes = np.concatenate([routed.codes[home], routed.delete_codes, routed.copy_codes]).astype(np.int64)
        found = np.zeros(len(keys.record_keys), dtype=bool)
        for code in np.unique(codes).tolist():
            item, mine = slices[routed.slots[code]], rows[codes == code]
            # Without logs there is a row where a key was found.
            seen: Any = slice(None)
            if item.logs:
                seen = self.marks(lookup.storage, item, keys.record_keys.take(pa.array(mine)))
            found[mine[seen]] = True
        return found


def unstored_keys(attempt: Attempt, index: Index, lookup: Lookup) -> Callable[[Keys], Marks] | None:
    """For an index that looks keys up: a function that says of keys which of them to write, None
    where an insert looks for none. It raises InvalidDataError where the policy is to fail."""
    policy = attempt.prepared.duplicates
    if policy is DuplicatePolicy.NONE:
        return None
    stored = StoredRows(attempt.ctx, attempt.timeline)

    def unstored(keys: Keys) -> Marks:
        # Nothing is compared by event time: what is stored stays, whatever is newer.
        unordered = replace(keys, ordering=None)
        place = replace(lookup, ordering_field=None)
        found = stored.of_routed(unordered, index.route(unordered, place), place)
        _refuse(policy, keys.record_keys, found)
        return ~found

    return unstored


def without_stored(attempt: Attempt, taken: Taken, max_memory: int) -> Taken:
    """For an index whose hash is all: the rows whose key is not stored in the group that they go
    to. The result is closed by the caller, and is `taken` itself where the insert looks for none.
    Raises InvalidDataError where the policy is to fail."""
    if attempt.prepared.duplicates is DuplicatePolicy.NONE:
        return taken
    groups = attempt.existing(sorted({slot.partition for slot in taken.slots}))
    stored = StoredRows(attempt.ctx, attempt.timeline)
    with filled(max_memory, taken.slots) as result:
        for code, slot in enumerate(taken.slots):
            item = groups.get(slot)
            keys = pa.concat_arrays([pa.array([], pa.string()), *taken.keys_of(code)])
            found = np.zeros(len(keys), dtype=bool) if item is None else stored.marks(attempt.ctx.storage, item, keys)
            _refuse(attempt.prepared.duplicates, keys, found)
            at = 0
            for batch in taken.rows.read(code):
                kept = batch.filter(pa.array(~found[at : at + len(batch)]))
                result.rows.add(kept, np.full(len(kept), code, dtype=np.int32))
                at += len(batch)
    return result


def _refuse(policy: DuplicatePolicy, keys: pa.Array, stored_marks: Marks) -> None:
    if policy is DuplicatePolicy.FAIL and stored_marks.any():
        stored = keys.filter(pa.array(stored_marks))
        raise duplicates_error(stored[0].as_py(), len(stored.unique()))
