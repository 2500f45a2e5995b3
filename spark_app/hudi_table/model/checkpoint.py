"""Which files of a source are in the table: the checkpoint of an ingest from files, and the next batch.

The checkpoint stands in the extra metadata of the commit that consumed the files, under `lakeops.ingest.<name>`, so
files and rows become visible in one step and a replay finds nothing left to do. It holds a 64-bit digest of every
consumed file (path, size, version), so it is exact for late files of any age, and the files of its own batch by name.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from hudi_table.model.json_text import parse_json

KEY_PREFIX = "lakeops.ingest."
FORMAT = 1
NAMED_FILES_MAX = 1_000
CONSUMED_MAX = 100_000
"""Digests kept; past it, those of files that left the source are dropped."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: `path` relative to the source, `size` in bytes, `version` (etag or time of change), `modified` in UTC."""

    path: str
    size: int
    version: str
    modified: datetime

    @property
    def digest(self) -> int:
        """64 bits of the SHA-256 of path, size and version."""
        text = f"{self.path}\n{self.size}\n{self.version}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What an ingest has consumed, as of the commit that holds this."""

    batch: str
    attempt: str
    files: tuple[str, ...]
    consumed: frozenset[int]

    def to_text(self) -> str:
        """The value in extra metadata: compact JSON."""
        packed = b"".join(struct.pack(">Q", digest) for digest in sorted(self.consumed))
        document = {
            "format": FORMAT,
            "batch": self.batch,
            "attempt": self.attempt,
            "fileCount": len(self.files),
            "files": list(self.files[:NAMED_FILES_MAX]),
            "consumed": base64.b64encode(packed).decode(),
        }
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> Checkpoint:
        """Parse. Raises ValueError for anything that `to_text` did not write."""
        raw = parse_json(text)
        if not isinstance(raw, dict) or raw.get("format") != FORMAT:
            raise ValueError(f"is no checkpoint of format {FORMAT}: {text[:80]!r}")
        packed = base64.b64decode(str(raw["consumed"]), validate=True)
        if len(packed) % 8:
            raise ValueError(f"holds {len(packed)} bytes of digests, not a multiple of 8")
        consumed = frozenset(value for (value,) in struct.iter_unpack(">Q", packed))
        return cls(str(raw["batch"]), str(raw["attempt"]), tuple(raw["files"]), consumed)


def key_of(ingest: str) -> str:
    """The extra metadata key of an ingest."""
    return KEY_PREFIX + ingest


def is_hidden(path: str) -> bool:
    """Whether a file is not data: some part of its path starts with `_` or `.`, as unfinished and marker files do."""
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def waiting(listing: Iterable[SourceFile], checkpoint: Checkpoint | None) -> tuple[SourceFile, ...]:
    """Files that are not in the table yet, oldest first. Hidden and empty ones are no data."""
    consumed = checkpoint.consumed if checkpoint is not None else frozenset()
    found = (f for f in listing if f.size and not is_hidden(f.path) and f.digest not in consumed)
    return tuple(sorted(found, key=lambda f: (f.modified, f.path)))


def batch_id(ingest: str, files: Iterable[SourceFile]) -> str:
    """Name of a set of files: the same files are the same batch, in any order and on any attempt."""
    digests = ",".join(str(digest) for digest in sorted(f.digest for f in files))
    return hashlib.sha256(f"{ingest}\n{digests}".encode()).hexdigest()[:20]


def advance(
    checkpoint: Checkpoint | None,
    ingest: str,
    attempt: str,
    batch: tuple[SourceFile, ...],
    listing: Iterable[SourceFile],
) -> Checkpoint:
    """The checkpoint once `batch` is in the table. Bounded: past CONSUMED_MAX, files that are gone are forgotten."""
    consumed = (checkpoint.consumed if checkpoint is not None else frozenset()) | {f.digest for f in batch}
    if len(consumed) > CONSUMED_MAX:
        consumed &= {f.digest for f in listing} | {f.digest for f in batch}
    return Checkpoint(batch_id(ingest, batch), attempt, tuple(f.path for f in batch), frozenset(consumed))


def find(extra_metadata: Mapping[str, str], ingest: str) -> Checkpoint | None:
    """The checkpoint that a commit holds for an ingest, if any. Raises ValueError if it is damaged."""
    text = extra_metadata.get(key_of(ingest))
    return None if text is None else Checkpoint.from_text(text)
