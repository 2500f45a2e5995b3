"""An index in an external store of keys, such as a database: one lookup finds a key, whatever the
size of the table.

The store is a copy of what the files say, and never more: it holds for each file group the keys of
one slice, and beside them the names of that slice's files. A write asks the store and the
timeline's snapshot, and takes

- what the store has of a group whose recorded slice *is* the snapshot's, file by file;
- the keys of every other group of the snapshot from its files, as the simple index does.

So its answers are those of the files whatever the store holds, and when or whether it was last
told:

- Only slices of completed commits are in a snapshot, so entries of a write that fails or is rolled
  back never count.
- The store learns after the decision, when the commit stands (`learn`). A process that dies at any
  call before, or in the middle, leaves a store that knows the slices of before: the groups that
  were written are read from their files by the next write, which also records them.
- The same holds of every commit that nobody told the store of: of other engines, of clustering and
  compaction, of a restore.
- A slice and its keys are recorded in one transaction, and only if the store still has the slice
  that the difference was made from. Two processes that record at once cannot mix their entries; one
  that is late is left out.
- A reader in one transaction sees names and keys of one state.

Entries may be too many (keys of a log whose write failed): such a key is sent to a group that holds
no row of it, which becomes an insert there, or a delete of nothing. Too few they cannot be.

If the store does not answer, a write that needs it fails before it has written a file. After the
commit a failure is logged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import InvalidOptionError, ObjectNotFoundError
from hudi_table.index.base import Index, Keys, Lookup, Routed
from hudi_table.index.custom import CustomIndex
from hudi_table.index.keystore.postgres import open_postgres
from hudi_table.index.keystore.store import Change, KeyStore, Numbers, Place, Recorded
from hudi_table.index.routing import Answer, joined_pairs, no_pairs
from hudi_table.index.slice_keys import files_of, keys_in
from hudi_table.model.options.values import boolean
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.index_properties import CONNECTION
from hudi_table.table.view.file_system_view import FileSlice

RECORDED_KEYS_AT_ONCE = 500_000
RECORDED_GROUPS_AT_ONCE = 500
OpenStore = Callable[[str, str, str], AbstractContextManager[KeyStore]]


def postgres_index(_: TableConfig, settings: Mapping[str, str]) -> ExternalIndex:
    """The index `postgres`. Settings: `global` (true or false), `connection` (name of an
    environment variable with a libpq connection string; a secret, so it is never stored),
    `namespace` (what the table is called in the store; its location)."""
    known = {"global", "connection", "namespace"}
    unknown = sorted(settings.keys() - known)
    if unknown:
        raise InvalidOptionError(f"the index postgres has no setting {unknown[0]!r}; it has {', '.join(sorted(known))}")
    everywhere = boolean("global", settings.get("global", "false"))
    variable = settings.get("connection", CONNECTION)
    return ExternalIndex(everywhere, open_postgres, variable, settings.get("namespace", ""))


@dataclass(frozen=True, slots=True)
class ExternalIndex:
    """See above. `open_store(connection, namespace, secret)`: `connection` is the name of the
    environment variable that holds the secret, which is "" but in a task: an executor has no
    credentials of its own."""

    is_global: bool
    open_store: OpenStore
    connection: str
    namespace: str = ""
    secret: str = field(default="", repr=False)

    def for_tasks(self) -> ExternalIndex:
        """With what a task needs to open the store; it crosses with the plan, as the credentials of
        the table's storage do."""
        return replace(self, secret=os.environ.get(self.connection, ""))

    def store(self, lookup: Lookup) -> AbstractContextManager[KeyStore]:
        """A connection of its own, which the caller closes."""
        return self.open_store(self.connection, self.namespace or lookup.storage.base_path, self.secret)

    def route(self, keys: Keys, lookup: Lookup) -> Routed:
        """Rows of known keys to their group, others to their partition."""
        partitions = None if self.is_global else set(keys.partition_paths)
        slices = [item for item in lookup.slices if partitions is None or item.partition in partitions]
        with self.store(lookup) as store:
            recorded = store.recorded(None if partitions is None else sorted(partitions))
            known = _known(slices, recorded)
            rows, numbers = store.find(keys.record_keys) if known else no_pairs()
        hits = [_of_known(rows, numbers, known)]
        unknown = sorted(set(range(len(slices))) - set(known.values()))

        def search(code: int) -> tuple[Numbers, Numbers]:
            return _in_files(lookup, slices[code], code, keys, everywhere=self.is_global)

        hits += lookup.engine.imap(search, unknown)
        return Answer(keys, lookup, slices).routed(*joined_pairs(hits), everywhere=self.is_global)

    def learn(self, lookup: Lookup) -> None:
        """Record the slices that the store does not have, forget the groups that are no more."""
        with self.store(lookup) as store:
            recorded = store.recorded()
            self._record(store, lookup, recorded)
            present = {(item.partition, item.file_id) for item in lookup.slices}
            gone = [known.number for place, known in recorded.items() if place not in present]
            if gone:
                store.forget(gone)

    def rebuild(self, lookup: Lookup) -> None:
        """Forget the table, then record all of it."""
        with self.store(lookup) as store:
            store.forget([known.number for known in store.recorded().values()])
        self.learn(lookup)

    def _record(self, store: KeyStore, lookup: Lookup, recorded: Mapping[Place, Recorded]) -> None:
        def changed(item: FileSlice) -> Change | None:
            known = recorded.get((item.partition, item.file_id))
            return _change(lookup, item, known.files if known else ())

        stale = [item for item in lookup.slices if not is_recorded(item, recorded)]
        waiting: list[Change] = []
        size = 0
        for change in lookup.engine.imap(changed, stale):
            if change is not None:
                waiting.append(change)
                size += len(change.added) + len(change.removed if change.removed is not None else ())
            if size >= RECORDED_KEYS_AT_ONCE or len(waiting) >= RECORDED_GROUPS_AT_ONCE:
                store.record(waiting)
                waiting, size = [], 0
        if waiting:
            store.record(waiting)


