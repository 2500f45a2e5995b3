"""Entries of the decision chain `.hoodie/.txn/<n>.json` (20 digits, one table-wide sequence).

The chain orders all decisions of our writers: see `docs/commit-protocol.md`. Hudi ignores the folder
(measured through reads, writes, cleans and archiving).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from hudi_table.model.names import CHAIN

SEQUENCE_DIGITS = 20


class Kind(StrEnum):
    """What an entry decides about its instant."""

    COMMIT = "commit"
    PLAN = "plan"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """One decision.

    `touches` are conflict keys; `name` and `body` are the timeline file (under `.hoodie/`) that the decision
    creates, empty for an abort; `max_instant` is the running maximum of all instants in the chain.
    """

    kind: Kind
    instant: str
    attempt: str
    touches: tuple[str, ...] = ()
    name: str = ""
    body: str = ""
    max_instant: str = ""
    batch: str = ""

    def to_json(self) -> bytes:
        """UTF-8 JSON of this entry."""
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, data: bytes) -> ChainEntry:
        """Parse an entry. Raises ValueError (or KeyError, TypeError) for anything else."""
        raw = json.loads(data)
        return cls(**{**raw, "kind": Kind(raw["kind"]), "touches": tuple(raw["touches"])})


def entry_path(sequence: int) -> str:
    """Path of entry number `sequence`, relative to the base path."""
    return f"{CHAIN}/{sequence:0{SEQUENCE_DIGITS}d}.json"


def sequence_of(path: str) -> int | None:
    """The number of a chain entry's path, or None for another file."""
    stem, _, suffix = path.rpartition("/")[2].partition(".")
    return int(stem) if suffix == "json" and len(stem) == SEQUENCE_DIGITS and stem.isdigit() else None


def touch_table() -> str:
    """Conflict key of the whole table: it meets every other key."""
    return "table||"


def touch_partition(partition: str) -> str:
    """Conflict key of a whole partition: it meets every key of that partition."""
    return f"partition|{partition}|"


def touch_bucket(partition: str, bucket: int) -> str:
    """Conflict key of a bucket: two first inserts into it create different file ids, so ids would not do."""
    return f"bucket|{partition}|{bucket}"


def touch_file(partition: str, file_id: str) -> str:
    """Conflict key of a file group."""
    return f"file|{partition}|{file_id}"


def touch_key(partition: str, key_hash: int) -> str:
    """Conflict key of an inserted record key, by its 64-bit hash."""
    return f"key|{partition}|{key_hash & 0xFFFFFFFFFFFFFFFF:016x}"


def touches_meet(ours: Iterable[str], theirs: Iterable[str]) -> str | None:
    """A conflict key of ours that meets one of theirs, or None."""
    mine, other = set(ours), set(theirs)
    if not mine or not other:
        return None
    shared = mine & other
    if shared:
        return min(shared)
    for wide, narrow in ((mine, other), (other, mine)):
        if touch_table() in wide:
            return touch_table()
        whole = {key.split("|", 2)[1] for key in wide if key.startswith("partition|")}
        hit = whole & {key.split("|", 2)[1] for key in narrow}
        if hit:
            return touch_partition(min(hit))
    return None
