"""The key state: a global index that keeps where each key is in memory-mapped files of the process,
as Flink's writers of Hudi keep it in the state of their operators.

The first write of a process reads the key columns of the table once, or takes over what a process
before it left in the folder that `hoodie.lakeops.key.state.folder` names (`saved.py`). From then on
a write takes the snapshot's list of files, and reads the keys of those alone that others wrote
since: commits of other writers, compaction, clustering, restores. What this process writes itself
it knows without reading. So the answers are those of a global simple index, whatever happened to
the table or to the state.

Two options, as Flink has them, leave keys out, and say so:

- `index.partition.regex`: only file groups of partitions whose whole path matches are kept.
- `index.state.ttl`: a file group to which nobody wrote for so many days is not kept.

A key of a group that is not kept is found by rows of its own partition alone, in the files. A row
that moves such a key to another partition leaves the stored one where it is.

On Spark tasks share no state: there keys are searched in the files, all of them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from hudi_table.errors import InvalidOptionError, ObjectNotFoundError
from hudi_table.index.base import FileSearch, InTasks, Keys, Lookup, Routed, Written
from hudi_table.index.keystate.marks import Marks, Words
from hudi_table.index.keystate.saved import Past, save, settle
from hudi_table.index.keystate.state import KeyState, Learnt, held_state, numbered
from hudi_table.index.lookup import LookedUp, search_slice, searches
from hudi_table.index.routing import Answer, Numbers, joined_pairs, no_pairs
from hudi_table.index.simple import RangesOfFooters
from hudi_table.index.slice_keys import files_of, keys_in
from hudi_table.model.names import RECORD_KEY
from hudi_table.model.options.known import option_text
from hudi_table.model.options.values import number
from hudi_table.model.table.config import IndexSpec, TableConfig
from hudi_table.model.table.index_properties import STATE_FOLDER, STATE_PARTITIONS, STATE_TTL
from hudi_table.model.timeline.instants import format_instant_time
from hudi_table.table.rows.merge import ALWAYS_DELETE
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_now
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice

DAYS_MAX = 36_500
LEARNT_KEYS_AT_ONCE = 1_000_000
_EVERY = ".*"
_log = logging.getLogger("hudi_table")


@dataclass(frozen=True, slots=True)
class KeyStateIndex(LookedUp):
    """See above. `since`: groups without a file of this instant or a later one are not kept, '' for
    none such. `folder`: where the state outlives the process, '' for nowhere; `past` is that with
    what it must fit."""

    is_global: bool = True
    partitions: str = _EVERY
    ttl: timedelta = timedelta()
    since: str = ""
    folder: str = ""
    past: Past | None = None

    @classmethod
    def of(cls, config: TableConfig, spec: IndexSpec, options: Mapping[str, str]) -> KeyStateIndex:
        """The index of a table. Raises InvalidOptionError for a pattern, a time or a folder that is
        none."""
        del config
        pattern = option_text(options, STATE_PARTITIONS) or _EVERY
        try:
            re.compile(pattern)
        except re.error as error:
            raise InvalidOptionError(
                f"option {STATE_PARTITIONS}={pattern} is no regular expression: {error}; mend it, or leave it out"
            ) from None
        days = number(STATE_TTL, option_text(options, STATE_TTL), 0)
        if days > DAYS_MAX:
            raise InvalidOptionError(
                f"option {STATE_TTL}={days:g} is more than {DAYS_MAX} days: leave it out to keep all keys"
            )
        folder = option_text(options, STATE_FOLDER)
        if folder and not Path(folder).is_absolute():
            raise InvalidOptionError(
                f"option {STATE_FOLDER}={folder} is no absolute path: name a folder of a disk that outlives the process, such as /data/state"
            )
        return cls(spec.type.is_global, pattern, timedelta(days=days), folder=folder)

    def as_of(self, ctx: TableContext, timeline: Timeline) -> KeyStateIndex:
        """With what is too old now, and what a state must fit that is taken over."""
        since = format_instant_time(local_now(ctx) - self.ttl) if self.ttl else ""
        return replace(self, since=since, past=Past.of(self.folder, ctx, timeline) if self.folder else None)

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """Rows of known keys to their group, others to their partition."""
        slices = [] if lookup is None else list(lookup.slices)
        assert lookup is not None
        kept = [self._keeps(item) for item in slices]
        found, known = self._known(keys, lookup, [item for item, keep in zip(slices, kept, strict=True) if keep])
        codes = np.flatnonzero(kept)
        left = sorted(set(range(len(slices))) - {int(codes[place]) for place in known})
        pairs = [(found[0], codes[found[1]] if len(codes) else found[1])]
        pairs += _in_files(keys, lookup, slices, [(code, kept[code]) for code in left])
        return Answer(keys, lookup, slices).routed(*joined_pairs(pairs), everywhere=True)

    def in_tasks(self, partitions: Sequence[str]) -> InTasks:
        """Tasks search the files."""
        del partitions
        return InTasks(replace(self, past=None), FileSearch())

    def wrote(self, storage: Storage, written: Callable[[], Iterable[Written]]) -> None:
        """Take in what this process has committed, where the state knows the slices of before."""
        try:
            with held_state(storage.base_path) as state:
                learnt = []
                for item in written():
                    if state.folder is not None:
                        state.commits.add(item.instant)
                    if _is_next(state, item):
                        learnt.append(_learnt_of(item, state.secret))
                state.learn(learnt)
                _save(state, storage)
        except OSError as error:
            _warn(storage, error)

    def _keeps(self, item: FileSlice) -> bool:
        if self.partitions != _EVERY and not re.fullmatch(self.partitions, item.partition):
            return False
        if not self.since or any(log.instant is None for log in item.logs):
            # A log of another engine does not tell when it was written.
            return True
        newest = [item.instant, *(log.instant for log in item.logs if log.instant)]
        return max(newest) >= self.since

    def _known(
        self, keys: Keys, lookup: Lookup, slices: Sequence[FileSlice]
    ) -> tuple[tuple[Numbers, Numbers], frozenset[int]]:
        """((rows, positions of slices) of the keys that the state has, positions of the slices that
        it has)."""
        try:
            with held_state(lookup.storage.base_path) as state:
                files = [((item.partition, item.file_id), files_of(item)) for item in slices]
                if self.past is not None:
                    _settle(state, lookup.storage, self.past)
                state.keep([place for place, _ in files])
                _catch_up(state, lookup, slices)
                code_of = numbered(state, files)
                hits = state.find(Marks.of(keys.record_keys, state.secret))
        except OSError as error:
            _warn(lookup.storage, error)
            return no_pairs(), frozenset()
        order = np.array(sorted(code_of), dtype=np.int64)
        if not len(order) or not len(hits.rows):
            return no_pairs(), frozenset(code_of.values())
        codes = np.array([code_of[number] for number in order.tolist()], dtype=np.int64)
        at = np.minimum(np.searchsorted(order, hits.numbers), len(order) - 1)
        counts = order[at] == hits.numbers
        return (hits.rows[counts], codes[at[counts]]), frozenset(code_of.values())


def _catch_up(state: KeyState, lookup: Lookup, slices: Sequence[FileSlice]) -> None:
    """Read the keys of the slices that the state does not know."""

    def learnt(item: FileSlice) -> Learnt | None:
        known = state.known.get((item.partition, item.file_id))
        return _learnt(lookup, item, known.files if known is not None else (), state.secret)

    stale = [item for item in slices if _differs(state, item)]
    waiting: list[Learnt] = []
    size = count = 0
    for found in lookup.engine.imap(learnt, stale):
        if found is not None:
            waiting.append(found)
            size, count = size + len(found.added), count + len(found.added)
        if size >= LEARNT_KEYS_AT_ONCE:
            state.learn(waiting)
            _save(state, lookup.storage)
            waiting, size = [], 0
    if stale:
        state.learn(waiting)
        _save(state, lookup.storage)
        _log.debug("the key state read %d keys of %d of %d file groups", count, len(stale), len(slices))


def _differs(state: KeyState, item: FileSlice) -> bool:
    known = state.known.get((item.partition, item.file_id))
    return known is None or known.files != files_of(item)


def _learnt(lookup: Lookup, item: FileSlice, before: tuple[str, ...], secret: Words) -> Learnt | None:
    """The way from the slice that is known to this one; None if its files went meanwhile."""
    place, after = (item.partition, item.file_id), files_of(item)
    grows = bool(before) and after[: len(before)] == before
    try:
        added = Marks.of(keys_in(lookup, item.partition, after[len(before) :] if grows else after), secret)
    except ObjectNotFoundError:
        return None
    return Learnt(place, before, after, added, added.take(np.empty(0, np.int64)) if grows else None)


def _is_next(state: KeyState, item: Written) -> bool:
    known = state.known.get((item.partition, item.file_id))
    return (known.files if known is not None else ()) == _before(item)


def _before(item: Written) -> tuple[str, ...]:
    return () if item.before is None else files_of(item.before)


def _learnt_of(item: Written, secret: Words) -> Learnt:
    """What a task of this process changed. Rows that a merge drops count as if they were there."""
    before = _before(item)
    added, removed = list[Marks](), list[Marks]()
    for batch in item.rows:
        keys = batch.column(RECORD_KEY)
        deleted = np.zeros(len(batch), bool)
        if ALWAYS_DELETE in batch.schema.names:
            deleted = batch.column(ALWAYS_DELETE).fill_null(False).to_numpy(zero_copy_only=False)
        marks = Marks.of(keys, secret)
        added.append(marks.take(~deleted))
        removed.append(marks.take(deleted))
    after = (*(before or ("",)), item.file) if item.to_log else (item.file,)
    return Learnt((item.partition, item.file_id), before, after, Marks.joined(added), Marks.joined(removed))


def _in_files(
    keys: Keys, lookup: Lookup, slices: Sequence[FileSlice], left: Sequence[tuple[int, bool]]
) -> list[tuple[Numbers, Numbers]]:
    """(rows, positions of slices) of keys in slices that the state does not have: of all rows where
    it should have them, else of those of the slice's own partition."""
    if not left:
        return []
    everywhere = searches(keys, (), is_global=True)[""] if any(kept for _, kept in left) else None
    of_partition = searches(keys, [slices[code] for code, kept in left if not kept], is_global=False)

    def search(part: tuple[int, bool]) -> tuple[Numbers, Numbers]:
        code, kept = part
        mine = everywhere if kept else of_partition.get(slices[code].partition)
        if mine is None:
            return no_pairs()
        found = np.unique(search_slice(lookup, slices[code], mine, RangesOfFooters(), None).rows)
        return found, np.full(len(found), code, dtype=np.int64)

    return list(lookup.engine.imap(search, left))


def _settle(state: KeyState, storage: Storage, past: Past) -> None:
    try:
        settle(state, past)
    except OSError as error:
        _leave(state, storage, error)


def _save(state: KeyState, storage: Storage) -> None:
    try:
        save(state)
    except OSError as error:
        _leave(state, storage, error)


def _leave(state: KeyState, storage: Storage, error: OSError) -> None:
    """Go on without the folder; the next look-up tries to have it again."""
    state.leave()
    _log.warning(
        "the key state of %s is not kept for a successor, which reads the keys anew: %s; see to the folder of %s",
        storage.base_path,
        error,
        STATE_FOLDER,
    )


def _warn(storage: Storage, error: OSError) -> None:
    _log.warning(
        "the key state of %s is lost, the files are asked and it is read anew: %s; free space in the folder for temporary files",
        storage.base_path,
        error,
    )
