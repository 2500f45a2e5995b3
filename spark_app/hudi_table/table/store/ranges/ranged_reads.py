"""Random access to an object through few range requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from hudi_table.table.store import threads

_TAIL = 64 << 10
"""Fetched with the opening request: most Parquet footers, or a whole small file."""
_LEAST = 256 << 10
"""A request costs as much time as some hundred KiB of transfer: smaller reads fetch this much and
keep it."""
_AT_ONCE = 16
"""Ranges of one file that are fetched at once; what one process has under way is bounded by the
store's `Pace`."""


@dataclass(slots=True)
class _Fetched:
    """Bytes that are there or under way. `stop` is the end of the range of which they are a piece,
    `left` how many of them have not been read."""

    start: int
    end: int
    stop: int
    data: Future[bytes]
    left: int


class RangeFile:
    """A read-only binary file over `tail(length) -> (size, last bytes)` and `read(start, end) ->
    bytes`.

    pyarrow serialises the reads of one file; `fetch` and `drop` may come beside them. At most two
    windows are kept: the end of the object and the last small read, together below 320 KiB; and
    what was fetched, until it has been read.
    """

    def __init__(self, tail: Callable[[int], tuple[int, bytes]], read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._size, data = tail(_TAIL)
        self._windows = [(self._size - len(data), data), (0, b"")]
        self._position = 0
        self._fetched: list[_Fetched] = []
        self._lock = threads.lock()
        self._pool: Executor | None = None
        self.closed = False

    def fetch(self, ranges: Sequence[tuple[int, int]], *, piece: int | None = None) -> None:
        """Ask for the ranges (from byte to byte, the second not included) at once, and wait for
        none.

        What is there or under way is not asked for again. With `piece` only so many bytes of each
        are asked for, and the next so many when those are read: so a range that is too large for
        memory is on its way all the same. A reply that fails is raised by the read of its bytes.
        """
        with self._lock:
            for start, end in ranges:
                for first, stop in self._missing(start, min(end, self._windows[0][0])):
                    self._ask(first, stop, piece or stop - first)

    def drop(self, before: int) -> None:
        """Let go of what was fetched and ends at this byte or before."""
        with self._lock:
            for found in [found for found in self._fetched if found.stop <= before]:
                found.data.cancel()
                self._fetched.remove(found)

    def _missing(self, start: int, end: int) -> list[tuple[int, int]]:
        missing = []
        for found in sorted(self._fetched, key=lambda found: found.start):
            if found.start < end and found.stop > start:
                missing.append((start, found.start))
                start = found.stop
        return [(first, stop) for first, stop in [*missing, (start, end)] if first < stop]

    def _ask(self, start: int, stop: int, piece: int) -> None:
        if self.closed:
            return
        if self._pool is None:
            self._pool = threads.pool(_AT_ONCE, "hudi-io")
        end = min(start + piece, stop)
        self._fetched.append(_Fetched(start, end, stop, self._pool.submit(self._read, start, end), end - start))

    def _of_fetched(self, start: int, end: int) -> memoryview | bytes | None:
        """The bytes, if all of them are there or under way."""
        taken: list[tuple[Callable[[], bytes], int, int]] = []
        with self._lock:
            at = start
            while at < end:
                found = next((found for found in self._fetched if found.start <= at < found.end), None)
                if found is None:
                    break
                stop = min(end, found.end)
                taken.append((found.data.result, at - found.start, stop - found.start))
                self._count(found, stop - at)
                at = stop
        begin, last = self._windows[0]
        if taken and at < end and begin <= at:
            taken.append((lambda: last, at - begin, end - begin))
            at = end
        if at < end or not taken:
            return None
        parts = [memoryview(awaited())[first:stop] for awaited, first, stop in taken]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _count(self, found: _Fetched, length: int) -> None:
        """Bytes of a piece that are read now: with the first the next piece is asked for, with the
        last it is kept no more."""
        if found.stop > found.end:
            self._ask(found.end, found.stop, found.end - found.start)
            found.stop = found.end
        found.left -= length
        if found.left <= 0:
            self._fetched.remove(found)

    def read(self, length: int | None = -1) -> bytes | memoryview:
        """The next bytes, fewer only at the end."""
        start = self._position
        end = self._size if length is None or length < 0 else min(start + length, self._size)
        if end <= start:
            return b""
        self._position = end
        for begin, data in self._windows:
            if begin <= start and end <= begin + len(data):
                return data[start - begin : end - begin]
        fetched = self._of_fetched(start, end)
        if fetched is not None:
            return fetched
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
        with self._lock:
            self._windows = [(0, b""), (0, b"")]
            self._fetched, pool, self._pool, self.closed = [], self._pool, None, True
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
