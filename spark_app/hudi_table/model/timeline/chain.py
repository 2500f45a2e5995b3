"""Entries of the decision chain `.hoodie/.txn/<n>.json` (20 digits, one table-wide sequence).

The chain orders all decisions of our writers: see `docs/explanation/commit-protocol.md`. Hudi
ignores the folder (measured through reads, writes, cleans and archiving).
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum

from hudi_table.model.digits import is_digits
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import CHAIN
from hudi_table.model.timeline.instants import Instant, next_instant_time, parse_instant
from hudi_table.model.timeline.seals import sealed, unsealed

SEQUENCE_DIGITS = 20


class Kind(StrEnum):
    """What an entry decides about its instant."""

    COMMIT = "commit"
    PLAN = "plan"
    ABORT = "abort"


_CONFLICT_KEYS = "touches"
_JSON = b"{"
"""With which the body of a commit begins that is text; base64 has no such letter."""
_JSON_KEYS = {"conflict_keys": _CONFLICT_KEYS}


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """One decision.

    `conflict_keys` are `touches` in the file; `name` and `body` are the timeline file (under
    `.hoodie/`) that the decision creates, empty for an abort; `body` is the text of a commit that
    is JSON, and of a plan or a commit whose file is binary, in base64; `max_instant` is the running
    maximum of all instants in the chain.
    """

    kind: Kind
    instant: str
    attempt: str
    conflict_keys: tuple[str, ...] = ()
    name: str = ""
    body: str = ""
    max_instant: str = ""
    batch: str = ""

    @classmethod
    def of(
        cls, kind: Kind, instant: str, attempt: str, conflict_keys: tuple[str, ...], name: str, data: bytes, **more: str
    ) -> ChainEntry:
        """The entry of a decision that creates `name` with the bytes `data`."""
        is_text = kind is not Kind.PLAN and data[:1] in (b"", _JSON)
        text = data.decode() if is_text else base64.b64encode(data).decode()
        return cls(kind, instant, attempt, conflict_keys, name, text, **more)

    @property
    def is_plan_of_instant(self) -> bool:
        """Whether it is a plan that the instant itself has on the timeline. A savepoint's is that
        of another instant, and the file of a change of version is none of an instant: their own was
        drawn for the planner's claim alone, so another may draw it again, and the entry says
        nothing of that one."""
        if self.kind is not Kind.PLAN or not self.name.startswith(f"{self.instant}."):
            return False
        return parse_instant(self.name) is not None

    def is_of(self, instant: Instant) -> bool:
        """Whether it decides this instant, and not that of another action for which a planner had
        drawn the same time."""
        decided = parse_instant(self.name)
        return decided is None or decided.grouped_action is instant.grouped_action

    @property
    def data(self) -> bytes:
        """The bytes of the file that the decision creates."""
        is_text = self.kind is not Kind.PLAN and self.body[:1] in ("", _JSON.decode())
        return self.body.encode() if is_text else base64.b64decode(self.body)

    def to_json(self) -> bytes:
        """UTF-8 JSON of this entry."""
        document = {_JSON_KEYS.get(name, name): value for name, value in asdict(self).items()}
        return sealed(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode())

    @classmethod
    def from_json(cls, data: bytes) -> ChainEntry:
        """Parse an entry, whose instants others can come after. Raises ValueError for anything
        else."""
        raw = parse_json(unsealed(data))
        if not isinstance(raw, dict) or not isinstance(raw.get(_CONFLICT_KEYS), list):
            raise ValueError("it is no entry of a decision chain")
        names = {_JSON_KEYS.get(field.name, field.name) for field in fields(cls)}
        if unknown := sorted(raw.keys() - names):
            raise ValueError(
                f"it has {', '.join(map(repr, unknown))}, which this release does not know: a newer release wrote it, or it was changed"
            )
        if missing := sorted({"kind", "instant", "attempt"} - raw.keys()):
            raise ValueError(f"it lacks {', '.join(map(repr, missing))}")
        keys = raw.pop(_CONFLICT_KEYS)
        texts = [*keys, *raw.values()]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("a value of it is no text")
        entry = cls(**{**raw, "kind": Kind(raw["kind"]), "conflict_keys": tuple(keys)})
        for time in (entry.instant, entry.max_instant):
            if time:
                next_instant_time(time[:17])
        return entry


def entry_path(sequence: int) -> str:
    """Path of entry number `sequence`, relative to the base path."""
    return f"{CHAIN}/{sequence:0{SEQUENCE_DIGITS}d}.json"


def sequence_of(path: str) -> int | None:
    """The number of a chain entry's path, or None for another file."""
    stem, _, suffix = path.rpartition("/")[2].partition(".")
    return int(stem) if suffix == "json" and len(stem) == SEQUENCE_DIGITS and is_digits(stem) else None
