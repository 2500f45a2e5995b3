"""Reading what is asked for of an archive in the form of versions 8 and 9: files that by their
footers cannot hold it are not read.

`Reads` counts which files of the archive are read as a whole; a footer stands at the end.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import open_table
from hudi_table.callbacks.commits import commits_after
from hudi_table.callbacks.position import Position
from hudi_table.errors import ExpiredError
from hudi_table.model.names import COMMIT_TIME
from hudi_table.read.incremental import check_active, rows_of
from hudi_table.read.moments import Span
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import archived_completions, archived_entries, latest_archived
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.lsm import Asked
from tests.support import golden

HISTORY = Path(".hoodie") / "timeline" / "history"
FILES = [
    "20261123011513169_20261123011542812_1.parquet",
    "20261123011547441_20261123011623061_1.parquet",
    "20261123011628159_20261123011640261_0.parquet",
    "20261123011645821_20261123011655672_0.parquet",
    "20261123011701244_20261123011710909_0.parquet",
]
"""As Hudi 1.0.2 wrote them, before it merged them into one."""
THIRD_ENDED, FOURTH_BEGAN = "20261123011645533", "20261123011647167"
"""The last completion in the third file, and the first one in the fourth."""
ALL_BUT_MOMENTS = Asked("99991231235959999")


class Reads:
    """Passes every call on, and notes which files of the archive are read as a whole."""

    def __init__(self, inner: Storage) -> None:
        self.inner = inner
        self.whole: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def get(self, path: str) -> bytes:
        self._note(path)
        return self.inner.get(path)

    def open_read(self, path: str) -> Any:
        with self.inner.open_read(path) as source:
            data = source.read()
        return _Noted(data, lambda: self._note(path))

    def _note(self, path: str) -> None:
        if path.endswith(".parquet") and "/history/" in path:
            self.whole.append(path.rpartition("/")[2])


class _Noted(io.BytesIO):
    def __init__(self, data: bytes, begun: Callable[[], None]) -> None:
        super().__init__(data)
        self._begun = begun

    def read(self, size: int | None = -1, /) -> bytes:
        # Arrow asks for a number of bytes, which for a footer are the last ones.
        if size in (None, -1):
            self._begun()
        return super().read(size)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = golden.unpack("v8_lsm", tmp_path).base
    named = [{"fileName": name, "fileLen": (base / HISTORY / name).stat().st_size} for name in FILES]
    (base / HISTORY / "manifest_14").write_text(json.dumps({"files": named}))
    (base / HISTORY / "_version_").write_text("14")
    return base


@pytest.fixture
def reads(base: Path) -> Reads:
    return Reads(open_table(base).context.storage)


@pytest.fixture
def ctx(base: Path, reads: Reads) -> TableContext:
    return replace(open_table(base).context, storage=reads)


def test_without_a_question_every_file_is_read(ctx: TableContext, reads: Reads) -> None:
    assert len({entry["commitTime"] for entries in archived_entries(ctx) for entry in entries}) == 33
    assert sorted(reads.whole) == FILES


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (Asked(FOURTH_BEGAN), FILES[3:]),
        (Asked(FOURTH_BEGAN[:14]), FILES[3:]),
        (Asked(THIRD_ENDED[:14] + "999"), FILES[2:]),
        (Asked(until=THIRD_ENDED), FILES[:3]),
        (Asked(THIRD_ENDED, FOURTH_BEGAN), FILES[2:4]),
        (Asked("20261123011718000"), []),
        (replace(ALL_BUT_MOMENTS, times=frozenset({"20261123011542812", "20261123011701244"})), [FILES[0], FILES[4]]),
        (replace(ALL_BUT_MOMENTS, times=frozenset({"20261123011545000"})), []),
    ],
    ids=[
        "since an instant",
        "since its second",
        "since the end of a file",
        "up to the end of a file",
        "between two moments",
        "behind all",
        "two instants",
        "an instant that is in none",
    ],
)
def test_files_that_cannot_hold_what_is_asked_for_are_not_read(
    ctx: TableContext, reads: Reads, asked: Asked, expected: list[str]
) -> None:
    whole = archived_completions(ctx)
    reads.whole.clear()
    found = archived_completions(ctx, asked)
    assert sorted(reads.whole) == expected
    named = {
        time: moment
        for time, moment in whole.items()
        if (moment >= asked.since and (not asked.until or moment <= asked.until)) or time in asked.times
    }
    assert named.items() <= found.items() <= whole.items()
    reads.whole.clear()
    assert {entry["commitTime"] for entries in archived_entries(ctx, asked) for entry in entries} == found.keys()
    assert sorted(reads.whole) == expected


def test_a_file_whose_footer_tells_no_bounds_is_read(base: Path, ctx: TableContext, reads: Reads) -> None:
    path = base / HISTORY / FILES[1]
    pq.write_table(pq.read_table(path), path, write_statistics=False)
    archived_completions(ctx, Asked(FOURTH_BEGAN))
    assert sorted(reads.whole) == [FILES[1], *FILES[3:]]


def test_the_latest_completion_is_in_one_file(ctx: TableContext, reads: Reads) -> None:
    latest = max(archived_completions(ctx).values())
    reads.whole.clear()
    assert latest_archived(ctx) == latest
    assert reads.whole == [FILES[4]]


def test_an_incremental_query_reads_the_files_of_its_range(ctx: TableContext, reads: Reads) -> None:
    timeline, span = load_timeline(ctx), Span(FOURTH_BEGAN, full_scan=True)
    whole = archived_completions(ctx) | timeline.completions
    reads.whole.clear()
    bound = rows_of(ctx, timeline, span)
    assert sorted(reads.whole) == FILES[3:]
    times = pa.RecordBatch.from_pydict({COMMIT_TIME: sorted(whole)})
    found = bound.rows(times)[COMMIT_TIME].to_pylist()
    assert found == sorted(time for time, moment in whole.items() if moment in span)
    reads.whole.clear()
    with pytest.raises(ExpiredError, match="partly archived"):
        check_active(ctx, timeline, Span(FOURTH_BEGAN))
    assert check_active(ctx, timeline, Span(latest_archived(ctx)))
    assert set(reads.whole) == {FILES[4]}


@pytest.mark.parametrize("limit", [1, 100])
def test_who_asks_for_commits_after_a_position_reads_the_files_behind_it(
    ctx: TableContext, reads: Reads, limit: int
) -> None:
    every = [told.commit.instant for told in commits_after(ctx, Position(), limit=1000).told]
    assert sorted(set(reads.whole)) == FILES
    reads.whole.clear()
    position = Position("20261123011646000", ("20261123011513169",), looked=True)
    page = commits_after(ctx, position, limit=limit)
    assert sorted(reads.whole) == [FILES[0], *FILES[3:]]
    assert page.told[0].commit.instant == "20261123011513169"
    completed = archived_completions(ctx) | load_timeline(ctx).completions
    later = [time for time in every if completed[time] > THIRD_ENDED]
    assert [told.commit.instant for told in page.told][1:] == (later if limit > 1 else [])
