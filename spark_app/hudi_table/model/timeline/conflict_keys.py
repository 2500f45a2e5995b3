"""Conflict keys: what a decision touched, as short strings, and when two decisions exclude each
other.

Protocol, step 5: two commits that ran side by side may both stand only if their conflict keys do
not meet. A bucket is named by its number, not by a file id: two first inserts into a bucket create
different ids. Who only appends to a bucket, beside others who do, names it as such. Tables with
another index name file ids, and for inserts one 64-bit key hash per key; above `KEY_LIMIT` keys in
a partition the whole partition is named instead. Partition paths are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

KEY_LIMIT = 2_000
"""Inserted keys per partition above which a commit touches the whole partition."""

TABLE = "table"
"""Touches everything: overwriting the table, changing its schema."""


CLEANING = "cleaning"
"""What cleans, savepoints, rollbacks and restores touch, and no writer does: of two that ran side
by side one plans again."""

METADATA = "metadata"
"""What building and dropping the metadata table change: who has begun before looks again whether it
has to write to it."""

_DELTA = f"{METADATA}-delta:"

_APPENDS, _BEGINS, _REPLACES = "append:", "begin:", "replace:"
_OF_DATA = ("partition:", "bucket:", _APPENDS, _BEGINS, _REPLACES, "file:", "key:", "keys:")


def partition_conflict_key(partition: str) -> str:
    """All of one partition, rows that are not there yet included."""
    return f"partition:{partition}"


def begun_conflict_key(partition: str) -> str:
    """File groups that are begun in a partition, of keys that nobody has looked for, as a bulk
    insert does: it meets who replaces the partition, and nobody else."""
    return f"{_BEGINS}{partition}"


def replaced_conflict_key(partition: str) -> str:
    """All rows of one partition are replaced: beside its `partition_conflict_key`."""
    return f"{_REPLACES}{partition}"


def bucket_conflict_key(partition: str, bucket: int) -> str:
    """One bucket of one partition."""
    return f"bucket:{partition}/{bucket}"


def append_conflict_key(partition: str, bucket: int) -> str:
    """One bucket of one partition, to which logs are appended: it meets who touches the bucket, and
    not who appends too."""
    return f"{_APPENDS}{partition}/{bucket}"


def appends_only(conflict_keys: Iterable[str]) -> bool:
    """Whether rows are appended to buckets, and nothing else of the table's rows is touched."""
    data = _of_data(set(conflict_keys))
    return bool(data) and all(key.startswith(_APPENDS) for key in data)


def file_conflict_key(partition: str, file_id: str) -> str:
    """One file group that exists."""
    return f"file:{partition}/{file_id}"


def record_conflict_key(partition: str, key_hash: int) -> str:
    """One key that was inserted, by its unsigned 64-bit hash."""
    return f"key:{partition}/{key_hash:016x}"


def record_conflict_keys(partition: str) -> str:
    """Keys that were inserted into a partition, of which nobody knows which: another engine's
    commit names none."""
    return f"keys:{partition}"


def metadata_conflict_key(partition: str, file_id: str) -> str:
    """One file group of the metadata table, which a compaction of it is about to rewrite. No commit
    names it: deltas of one group stand side by side, and who finds such a plan writes its own delta
    again behind it."""
    return f"{METADATA}:{partition}/{file_id}"


def metadata_delta_conflict_key(time: str) -> str:
    """Of an entry that is no commit: the instant has written a delta to the metadata table."""
    return f"{_DELTA}{time}"


def moves_metadata(conflict_keys: Iterable[str]) -> bool:
    """Whether an entry that is no commit changes what a compaction of the metadata table has
    planned on."""
    return any(key == METADATA or key.startswith((f"{METADATA}:", _DELTA)) for key in conflict_keys)


GLOBAL_KEYS = "\x00"
"""Stands for the partition in the record conflict keys of a global index, whose keys are unique
across partitions."""


def ring_conflict_key(partition: str) -> str:
    """The hash ring of a partition: it names no rows, so of two plans that change a ring one is
    made again, and writers go on."""
    return f"ring:{partition}"


def meet(mine: Iterable[str], theirs: Iterable[str]) -> bool:
    """Whether two commits exclude each other."""
    left, right = set(mine), set(theirs)
    if not left or not right:
        return False
    if any(not key.startswith((_APPENDS, _BEGINS)) for key in left & right):
        return True
    left, right = _of_data(left), _of_data(right)
    if not left or not right:
        return False
    if _buckets(left) & right or _buckets(right) & left:
        return True
    return TABLE in left or TABLE in right or _one_way(left, right) or _one_way(right, left)


def _buckets(conflict_keys: set[str]) -> set[str]:
    """The buckets that are appended to, as who touches them names them."""
    return {f"bucket:{key.removeprefix(_APPENDS)}" for key in conflict_keys if key.startswith(_APPENDS)}


def _of_data(conflict_keys: set[str]) -> set[str]:
    """Without those that name no rows: they meet nothing but themselves."""
    return {key for key in conflict_keys if key == TABLE or key.startswith(_OF_DATA)}


def _one_way(left: set[str], right: set[str]) -> bool:
    """Whether a partition of the left meets what the right has of it, or its unknown keys the
    right's."""
    whole = {key.partition(":")[2] for key in left if key.startswith("partition:")}
    unknown = {key.partition(":")[2] for key in left if key.startswith("keys:")}
    replaced = {key.replace(_REPLACES, _BEGINS, 1) for key in left if key.startswith(_REPLACES)}
    if replaced & right:
        return True
    if whole and any(_partition_of(key) in whole for key in right if not key.startswith((_BEGINS, _REPLACES))):
        return True
    return bool(unknown) and any(key.startswith("key:") and _partition_of(key) in unknown for key in right)


def _partition_of(key: str) -> str:
    kind, _, rest = key.partition(":")
    return rest if kind in ("partition", "keys") else rest.rpartition("/")[0]
