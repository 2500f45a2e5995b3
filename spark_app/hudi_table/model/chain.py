"""Entries of the decision chain `.hoodie/.txn/<n>.json` (20 digits, one table-wide sequence).

The chain orders all decisions of our writers: see `docs/commit-protocol.md`. Hudi ignores the folder
(measured through reads, writes, cleans and archiving).
"""

from __future__ import annotations

import json
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
