"""The lock object of Apache Hudi's `StorageBasedLockProvider`, and its audit log: names and bytes.

Hudi writes both with Jackson: the lock's fields in the order of its class, those of the audit log
in the order of a hash map.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hudi_table.errors import CorruptTableError
from hudi_table.model.json_text import parse_json

FOLDER = ".hoodie/.locks"
LOCK = f"{FOLDER}/table_lock.json"
AUDIT_SWITCH = f"{FOLDER}/audit_enabled.json"
_AUDIT_FIELD = "STORAGE_LOCK_AUDIT_SERVICE_ENABLED"


@dataclass(frozen=True, slots=True)
class LockFile:
    """Who has the lock, until when in milliseconds of the clock on the wall, and whether it was
    given back."""

    expired: bool
    valid_until: int
    owner: str | None

    def encoded(self) -> bytes:
        """The bytes as Hudi writes them."""
        fields = {"expired": self.expired, "validUntil": self.valid_until, "owner": self.owner}
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def decoded(data: bytes) -> LockFile:
    """The lock of these bytes; fields of later releases are passed over. Raises
    CorruptTableError."""
    try:
        fields = parse_json(data)
        found = LockFile(fields["expired"], fields["validUntil"], fields["owner"])
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged() from error
    if type(found.expired) is bool and type(found.valid_until) is int and isinstance(found.owner, str | None):
        return found
    raise _damaged()


def audit_is_on(data: bytes) -> bool:
    """Whether the switch of the audit log says so; one that cannot be read does not, as for
    Hudi."""
    try:
        fields = parse_json(data)
    except ValueError:
        return False
    return isinstance(fields, dict) and fields.get(_AUDIT_FIELD) in (True, "true")


def audit_path(begun: int, owner: str) -> str:
    """The audit log of one holding."""
    return f"{FOLDER}/audit/{begun}_{owner}.jsonl"


def audit_line(owner: str, begun: int, state: str, at: int, valid_until: int, *, held: bool) -> bytes:
    """One line of the audit log; times in milliseconds."""
    fields = {
        "transactionStartTime": begun,
        "lockHeld": held,
        "state": state,
        "lockExpiration": valid_until,
        "ownerId": owner,
        "timestamp": at,
    }
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _damaged() -> CorruptTableError:
    return CorruptTableError(
        f"{LOCK!r} is no lock that Apache Hudi writes, so nobody can tell who holds it: when no writer is at work, delete it",
        path=LOCK,
    )
