"""The store of the model and what a listing reader sees in it.

Names are tuples: ('r', T) a writer's claim (requested and inflight), ('q', T) a planner's claim,
('c', T) completed -> (files, replaced groups, keys), ('k', T) compaction plan -> groups, ('p', T)
clustering plan -> groups, ('x', T) clean plan -> files, ('v', T) savepoint -> files, ('z', T)
restore plan -> what it takes back, ('zc', T) the restore is done, ('u', R) rollback of a failed
write -> its instant, ('m', T, i) a marker -> the file that it names, ('mx', T, file) another engine
has deleted one, ('uc', R) the rollback is done, ('d', group, T, token) base file -> mask of
operations, ('l', group, base, T) log file -> mask, ('h', n) chain entry, ('s', T, i) staged file,
('b', T) staged completed body, ('ct', T, c) a completed name with its completion time, ('lock',)
and ('de', T) lock and per-instant decision of simpler protocols; those of the metadata table:
listing.py. A mask has one bit for each operation (a write of some rows) that the file holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Key = tuple[Any, ...]
Store = dict[Key, Any]
NEVER = 99
CLAIMS = "rqkpxz"
"""What claims an instant: a writer's file, a planner's, and from its materialisation on the plan
itself."""
TABLE = "*"
"""As a conflict key: everything."""


def timeline(store: Store) -> tuple[list[int], list[int]]:
    """Completed and pending instants, each sorted."""
    completed = {k[1] for k in store if k[0] == "c"}
    pending = {k[1] for k in store if k[0] in CLAIMS and len(k) == 2} - completed - restores(store)
    return sorted(completed), sorted(pending)


def restores(store: Store) -> set[int]:
    """Instants of completed restores."""
    return {k[1] for k in store if k[0] == "zc"}


def rollbacks(store: Store) -> set[int]:
    """Instants of completed rollbacks of failed writes."""
    return {k[1] for k in store if k[0] == "uc"}


def open_rollback(store: Store, instant: int) -> int:
    """The oldest rollback of an instant that is not completed, or 0."""
    return min(
        (k[1] for k, v in store.items() if k[0] == "u" and v == instant and ("uc", k[1]) not in store), default=0
    )


def newest(store: Store) -> int:
    """The newest instant that a listing shows, a completed one or a claim of any kind."""
    return max(k[1] for k in store if k[0] in ("c", "zc", "u", "uc", *CLAIMS) and len(k) == 2)


def pending_restore(store: Store) -> int:
    """The instant of a published restore that is not completed, or 0."""
    return min((k[1] for k in store if k[0] == "z" and ("zc", k[1]) not in store), default=0)


def claimed(store: Store, instant: int) -> bool:
    """Whether any claim of the instant is there."""
    return any((kind, instant) in store for kind in CLAIMS)


def start_of(store: Store) -> int:
    """First instant of the completed and pending-compaction timeline, the border that Hudi's file
    groups see."""
    return min((k[1] for k in store if k[0] in "ck" and len(k) == 2), default=NEVER)


def tail(store: Store) -> int:
    """Number of the last chain entry, 0 if there is none."""
    return max((k[1] for k in store if k[0] == "h"), default=0)


def chain_max(store: Store) -> int:
    """Greatest instant in the chain. (Real entries carry a running maximum, which trimming does not
    lower.)"""
    return max((v[1] for k, v in store.items() if k[0] == "h"), default=0)


def decided(store: Store, instant: int, upto: int | None = None) -> Any:
    """The last commit or abort entry of an instant among the entries up to number `upto`, or
    None."""
    for n in range(tail(store) if upto is None else upto, 0, -1):
        entry = store.get(("h", n))
        if entry and entry[1] == instant and entry[0] in "CA":
            return entry
    return None


def committed(store: Store, instant: int) -> Any:
    """The commit entry of an instant, or None if there is none or it was trimmed."""
    return next((v for k, v in store.items() if k[0] == "h" and v[0] == "C" and v[1] == instant), None)


def is_plan(store: Store, instant: int) -> bool:
    """Whether a plan of the instant is published."""
    return any(k[0] == "h" and v[0] == "P" and v[1] == instant for k, v in store.items())


def file_of(entry: Any) -> tuple[Key, Any]:
    """Name and content of the timeline file that an entry creates. Plans name their kind last, but
    compactions."""
    if entry[0] == "C":
        return ("c", entry[1]), entry[2]
    return (entry[5] if len(entry) > 5 else "k", entry[1]), entry[3]


def meets(entry: Any, touches: Iterable[str]) -> bool:
    """Whether what a commit or plan entry touches meets `touches`."""
    if entry[0] == "A":
        return False
    theirs, ours = set(entry[3 if entry[0] == "C" else 2]), set(touches)
    return bool(theirs & ours) or TABLE in theirs or TABLE in ours


def taken_back(store: Store) -> set[int]:
    """Instants that restores take back."""
    return {instant for k, v in store.items() if k[0] in ("z", "zc") for instant in v[0]}


def undone(store: Store, *, done: bool = False) -> int:
    """Mask of the operations that restores take back, or have taken back."""
    mask = 0
    for key, value in store.items():
        if key[0] == "zc" or (not done and key[0] == "z"):
            mask |= value[1]
        elif not done and key[0] == "h" and value[0] == "P" and value[-1] == "z":
            mask |= value[3][1]
    return mask


def files_of(store: Store, instant: int) -> list[Key]:
    """Data files of one instant."""
    found = (k for k in store if (k[0] == "d" and k[2] == instant) or (k[0] == "l" and k[3] == instant))
    return sorted(found, key=str)


def view(
    store: Store, completed: Iterable[int] | None = None, start: int | None = None, files: Store | None = None
) -> dict[str, int]:
    """{group: mask} as a listing reader sees it that knows only Hudi's timeline rules.

    `completed`, `start` and `files` replace what the store says, for a reader whose listings are of
    different moments.
    """
    known = {k[1] for k in store if k[0] == "c"} if completed is None else set(completed)
    if not known:
        # Hudi shows nothing of a table without a completed write.
        return {}
    first = start_of(store) if start is None else start
    planned = {k[1] for k in store if k[0] == "k" and k[1] not in known}
    hidden: set[str] = set()
    for key, value in store.items():
        if key[0] == "c" and key[1] in known:
            hidden.update(value[1])
    bases: dict[str, list[Key]] = {}
    logs: dict[str, list[Key]] = {}
    for key, value in (store if files is None else files).items():
        if key[0] == "d" and key[1] not in hidden and key[2] not in planned and (key[2] in known or key[2] < first):
            bases.setdefault(key[1], []).append((key[2], key[3], value))
        elif key[0] == "l" and key[1] not in hidden and (key[3] in known or key[3] < first):
            logs.setdefault(key[1], []).append((key[2], key[3], value))
    result = {}
    for group in set(bases) | set(logs):
        mask = _merged(max(bases.get(group, [(0, 0, 0)])), logs.get(group, []), planned)
        if mask:
            result[group] = mask
    return result


def _merged(base: Key, logs: list[Key], planned: set[int]) -> int:
    instant, _, mask = base
    for on, _, _ in logs:
        if on > instant and on not in planned and instant:
            # A slice of logs alone that no pending compaction explains hides the older slice.
            instant, mask = on, 0
    for on, _, operation in logs:
        if on >= instant:
            mask |= operation
    return int(mask)


def bases_in_view(store: Store, groups: Iterable[str]) -> tuple[tuple[int, int], ...]:
    """(instant, mask) of the newest visible base file of each group."""
    completed, start = set(timeline(store)[0]), start_of(store)
    return tuple(
        max(
            ((k[2], v) for k, v in store.items() if k[0] == "d" and k[1] == g and (k[2] in completed or k[2] < start)),
            default=(0, 0),
        )
        for g in groups
    )


def apply_request(store: Store, request: Key) -> bool:
    """Apply a request that was in flight to `store`; False if its condition refuses it."""
    condition, name, content = request
    if condition in ("absent", "copy-absent") and name in store:
        return False
    if condition in ("copy", "copy-absent"):
        if content not in store:
            return False
        content = store[content]
    if name[0] == "ct":
        store[("c", name[1])], content = content, 1
    store[name] = content
    return True
