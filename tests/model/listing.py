"""The metadata table in the store of the model, and what its readers see: one partition, `files`,
of one file group.

Names: ('mp',) the properties -> 'inflight' or 'ready', ('mt', T) the delta of T on the metadata
table's timeline, ('ml', base, T) its log on the slice of `base` -> data files, ('mb', base) a base
file -> data files, ('mc', base) the compaction or building that made it is completed, ('mk', C)
plan of a compaction -> (base, logs), ('mi', B) plan of a building, ('md', B) the building is
completed; of data files that a clean deleted, logs hold ('gone', file); ('mn', K) a clean is
inflight, ('xc', K) it is completed.

Where slices go by completion (section 2.4) the value of ('mt', T) is twice the number of the
moment at which the delta completed, and one, so that no base begins at it; its log is ('ml', 0, T).
`placed` puts it where a reader does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.model.store import Key, Store, timeline

READY, INFLIGHT, DELETED = "ready", "inflight", "deleted"
PLANS = ("mk", "mi")
"""Plans that move the file group."""


def moves(entry: Any) -> bool:
    """Whether a chain entry is a plan behind which deltas are to be written again."""
    return entry is not None and entry[0] == "P" and entry[-1] in PLANS


def compacting(store: Store) -> int:
    """The pending compaction, or 0."""
    return max((k[1] for k in store if k[0] == "mk" and ("mc", k[1]) not in store), default=0)


def building(store: Store) -> int:
    """The pending building, or 0."""
    return max((k[1] for k in store if k[0] == "mi" and ("md", k[1]) not in store), default=0)


def dropping(store: Store) -> bool:
    """Whether a note of a drop is there, or the metadata table's own properties are gone: then
    there is no metadata table."""
    return any(k[0] == "mv" for k in store) or store.get(("mo",)) == DELETED


def newest_base(store: Store) -> int | None:
    """The base of the newest slice that is completed, or None."""
    return max((k[1] for k in store if k[0] == "mc"), default=None)


def placed(store: Store) -> Store:
    """The store with each log on the newest slice that began before its delta completed, where
    deltas tell that; logs of deltas that are not published are seen by nobody."""
    if all(value == 1 for key, value in store.items() if key[0] == "mt"):
        return store
    bases = [key[1] for key in store if key[0] in ("mb", "mk")]
    found = {key: value for key, value in store.items() if key[0] != "ml" or not key[2]}
    for key, value in store.items():
        moment = store.get(("mt", key[2]), 0) if key[0] == "ml" and key[2] else 0
        if moment:
            found["ml", max((base for base in bases if 2 * base <= moment), default=0), key[2]] = value
    return found


def place(store: Store) -> int | None:
    """The slice to which a delta's log goes; None without a file group, or where it is being
    dropped."""
    if dropping(store):
        return None
    return compacting(store) or max((k[1] for k in store if k[0] in ("ml", "mb")), default=None)


def going(store: Store) -> bool:
    """Whether a clean is pending."""
    return any(k[0] == "x" for k in store)


def cleaned_since(store: Store, instant: int) -> bool:
    """Whether the timeline shows a completed clean at this instant, or a newer one: then the
    instant is dropped."""
    return any(k[0] == "xc" and k[1] >= instant for k in store)


def committed_files(store: Store) -> set[Key]:
    """The files that a reader of folders counts."""
    completed = set(timeline(store)[0])
    return {k for k in store if k[0] == "d" and k[2] in completed}


def listed_files(store: Store) -> set[Key] | None:
    """The files of the entries that count for a reader of the metadata table: of logs those whose
    instant is completed on the data table's timeline. None where it is not ready, and the reader
    lists folders."""
    base = newest_base(store)
    if store.get(("mp",)) != READY or base is None or dropping(store):
        return None
    if ("mb", base) not in store and ("ml", base, 0) not in store:
        # Its instant alone, put late: the group is not there.
        return None
    completed, store = counted(store), placed(store)
    logs = [k for k in store if k[0] == "ml" and k[1] >= base and k[2] in completed and ("mt", k[2]) in store]
    return merged(store, base, logs)


def counted(store: Store) -> set[int]:
    """The instants whose blocks count: commits and cleans that are completed on the data table's
    timeline."""
    return set(timeline(store)[0]) | {k[1] for k in store if k[0] == "xc"}


def merged(store: Store, base: int, logs: Iterable[Key]) -> set[Key]:
    """The files of a base file and logs."""
    found = set(store.get(("mb", base), ())).union(*(store.get(log, ()) for log in logs))
    return {file for file in found if file[0] != "gone" and ("gone", file) not in found}


def listing_violated(store: Store) -> str | None:
    """I9, or None."""
    if ("mp",) not in store or going(store):
        # While a clean is pending every reader lists folders.
        return None
    listed, committed = listed_files(store), committed_files(store)
    if listed is None or listed == committed:
        return None
    if committed - listed:
        return f"I9 the metadata table lacks {sorted(committed - listed)}"
    return f"I9 the metadata table lists {sorted(listed - committed)}, which no commit has"
