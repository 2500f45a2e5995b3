"""The heartbeats that a write shows where other engines share the table."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import InvalidOptionError, UnavailableError, UnsupportedTableError
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit import transaction
from hudi_table.table.commit.beside.heartbeat import Heartbeat
from hudi_table.table.commit.transaction import begin
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import draw_instant
from tests.hudi_table.table.commit.test_locking import PATIENT, base, heartbeats, row, theirs, values
from tests.support.faults import Fault, FaultPlan, FaultyStorage

__all__ = ["base"]
INTERVAL, MISSES = "hoodie.client.heartbeat.interval_in_ms", "hoodie.client.heartbeat.tolerable.misses"


def claim_of(table: HudiTable, instant: str) -> Path:
    ctx = table.context
    return Path(table.base_path) / ctx.layout.timeline_path(f"{instant}.commit.requested")


def heartbeat_of(base: Path, instant: str) -> Path:
    return base / ".hoodie" / ".heartbeat" / instant


def instants(monkeypatch: pytest.MonkeyPatch, drawn: Callable[[list[str]], None]) -> list[str]:
    """Instants that are drawn from now on; each time something happens right behind that."""
    found = list[str]()

    def drawing(ctx: TableContext, floor: str = "") -> str:
        found.append(draw_instant(ctx, floor))
        drawn(found)
        return found[-1]

    monkeypatch.setattr(transaction, "draw_instant", drawing)
    return found


@pytest.mark.parametrize("times", [1, 9])
def test_the_first_heartbeat_of_an_executor_is_sent_again_where_its_reply_is_lost(base: Path, times: int) -> None:
    lost = FaultPlan(1, Fault.LOST_REQUEST, times=times)
    ctx = open_table(base, lock=PATIENT).context
    away = replace(ctx, storage=FaultyStorage(ctx.storage, lost))
    told = pytest.raises(UnavailableError, match="did not confirm a request") if times > 1 else nullcontext()
    with told, Heartbeat(away, "20260101000000000").beats():
        assert [path.name for path in heartbeats(base)] == ["20260101000000000"]


def test_a_claim_that_is_drawn_again_leaves_no_heartbeat(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table(base, lock=PATIENT)

    def taken(drawn: list[str]) -> None:
        if len(drawn) <= 3:
            claim_of(table, drawn[-1]).touch()

    drawn = instants(monkeypatch, taken)
    table.upsert(row("b", 2))
    assert len(drawn) == 4
    assert heartbeats(base) == []
    assert values(table) == [1, 2]


def test_the_heartbeat_of_another_engine_at_the_instant_that_we_draw_stays_as_it_is(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi's writers show theirs before their claim, too; it is empty, and by that it is known as
    theirs."""
    table = open_table(base, lock=PATIENT)

    def begun(drawn: list[str]) -> None:
        if len(drawn) == 1:
            heartbeat_of(base, drawn[0]).parent.mkdir(exist_ok=True)
            heartbeat_of(base, drawn[0]).touch()

    drawn = instants(monkeypatch, begun)
    table.upsert(row("b", 2))
    assert heartbeats(base) == [heartbeat_of(base, drawn[0])]
    assert heartbeat_of(base, drawn[0]).read_bytes() == b""
    assert not claim_of(table, drawn[0]).exists(), "the instant is the other's"


def test_a_heartbeat_that_another_engine_wrote_over_ours_is_not_deleted(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_table(base, lock=PATIENT)
    create = LocalStorage.put_if_absent
    drawn = instants(monkeypatch, lambda _: None)

    def creating(store: LocalStorage, path: str, data: bytes) -> None:
        if path.endswith(".requested") and len(drawn) == 1:
            heartbeat_of(base, drawn[0]).write_bytes(b"")
            claim_of(table, drawn[0]).touch()
        create(store, path, data)

    monkeypatch.setattr(LocalStorage, "put_if_absent", creating)
    table.upsert(row("b", 2))
    assert heartbeats(base) == [heartbeat_of(base, drawn[0])]


def test_a_write_that_is_refused_beside_a_change_of_version_leaves_no_heartbeat(base: Path) -> None:
    table = open_table(base, lock=PATIENT)
    note = base / ".hoodie" / ".upgrade" / "change.json"
    note.parent.mkdir()
    note.write_text('{"from": 6, "to": 8, "attempt": "another"}')
    with pytest.raises(UnsupportedTableError):
        begin(table.context, Action.COMMIT)
    assert heartbeats(base) == []


def begun(base: Path) -> Path:
    end = time.monotonic() + 30
    while not (found := heartbeats(base)) and time.monotonic() < end:
        time.sleep(0.02)
    return found[0]


def beats_of(path: Path, seconds: float) -> int:
    """How often a file is written within some seconds."""
    ages, end = set[int](), time.monotonic() + seconds
    while time.monotonic() < end:
        ages.add(path.stat().st_mtime_ns)
        time.sleep(0.02)
    return len(ages) - 1


@pytest.mark.parametrize("where", ["lock", "options"])
def test_heartbeats_come_as_often_as_hudis_options_say(base: Path, where: str) -> None:
    often = {INTERVAL: "4000", MISSES: "1"}
    table = open_table(base, lock=PATIENT | (often if where == "lock" else {}))
    held = theirs(base).acquire(0)
    writing = threading.Thread(target=lambda: table.upsert(row("b", 2), options=often if where == "options" else {}))
    writing.start()
    try:
        assert 2 <= beats_of(begun(base), 3.5) <= 4, "four times before others would take it for dead"
    finally:
        held.release()
        writing.join(60)
    assert values(table) == [1, 2]


def test_heartbeats_come_within_the_interval_where_many_may_be_missed(base: Path) -> None:
    table = open_table(base, lock=PATIENT | {INTERVAL: "10000", MISSES: "6"})
    assert table.context.heartbeat.period == 10
    assert table.context.heartbeat.tolerance == 60
    assert open_table(base, lock=PATIENT).context.heartbeat.period == 30, "Hudi's defaults"
    assert open_table(base, lock=PATIENT).context.heartbeat.tolerance == 120


@pytest.mark.parametrize("option", [INTERVAL, MISSES])
def test_a_heartbeat_that_never_comes_is_refused_by_the_options_name(base: Path, option: str) -> None:
    with pytest.raises(InvalidOptionError, match=option):
        open_table(base, lock=PATIENT | {option: "0"})


def test_heartbeats_alone_name_no_lock(base: Path) -> None:
    with pytest.raises(InvalidOptionError, match="names no lock"):
        open_table(base, lock={INTERVAL: "10000"})


def test_a_write_that_waits_for_the_lock_to_recover_others_goes_on_to_show_that_it_lives(base: Path) -> None:
    often = {INTERVAL: "4000", MISSES: "1"}
    table = open_table(base, lock=PATIENT | often)
    dead = begin(open_table(base).context, Action.COMMIT).instant
    for path in base.rglob(f"{dead.time}*"):
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    held = theirs(base).acquire(0)
    writing = threading.Thread(target=lambda: table.upsert(row("b", 2)))
    writing.start()
    try:
        assert beats_of(begun(base), 3.5) >= 2
    finally:
        held.release()
        writing.join(60)
    assert values(table) == [1, 2]