def external_of(index: Index) -> ExternalIndex | None:
    """The external index that is behind an index of a table; None for others."""
    inner = index.inner if isinstance(index, CustomIndex) else None
    return inner if isinstance(inner, ExternalIndex) else None


def missing_keys(index: ExternalIndex, lookup: Lookup) -> Iterator[tuple[Place, int]]:
    """(place, keys) of every recorded slice whose files hold keys that the store lacks: there
    should be none."""
    with index.store(lookup) as store:
        recorded = store.recorded()
        for item in lookup.slices:
            place = (item.partition, item.file_id)
            if not is_recorded(item, recorded):
                continue
            keys = keys_in(lookup, item.partition, files_of(item))
            rows, numbers = store.find(keys)
            lacking = len(keys) - len(np.unique(rows[numbers == recorded[place].number]))
            if lacking:
                yield place, lacking


def is_recorded(item: FileSlice, recorded: Mapping[Place, Recorded]) -> bool:
    """Whether the store has exactly this slice."""
    known = recorded.get((item.partition, item.file_id))
    return known is not None and known.files == files_of(item)


def _known(slices: Sequence[FileSlice], recorded: Mapping[Place, Recorded]) -> dict[int, int]:
    """Number in the store → position of the slice, where the store has exactly that slice."""
    return {
        recorded[(item.partition, item.file_id)].number: code
        for code, item in enumerate(slices)
        if is_recorded(item, recorded)
    }


def _of_known(rows: Numbers, numbers: Numbers, known: Mapping[int, int]) -> tuple[Numbers, Numbers]:
    """(rows, positions of slices) of the pairs whose group counts."""
    if not known or not len(rows):
        return no_pairs()
    order = np.array(sorted(known), dtype=np.int64)
    codes = np.array([known[number] for number in order.tolist()], dtype=np.int64)
    at = np.minimum(np.searchsorted(order, numbers), len(order) - 1)
    counts = order[at] == numbers
    return rows[counts], codes[at[counts]]


def _in_files(lookup: Lookup, item: FileSlice, code: int, keys: Keys, *, everywhere: bool) -> tuple[Numbers, Numbers]:
    rows = np.arange(len(keys.record_keys), dtype=np.int64)
    if not everywhere:
        rows = np.flatnonzero(keys.partitions == keys.partition_paths.index(item.partition))
    wanted = keys.record_keys.take(pa.array(rows))
    stored = keys_in(lookup, item.partition, files_of(item))
    found = rows[np.asarray(pc.is_in(wanted, value_set=stored))]
    return found, np.full(len(found), code, dtype=np.int64)


def _change(lookup: Lookup, item: FileSlice, before: tuple[str, ...]) -> Change | None:
    """The way from the slice that is recorded to this one; None if the files went meanwhile."""
    place, after = (item.partition, item.file_id), files_of(item)
    try:
        if before and after[: len(before)] == before:
            return Change(place, before, after, keys_in(lookup, item.partition, after[len(before) :]), _no_keys())
        now = keys_in(lookup, item.partition, after)
        try:
            old = keys_in(lookup, item.partition, before)
        except ObjectNotFoundError:
            return Change(place, before, after, now, None)
    except ObjectNotFoundError:
        return None
    added = now.filter(pc.invert(pc.is_in(now, value_set=old)))
    removed = old.filter(pc.invert(pc.is_in(old, value_set=now)))
    return Change(place, before, after, added, removed)


def _no_keys() -> pa.Array:
    return pa.array([], pa.string())
