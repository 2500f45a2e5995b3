"""Random access to an object through few range requests."""

from __future__ import annotations

from collections.abc import Callable

_TAIL = 64 << 10
"""Fetched with the opening request: most Parquet footers, or a whole small file."""
_LEAST = 256 << 10
"""A request costs as much time as some hundred KiB of transfer: smaller reads fetch this much and
keep it."""


class RangeFile:
    """A read-only binary file over `tail(length) -> (size, last bytes)` and `read(start, end) ->
    bytes`.

    pyarrow serialises the calls of one file, so there is no lock here. At most two windows are
    kept: the end of the object and the last small read, together below 320 KiB.
    """

    def __init__(self, tail: Callable[[int], tuple[int, bytes]], read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._size, data = tail(_TAIL)
        self._windows = [(self._size - len(data), data), (0, b"")]
        self._position = 0
        self.closed = False

    def read(self, length: int | None = -1) -> bytes:
        """The next bytes, fewer only at the end."""
        start = self._position
        end = self._size if length is None or length < 0 else min(start + length, self._size)
        if end <= start:
            return b""
        self._position = end
        for begin, data in self._windows:
            if begin <= start and end <= begin + len(data):
                return data[start - begin : end - begin]
        if end - start >= _LEAST:
            return self._read(start, end)
        data = self._read(start, min(start + _LEAST, self._size))
        self._windows[1] = (start, data)
        return data[: end - start]

    def seek(self, offset: int, whence: int = 0) -> int:
        """As in `io`: 0 from the start, 1 from here, 2 from the end."""
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def size(self) -> int:
        """Bytes of the object."""
        return self._size

    def readable(self) -> bool:
        """Yes."""
        return True

    def writable(self) -> bool:
        """No."""
        return False

    def seekable(self) -> bool:
        """Yes."""
        return True

    def flush(self) -> None:
        """Nothing to write."""

    def close(self) -> None:
        """Let go of what was fetched."""
        self._windows = [(0, b""), (0, b"")]
        self.closed = True
