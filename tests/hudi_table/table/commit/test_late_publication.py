"""A writer that sleeps between its look at the lock and the create of its completed file, for
however long: what was taken back meanwhile is never published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.arguments import TableTypeName
from hudi_table.errors import WriteConflictError
from hudi_table.table.commit.decision import Decider
from hudi_table.table.store import retry
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.hudi_table.table.commit.test_locking import PATIENT, Killed, lock_of, row, their_upsert, values

KEEP = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
BUCKET = {"type": "Bucket", "buckets": 1}


@pytest.fixture(params=[6, 9])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def made(base: Path, version: int, kind: TableTypeName) -> HudiTable:
    table = create_table(base, row("a", 1).schema, record_key="id", version=version, type=kind, index=BUCKET)
    table.upsert(row("a", 1))
    return open_table(base, lock=PATIENT)


def after_the_quarantine(table: HudiTable) -> HudiTable:
    ctx = table.context
    return HudiTable(replace(ctx, settings=replace(ctx.settings, quarantine_seconds=0.0)))


def asleep_before_the_create(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None], *, dies: bool
) -> None:
    """An upsert whose completed file is asked for behind what happens meanwhile."""
    once, decide = retry.until_confirmed, Decider.decide

    def late(request: Callable[[], object]) -> None:
        monkeypatch.undo()
        lock_of(Path(table.base_path)).unlink()
        meanwhile()
        try:
            once(request)
        finally:
            if dies:
                raise Killed

    def decided(*args: Any, **more: Any) -> object:
        found = decide(*args, **more)
        monkeypatch.setattr(retry, "until_confirmed", late)
        return found

    monkeypatch.setattr(Decider, "decide", decided)
    with pytest.raises(Killed) if dies else pytest.raises(WriteConflictError, match="the lock was lost"):
        table.upsert(row("a", 2))


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("dies", [True, False], ids=["and dies", "and goes on"])
def test_a_write_that_was_taken_back_is_not_published_by_who_slept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, kind: TableTypeName, dies: bool
) -> None:
    table = made(tmp_path / "t", version, kind)
    others = after_the_quarantine(open_table(table.base_path, lock=PATIENT))

    def meanwhile() -> None:
        their_upsert(table, 7)
        others.upsert(row("b", 3))
        others.clean()
        assert not load_timeline(others.context).pending

    asleep_before_the_create(table, monkeypatch, meanwhile, dies=dies)
    assert values(table) == [3, 7]
    others.clean()
    timeline = load_timeline(others.context)
    assert not timeline.pending
    (empty,) = [i for i in timeline.commits if commit_metadata(others.context, i).is_taken_back]
    assert timeline.commits[-1] != empty
    assert not commit_metadata(others.context, empty).stats
    assert open_table(table.base_path).doctor() == ()
    for value in range(8, 14):
        others.upsert(row("a", value))
        assert values(table) == [3, value]
    others.clean(KEEP)
    if kind == "MergeOnRead":
        others.compact(force=True)
        assert values(table) == [3, 13]
    others.archive(KEEP, force=True)
    assert empty not in load_timeline(others.context).commits
    assert values(table) == [3, 13]
    assert open_table(table.base_path).doctor() == ()
