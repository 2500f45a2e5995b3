"""Which files of a source are in the table: the checkpoint of an ingest from files, and the next
batch.

The checkpoint stands in the extra metadata of the commit that consumed the files, under
`lakeops.ingest.<name>`, so files and rows become visible in one step and a replay finds nothing
left to do. It knows a 64-bit digest of every consumed file (path, size, version), so it is exact
for late files of any age, and the files of its own batch by name.

A commit holds the digests of the newest files alone. Whenever they are more than RECENT_MAX, all
digests move to a digest file below `.hoodie/.ingest` that never changes, and that the commits name
from then on: so a commit is as small after a million files as after some. Format 1, which is still
written until the first such file, has no digest file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from hudi_table.model.json_text import parse_json
from hudi_table.model.names import INGEST

KEY_PREFIX = "lakeops.ingest."
FORMAT, DIGEST_FILE_FORMAT = 1, 2
NAMED_FILES_MAX = 1_000
RECENT_MAX = 2_000
"""Digests that a commit holds itself: 21 KB of its metadata."""
CONSUMED_MAX = 100_000
"""Digests kept; past it, those of files that left the source are dropped with a new digest file."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: `path` relative to the source, `size` in bytes, `version` (etag or time of change),
    `modified` in UTC."""

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
class DigestFile:
    """Digests that lie in a file of the table, `path` relative to its base."""

    path: str
    digests: frozenset[int]


Load = Callable[[str], bytes]
"""Brings the digest file, by its path relative to the table's base."""


def _no_file(path: str) -> bytes:
    raise ValueError(f"refers to {path}, and no file is expected here")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What an ingest has consumed, as of the commit that holds this. `consumed`: all digests, those
    of `settled` among them."""

    batch: str
    attempt: str
    files: tuple[str, ...]
    consumed: frozenset[int]
    digest_file: DigestFile | None = None

    def to_text(self) -> str:
        """The value in extra metadata: compact JSON."""
        digest_file = self.digest_file
        recent = self.consumed - digest_file.digests if digest_file is not None else self.consumed
        document: dict[str, object] = {
            "format": FORMAT if digest_file is None else DIGEST_FILE_FORMAT,
            "batch": self.batch,
            "attempt": self.attempt,
            "fileCount": len(self.files),
            "files": list(self.files[:NAMED_FILES_MAX]),
            "consumed": base64.b64encode(pack(recent)).decode(),
        }
        if digest_file is not None:
            document["settled"] = {"path": digest_file.path, "count": len(digest_file.digests)}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str, load: Load = _no_file) -> Checkpoint:
        """Parse. Raises ValueError for anything that `to_text` did not write, and for a file of
        digests that is not what it was."""
        raw = parse_json(text)
        if not isinstance(raw, dict) or raw.get("format") not in (FORMAT, DIGEST_FILE_FORMAT):
            raise ValueError(f"is no checkpoint of format {FORMAT} or {DIGEST_FILE_FORMAT}: {text[:80]!r}")
        consumed = unpack(base64.b64decode(str(raw["consumed"]), validate=True))
        digest_file = None
        if raw["format"] == DIGEST_FILE_FORMAT:
            path, count = str(raw["settled"]["path"]), int(raw["settled"]["count"])
            data = load(path)
            if len(data) != 8 * count or not path.endswith(f"/{_name_of(data)}"):
                raise ValueError(f"refers to {count} digests in {path}, which holds others: restore that file")
            digest_file = DigestFile(path, unpack(data))
            consumed |= digest_file.digests
        return cls(str(raw["batch"]), str(raw["attempt"]), tuple(raw["files"]), consumed, digest_file)


def pack(digests: Iterable[int]) -> bytes:
    """Digests in order, 8 bytes each, the greatest byte first."""
    return b"".join(struct.pack(">Q", digest) for digest in sorted(digests))


def unpack(data: bytes) -> frozenset[int]:
    """What was packed. Raises ValueError for another length."""
    if len(data) % 8:
        raise ValueError(f"holds {len(data)} bytes of digests, not a multiple of 8")
    return frozenset(value for (value,) in struct.iter_unpack(">Q", data))


def _name_of(data: bytes) -> str:
    return f"{hashlib.sha256(data).hexdigest()[:32]}.digests"


def digest_file_of(text: str) -> str | None:
    """The file of digests that a checkpoint refers to, if any; None for what is no checkpoint."""
    try:
        return str(parse_json(text)["settled"]["path"])
    except (ValueError, TypeError, KeyError):
        return None


def with_digest_file(checkpoint: Checkpoint, ingest: str) -> tuple[Checkpoint, bytes] | None:
    """The checkpoint with all its digests in a digest file, and its bytes; None while the commit
    can hold them itself."""
    before = checkpoint.digest_file.digests if checkpoint.digest_file is not None else frozenset()
    if len(checkpoint.consumed - before) <= RECENT_MAX:
        return None
    data = pack(checkpoint.consumed)
    path = f"{INGEST}/{ingest}/{_name_of(data)}"
    return replace(checkpoint, digest_file=DigestFile(path, checkpoint.consumed)), data


def key_of(ingest: str) -> str:
    """The extra metadata key of an ingest."""
    return KEY_PREFIX + ingest


def is_hidden(path: str) -> bool:
    """Whether a file is not data: some part of its path starts with `_` or `.`, as unfinished and
    marker files do."""
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def waiting(listing: Iterable[SourceFile], checkpoint: Checkpoint | None) -> tuple[SourceFile, ...]:
    """Files that are not in the table yet, oldest first. Hidden and empty ones are no data."""
    consumed = checkpoint.consumed if checkpoint is not None else frozenset()
    found = (f for f in listing if f.size and not is_hidden(f.path) and f.digest not in consumed)
    return tuple(sorted(found, key=lambda f: (f.modified, f.path)))


def batch_id(ingest: str, files: Iterable[SourceFile]) -> str:
    """Name of a set of files: the same files are the same batch, in any order and on any
    attempt."""
    digests = ",".join(str(digest) for digest in sorted(f.digest for f in files))
    return hashlib.sha256(f"{ingest}\n{digests}".encode()).hexdigest()[:20]


def advance(
    checkpoint: Checkpoint | None,
    ingest: str,
    attempt: str,
    batch: tuple[SourceFile, ...],
    listing: Iterable[SourceFile],
) -> Checkpoint:
    """The checkpoint once `batch` is in the table. Bounded: past CONSUMED_MAX, files that are gone
    are forgotten with a new digest file."""
    consumed = (checkpoint.consumed if checkpoint is not None else frozenset()) | {f.digest for f in batch}
    digest_file = checkpoint.digest_file if checkpoint is not None else None
    recent = len(consumed) - (len(digest_file.digests) if digest_file is not None else 0)
    if recent > RECENT_MAX and len(consumed) > CONSUMED_MAX:
        consumed &= {f.digest for f in listing} | {f.digest for f in batch}
        digest_file = None
    return Checkpoint(batch_id(ingest, batch), attempt, tuple(f.path for f in batch), frozenset(consumed), digest_file)


def find(extra_metadata: Mapping[str, str], ingest: str, load: Load = _no_file) -> Checkpoint | None:
    """The checkpoint that a commit holds for an ingest, if any. Raises ValueError if it is
    damaged."""
    text = extra_metadata.get(key_of(ingest))
    return None if text is None else Checkpoint.from_text(text, load)
