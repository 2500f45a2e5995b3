"""Which bytes of a Parquet file are asked for before Arrow asks."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.codec import parquet
from hudi_table.table.store.ranges.column_chunks import Range, chunk_ranges, coalesced, groups_ahead

ROWS, GROUP_ROWS = 40_000, 10_000


class Watched(pa.PythonFile):
    """A file that notes what it is asked for ahead, and what is read."""

    def __init__(self, data: io.BytesIO) -> None:
        self.asked: list[Range] = []
        self.pieces: list[int | None] = []
        self.dropped: list[int] = []

    def fetch(self, ranges: Sequence[Range], *, piece: int | None = None) -> None:
        self.asked += ranges
        self.pieces += [piece] * len(ranges)

    def drop(self, before: int) -> None:
        self.dropped.append(before)


class Reads(io.BytesIO):
    """Bytes that note what is read of them."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.done: list[Range] = []

    def read(self, size: int | None = -1, /) -> bytes:
        start = self.tell()
        found = super().read(size)
        self.done.append((start, self.tell()))
        return found


@pytest.fixture(scope="module")
def data() -> bytes:
    noise = np.random.default_rng(1)
    columns: dict[str, object] = {f"c{number}": noise.random(ROWS) for number in range(5)}
    columns["few"] = ["x" * (number % 3) for number in range(ROWS)]
    columns["nested"] = [{"a": float(number), "b": [number]} for number in range(ROWS)]
    columns["dotted.name"] = noise.random(ROWS)
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=GROUP_ROWS)
    return sink.getvalue()


@pytest.mark.parametrize(
    "columns", [["c1"], ["c0", "few", "c4"], ["nested"], ["dotted.name"], None], ids=lambda found: str(found)
)
def test_all_that_arrow_reads_was_asked_for_and_nothing_else(data: bytes, columns: list[str] | None) -> None:
    metadata = pq.read_metadata(io.BytesIO(data))
    wanted = None if columns is None else frozenset(columns)
    known = sorted(found for group in range(4) for found in chunk_ranges(metadata, group, wanted))
    reads = Reads(data)
    with pq.ParquetFile(pa.PythonFile(reads, "r"), metadata=metadata) as file:
        rows = sum(batch.num_rows for batch in file.iter_batches(columns=columns))
    assert rows == ROWS
    # Arrow joins chunks that touch.
    assert _joined(reads.done) == _joined(known)


def _joined(ranges: Sequence[Range]) -> list[Range]:
    """Those that touch as one."""
    return coalesced(ranges, hole=0, part=1 << 40)


def test_a_name_of_which_another_begins_is_not_taken_for_it(data: bytes) -> None:
    metadata = pq.read_metadata(io.BytesIO(data))
    assert chunk_ranges(metadata, 0, frozenset({"c", "neste", "dotted.nam"})) == []
    assert len(chunk_ranges(metadata, 0, frozenset({"nested"}))) == 2


def test_what_lies_close_together_is_one_range_and_what_is_large_comes_in_parts() -> None:
    assert coalesced([(50, 60), (0, 10), (12, 20)], hole=2, part=100) == [(0, 20), (50, 60)]
    assert coalesced([(0, 25), (5, 7), (9, 9)], hole=0, part=10) == [(0, 10), (10, 20), (20, 25)]
    assert coalesced([]) == []


def _asked(source: Watched, groups: Iterator[int]) -> list[tuple[int, int]]:
    """Of each group as it comes: how many bytes were asked for until then, and how often some were
    dropped."""
    return [(sum(end - start for start, end in source.asked), len(source.dropped)) for _ in groups]


def test_groups_behind_are_asked_for_as_far_as_the_budget_goes_and_dropped_when_they_are_read(data: bytes) -> None:
    metadata = pq.read_metadata(io.BytesIO(data))
    sizes = [sum(end - start for start, end in chunk_ranges(metadata, group, frozenset({"c1"}))) for group in range(4)]
    for ahead, counts in ((0, (1, 2, 3, 4)), (sizes[1], (2, 3, 4, 4)), (sum(sizes), (4, 4, 4, 4))):
        source = Watched(io.BytesIO(data))
        found = _asked(source, groups_ahead(source, metadata, range(4), ["c1"], ahead=ahead))
        least = [sum(sizes[:count]) for count in counts]
        # Holes between the chunks of two groups may come too.
        assert all(low <= size for low, (size, _) in zip(least, found, strict=True)), (ahead, found, least)
        assert [dropped for _, dropped in found] == [0, 1, 2, 3]
        assert all(first <= second for first, second in pairwise(source.dropped))
        if ahead == 0:
            assert [size for size, _ in found] == least


def test_of_columns_that_are_read_in_pieces_no_more_is_asked_for_than_a_piece_of_each(data: bytes) -> None:
    metadata = pq.read_metadata(io.BytesIO(data))
    source = Watched(io.BytesIO(data))
    groups = groups_ahead(source, metadata, range(4), ["c1", "few"], piece=20_000)
    next(groups)
    chunks = dict(zip(("c1", "few"), chunk_ranges(metadata, 0, frozenset({"c1", "few"})), strict=True))
    assert list(zip(source.asked, source.pieces, strict=True)) == [(chunks["c1"], 20_000), (chunks["few"], None)]


def test_a_source_that_cannot_be_asked_ahead_is_read_as_it_is(data: bytes) -> None:
    metadata = pq.read_metadata(io.BytesIO(data))
    assert list(parquet.groups_ahead(io.BytesIO(data), metadata, [2, 0], None)) == [2, 0]
