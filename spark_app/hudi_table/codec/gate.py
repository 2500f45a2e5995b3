"""A sink that a writer can be cut off from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO


class Gate:
    """The sink until it is shut: Arrow finishes a half-written file, footer and all, when its
    writer is collected."""

    closed = False

    def __init__(self, sink: BinaryIO) -> None:
        self._sink: BinaryIO | None = sink
        self._at = 0
        self._held: list[bytes] | None = None

    def hold(self) -> None:
        """From now on keep what is written."""
        self._held = []

    def release(self, change: Callable[[bytes], bytes]) -> None:
        """Write what was kept, changed to as many bytes."""
        if self._held is not None and self._sink is not None:
            self._sink.write(change(b"".join(self._held)))
        self._held = None

    def shut(self) -> None:
        """End it: what is written from now on goes nowhere."""
        self._sink = None

    def write(self, data: Any) -> int:
        """Keep the bytes, or pass them on."""
        if self._held is not None:
            self._held.append(bytes(data))
        elif self._sink is not None:
            self._sink.write(data)
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._at

    def flush(self) -> None:
        """Flush the file behind it."""
        if self._sink is not None:
            self._sink.flush()
