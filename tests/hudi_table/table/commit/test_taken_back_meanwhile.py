"""A writer is stopped between its decision and its completed file for longer than others wait for a
sign of life, and another engine takes it back: it is told so, and nothing of it is published."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import WriteAbortedError
from hudi_table.model.timeline.chain import ChainEntry
from hudi_table.model.timeline.instants import Action, Instant, State, parse_instant
from hudi_table.table.commit import rollback
from hudi_table.table.commit.decision import Decider
from hudi_table.table.store import retry
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import draw_instant
from hudi_table.table.timeline.layout import encode_record
from tests.hudi_table.table.commit.test_locking import PATIENT, base, lock_of, row, values

__all__ = ["base"]
KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


class Stopped(SystemClock):
    """A process that was stopped for a while: its boot-time clock counts that."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def boot_seconds(self) -> float:
        return super().boot_seconds() + self.seconds


def locked(base: Path, clock: SystemClock | None = None) -> HudiTable:
    ctx = open_table(base, lock=PATIENT).context
    return HudiTable(ctx if clock is None else replace(ctx, clock=clock))


def taken_back(base: Path, made: Instant, *, ends: bool = True) -> None:
    """As Hudi's lazy cleaning does: a plan, the files deleted, then the claim, then a report."""
    ctx = open_table(base).context
    undo = Instant(draw_instant(ctx, made.time), Action.ROLLBACK, State.REQUESTED)
    store, path = ctx.storage, ctx.layout.timeline_path
    store.put(path(undo.file_name), rollback.rollback_plan(ctx, made, []))
    store.put(path(undo.with_state(State.INFLIGHT).file_name), b"")
    for info in store.list():
        mine = made.time in info.path and undo.time not in info.path
        if mine and (ends or not info.path.endswith(".requested")):
            store.delete(info.path)
    if ends:
        report = rollback.rollback_record(ctx, made, undo.time, [])
        rollback.complete(ctx, undo, encode_record("HoodieRollbackMetadata", report))


def before_publication(monkeypatch: pytest.MonkeyPatch, happen: Callable[[ChainEntry], None]) -> None:
    publish = Decider.publish

    def late(decider: Decider, entry: ChainEntry, requested_at: float) -> None:
        monkeypatch.undo()
        happen(entry)
        publish(decider, entry, requested_at)

    monkeypatch.setattr(Decider, "publish", late)


def instant_of(entry: ChainEntry) -> Instant:
    found = parse_instant(entry.name)
    assert found is not None
    return found


def completed(ctx: TableContext, time: str) -> bool:
    return load_timeline(ctx).is_completed(time)


@pytest.mark.parametrize("lost", [True, False], ids=["lock lost", "lock kept"])
@pytest.mark.parametrize("ends", [True, False], ids=["taken back", "being taken back"])
def test_a_write_that_another_engine_took_back_behind_its_decision_is_not_acknowledged(
    base: Path, monkeypatch: pytest.MonkeyPatch, lost: bool, ends: bool
) -> None:
    clock, decided = Stopped(), list[Instant]()
    table = locked(base, clock)

    def happen(entry: ChainEntry) -> None:
        decided.append(instant_of(entry))
        if lost:
            lock_of(base).unlink()
        clock.seconds += 150
        taken_back(base, decided[0], ends=ends)

    before_publication(monkeypatch, happen)
    with pytest.raises(WriteAbortedError, match="another engine took the instant"):
        table.upsert(row("b", 2), batch="one")
    assert not completed(table.context, decided[0].time)
    assert values(table) == [1]
    if ends:
        assert not locked(base).upsert(row("b", 3), batch="one").replayed, "its rows are written again"
        assert values(table) == [1, 3]
        assert open_table(base).doctor() == ()


def test_a_completed_file_that_comes_when_the_write_was_taken_back_goes_again(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process can look at its clock and send in one step."""
    clock, decided, once = Stopped(), list[Instant](), retry.until_confirmed
    table = locked(base, clock)

    def late(request: Callable[[], object]) -> object:
        if threading.current_thread() is not threading.main_thread():
            return once(request)
        monkeypatch.undo()
        clock.seconds += 150
        taken_back(base, decided[0])
        return once(request)

    def happen(entry: ChainEntry) -> None:
        decided.append(instant_of(entry))
        monkeypatch.setattr(retry, "until_confirmed", late)

    before_publication(monkeypatch, happen)
    with pytest.raises(WriteAbortedError, match="another engine took the instant"):
        table.upsert(row("b", 2))
    assert not completed(table.context, decided[0].time)
    locked(base).upsert(row("b", 3))
    assert values(table) == [1, 3]
    assert open_table(base).doctor() == ()


def test_a_write_that_others_published_and_archived_while_its_writer_slept_is_acknowledged(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, others = locked(base), locked(base)
    ctx = others.context
    patient = HudiTable(replace(ctx, settings=replace(ctx.settings, quarantine_seconds=-1.0)))
    decided = list[str]()

    def happen(entry: ChainEntry) -> None:
        lock_of(base).unlink()
        decided.append(entry.instant)
        for value in range(3, 8):
            others.upsert(row("a", value))
        patient.archive(KEEP, force=True)
        assert not load_timeline(ctx).claim_names(entry.instant)

    before_publication(monkeypatch, happen)
    assert table.upsert(row("b", 2)).instant == decided[0]
    assert values(table) == [2, 7]


def test_a_write_that_another_process_of_ours_published_is_acknowledged(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Stopped()
    table = locked(base, clock)

    def happen(entry: ChainEntry) -> None:
        lock_of(base).unlink()
        clock.seconds += 150
        locked(base).upsert(row("c", 3))
        assert completed(table.context, entry.instant)

    before_publication(monkeypatch, happen)
    table.upsert(row("b", 2))
    assert values(table) == [1, 2, 3]
