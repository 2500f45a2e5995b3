"""Conflict keys: what a decision touched, as short strings, and when two decisions exclude each other.

Protocol, step 5: two commits that ran side by side may both stand only if their touches do not meet.
A bucket is named by its number, not by a file id: two first inserts into a bucket create different ids.
Tables with another index name file ids, and for inserts one 64-bit key hash per key; above `KEY_LIMIT`
keys in a partition the whole partition is named instead. Partition paths are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

KEY_LIMIT = 2_000
"""Inserted keys per partition above which a commit touches the whole partition."""

TABLE = "table"
"""Touches everything: overwriting the table, changing its schema."""


CLEANING = "cleaning"
"""What cleans, savepoints, rollbacks and restores touch, and no writer does: of two that ran side by side one plans again."""

METADATA = "metadata"
"""What building and dropping the metadata table touch: who has begun before looks again whether it has to write to it."""

_DELTA = f"{METADATA}-delta:"

_OF_DATA = ("partition:", "bucket:", "file:", "key:", "keys:")


def partition_touch(partition: str) -> str:
    """All of one partition, rows that are not there yet included."""
    return f"partition:{partition}"


def bucket_touch(partition: str, bucket: int) -> str:
    """One bucket of one partition."""
    return f"bucket:{partition}/{bucket}"


def file_touch(partition: str, file_id: str) -> str:
    """One file group that exists."""
    return f"file:{partition}/{file_id}"


def key_touch(partition: str, key_hash: int) -> str:
    """One key that was inserted, by its unsigned 64-bit hash."""
    return f"key:{partition}/{key_hash:016x}"


def keys_touch(partition: str) -> str:
    """Keys that were inserted into a partition, of which nobody knows which: another engine's commit names none."""
    return f"keys:{partition}"


def metadata_touch(partition: str, file_id: str) -> str:
    """One file group of the metadata table, which a compaction of it is about to rewrite. No commit names it: deltas of one group
    stand side by side, and who finds such a plan writes its own delta again behind it."""
    return f"{METADATA}:{partition}/{file_id}"


def metadata_delta_touch(time: str) -> str:
    """Of an entry that is no commit: the instant has written a delta to the metadata table."""
    return f"{_DELTA}{time}"


def moves_metadata(touches: Iterable[str]) -> bool:
    """Whether an entry that is no commit changes what a compaction of the metadata table has planned on."""
    return any(touch == METADATA or touch.startswith((f"{METADATA}:", _DELTA)) for touch in touches)


GLOBAL_KEYS = "\x00"
"""Stands for the partition in the key touches of a global index, whose keys are unique across partitions."""


def ring_touch(partition: str) -> str:
    """The hash ring of a partition: it names no rows, so of two plans that change a ring one is made again, and writers go on."""
    return f"ring:{partition}"


def meet(mine: Iterable[str], theirs: Iterable[str]) -> bool:
    """Whether two commits exclude each other."""
    left, right = set(mine), set(theirs)
    if not left or not right:
        return False
    if left & right:
        return True
    left, right = _of_data(left), _of_data(right)
    if not left or not right:
        return False
    return TABLE in left or TABLE in right or _one_way(left, right) or _one_way(right, left)


def _of_data(touches: set[str]) -> set[str]:
    """Without those that name no rows: they meet nothing but themselves."""
    return {touch for touch in touches if touch == TABLE or touch.startswith(_OF_DATA)}


def _one_way(left: set[str], right: set[str]) -> bool:
    """Whether a partition of the left meets what the right has of it, or its unknown keys the right's."""
    whole = {touch.partition(":")[2] for touch in left if touch.startswith("partition:")}
    unknown = {touch.partition(":")[2] for touch in left if touch.startswith("keys:")}
    if whole and any(_partition_of(touch) in whole for touch in right):
        return True
    return bool(unknown) and any(touch.startswith("key:") and _partition_of(touch) in unknown for touch in right)


def _partition_of(touch: str) -> str:
    kind, _, rest = touch.partition(":")
    return rest if kind in ("partition", "keys") else rest.rpartition("/")[0]
