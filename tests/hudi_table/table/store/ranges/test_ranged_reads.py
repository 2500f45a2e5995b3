"""Ranges of an object that are fetched at once, before somebody reads them."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.codec.parquet import read_batches
from hudi_table.errors import UnavailableError
from hudi_table.table.store.ranges.object_file import ObjectFile
from hudi_table.table.store.ranges.ranged_reads import RangeFile

WAIT_SECONDS = 30.0
_NOISE = np.random.default_rng(3).bytes(3_000_000)


class Served:
    """An object behind requests that are counted. With `together` a request is answered when so
    many wait."""

    def __init__(self, data: bytes, together: int = 0) -> None:
        self.data = data
        self.asked: list[tuple[int, int]] = []
        self.fails: set[int] = set()
        self._together = threading.Barrier(together, timeout=WAIT_SECONDS) if together else None

    def tail(self, length: int) -> tuple[int, bytes]:
        return len(self.data), self.data[-length:]

    def read(self, start: int, end: int) -> bytes:
        self.asked.append((start, end))
        if start in self.fails:
            raise UnavailableError("the store did not answer")
        if self._together is not None:
            self._together.wait()
        return self.data[start:end]

    def opened(self) -> RangeFile:
        return RangeFile(self.tail, self.read)


def _read(file: RangeFile, start: int, end: int) -> bytes:
    file.seek(start)
    return bytes(file.read(end - start))


def test_ranges_are_on_their_way_together_and_each_is_asked_for_once() -> None:
    served = Served(_NOISE, together=3)
    file = served.opened()
    ranges = [(0, 400_000), (800_000, 1_200_000), (1_300_000, 1_900_000)]
    file.fetch(ranges)
    file.fetch(ranges)
    for start, end in ranges:
        assert _read(file, start, end) == _NOISE[start:end]
    assert sorted(served.asked) == ranges


def test_of_what_is_partly_there_the_rest_is_asked_for() -> None:
    served = Served(_NOISE)
    file = served.opened()
    file.fetch([(1_000, 2_000)])
    file.fetch([(500, 3_000), (len(_NOISE) - 100_000, len(_NOISE))])
    assert _read(file, 500, 3_000) == _NOISE[500:3_000]
    assert _read(file, len(_NOISE) - 90_000, len(_NOISE) - 10) == _NOISE[-90_000:-10]
    assert sorted(served.asked) == [
        (500, 1_000),
        (1_000, 2_000),
        (2_000, 3_000),
        (len(_NOISE) - 100_000, len(_NOISE) - 65_536),
    ]


def test_of_a_range_in_pieces_the_next_is_asked_for_when_one_is_read() -> None:
    served = Served(_NOISE)
    file = served.opened()
    file.fetch([(0, 1_000_000)], piece=300_000)
    file.fetch([(0, 1_000_000)], piece=300_000)
    _read(file, 0, 10)
    assert set(served.asked) <= {(0, 300_000), (300_000, 600_000)}
    _read(file, 10, 300_000)
    assert _read(file, 300_000, 1_000_000) == _NOISE[300_000:1_000_000]
    assert sorted(served.asked) == [(0, 300_000), (300_000, 600_000), (600_000, 900_000), (900_000, 1_000_000)]


def test_what_was_read_or_dropped_is_let_go_and_can_be_read_again() -> None:
    served = Served(_NOISE)
    file = served.opened()
    file.fetch([(0, 300_000), (500_000, 900_000)])
    file.drop(300_000)
    assert _read(file, 0, 300_000) == _NOISE[:300_000]
    assert _read(file, 500_000, 900_000) == _NOISE[500_000:900_000]
    assert _read(file, 500_000, 900_000) == _NOISE[500_000:900_000]
    assert served.asked.count((500_000, 900_000)) == 2
    file.close()
    file.fetch([(0, 300_000)])
    assert (0, 300_000) not in served.asked[-1:]


def test_a_reply_that_fails_is_raised_where_its_bytes_are_read() -> None:
    served = Served(_NOISE)
    served.fails = {500_000}
    file = served.opened()
    file.fetch([(0, 300_000), (500_000, 900_000)])
    assert _read(file, 0, 300_000) == _NOISE[:300_000]
    with pytest.raises(UnavailableError, match="did not answer"):
        _read(file, 500_000, 900_000)


@pytest.fixture(scope="module")
def wide() -> bytes:
    """Ten columns of 800 KB in each of two row groups."""
    values = np.random.default_rng(2)
    table = pa.table({f"c{number}": values.random(200_000) for number in range(10)})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=100_000, use_dictionary=False, compression="none")
    return sink.getvalue()


def _batches(served: Served, columns: Sequence[str] | None, batch_bytes: int | None = None) -> Iterator[pa.RecordBatch]:
    with ObjectFile(served.opened()) as file:
        yield from read_batches(file, columns, batch_bytes=batch_bytes)


def test_the_columns_of_all_row_groups_of_a_file_are_asked_for_at_once(wide: bytes) -> None:
    """With one after the other the barrier would never be passed."""
    served = Served(wide, together=6)
    found = pa.Table.from_batches(_batches(served, ["c1", "c4", "c8"]))
    assert found.equals(pq.read_table(io.BytesIO(wide), columns=["c1", "c4", "c8"]))
    assert len(served.asked) == 6


def test_a_row_group_that_memory_does_not_hold_is_on_its_way_column_by_column_in_pieces(wide: bytes) -> None:
    served = Served(wide)
    whole = pa.Table.from_batches(_batches(served, None, batch_bytes=2_000_000))
    assert whole.equals(pq.read_table(io.BytesIO(wide)))
    assert max(end - start for start, end in served.asked) <= 1 << 20
    assert {start for start, _ in served.asked[:10]} > {column_start(wide, number) for number in range(9)}


def column_start(data: bytes, number: int) -> int:
    """Where the first chunk of a column begins."""
    return int(pq.read_metadata(io.BytesIO(data)).row_group(0).column(number).data_page_offset)
