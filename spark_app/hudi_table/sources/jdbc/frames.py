"""What goes between a run and the process that reads for it: pieces of bytes, each with its kind
and its length."""

from __future__ import annotations

from typing import IO, Any

ASK, SCHEMA, BATCH, ERROR, END = b"A", b"S", b"B", b"E", b"Z"
_LENGTH_BYTES = 8


def send(file: IO[bytes], kind: bytes, payload: Any = b"") -> None:
    """Write one. Raises OSError where nobody reads."""
    view = memoryview(payload)
    file.write(kind + view.nbytes.to_bytes(_LENGTH_BYTES, "big"))
    file.write(view)
    file.flush()


def receive(file: IO[bytes]) -> tuple[bytes, bytes] | None:
    """(kind, payload); None where the other side has ended, in the middle of one too."""
    head = file.read(1 + _LENGTH_BYTES)
    if len(head) <= _LENGTH_BYTES:
        return None
    size = int.from_bytes(head[1:], "big")
    payload = file.read(size)
    return (head[:1], payload) if len(payload) == size else None
