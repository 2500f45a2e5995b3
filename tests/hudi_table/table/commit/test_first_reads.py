"""Under a lock of both a write of another engine that began before ours reads before ours is
decided."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.metadata.port import open_context
from hudi_table.model.options.lock_settings import FileLockSettings
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.beside import first_reads
from hudi_table.table.commit.beside.locking import section, with_lock
from hudi_table.table.commit.transaction import begin
from hudi_table.table.locks.file_system import FileSystemLock
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import draw_instant
from tests.support.beside import seen_anew
from tests.support.recording import RecordingStorage, Trace
from tests.support.tables import memory_storage

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms_between_retry": "10",
}
PATIENCE = 60.0


class Theirs:
    """A writer of another engine, step by step: claim, lock, read, inflight."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.time = draw_instant(open_table(base).context)
        self.lock = FileSystemLock(SystemClock(), FileLockSettings(str(base / ".hoodie")), pause=0.01)

    @property
    def heartbeat(self) -> Path:
        return self.base / ".hoodie" / ".heartbeat" / self.time

    def claims(self) -> None:
        self.heartbeat.parent.mkdir(exist_ok=True)
        self.heartbeat.touch()
        self._file("commit.requested").touch()

    def reads(self) -> list[int]:
        held = self.lock.acquire(PATIENCE)
        try:
            found = values(open_table(self.base))
            self._file("inflight").touch()
            return found
        finally:
            held.release()

    def _file(self, kind: str) -> Path:
        folder = self.base / ".hoodie"
        timeline = folder / "timeline"
        return (timeline if timeline.is_dir() else folder) / f"{self.time}.{kind}"


def row(key: str, value: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "v": value}], schema=SCHEMA)


def values(table: HudiTable) -> list[int]:
    return sorted(seen_anew(table).scan().to_arrow()["v"].to_pylist())


def made(folder: Path, version: int = 6) -> Path:
    create_table(folder / "t", SCHEMA, record_key="id", version=version).upsert(row("a", 1))
    return folder / "t"


@pytest.fixture
def given_back(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a commit has given the lock back."""
    happened, wait = threading.Event(), first_reads._given_back

    def giving(ctx, own, seconds):
        happened.set()
        return wait(ctx, own, seconds)

    monkeypatch.setattr(first_reads, "_given_back", giving)
    return happened


def in_a_thread(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_write_of_another_engine_that_began_before_reads_before_ours_is_decided(
    tmp_path: Path, given_back: threading.Event, version: int
) -> None:
    base = made(tmp_path, version)
    theirs = Theirs(base)
    theirs.claims()
    ours = in_a_thread(lambda: open_table(base, lock=LOCK).upsert(row("a", 2)))
    assert given_back.wait(PATIENCE)
    assert theirs.reads() == [1], "what it puts below ours is no row that it has merged from ours"
    ours.join(PATIENCE)
    assert values(open_table(base)) == [2], "it looks for conflicts and finds ours"


def test_writers_beside_the_wait_lose_nothing(tmp_path: Path, given_back: threading.Event) -> None:
    base = made(tmp_path)
    theirs = Theirs(base)
    theirs.claims()
    retry = {"hoodie.write.num.retries.on.conflict.failures": "3"}
    ours = in_a_thread(lambda: open_table(base, lock=LOCK).upsert(row("b", 2), options=retry))
    assert given_back.wait(PATIENCE)
    theirs.reads()
    open_table(base, lock=LOCK).upsert(row("a", 7), options=retry)
    ours.join(PATIENCE)
    assert values(open_table(base)) == [2, 7]


def test_who_never_reads_holds_a_commit_up_for_a_bounded_time_and_the_lock_is_free_meanwhile(
    tmp_path: Path, given_back: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_reads, "WAIT_SECONDS_MAX", 2.0)
    base = made(tmp_path)
    theirs = Theirs(base)
    theirs.claims()
    begun = time.monotonic()
    ours = in_a_thread(lambda: open_table(base, lock=LOCK).upsert(row("a", 2)))
    assert given_back.wait(PATIENCE)
    theirs.lock.acquire(1.0).release()
    ours.join(PATIENCE)
    assert time.monotonic() - begun >= 2.0
    assert values(open_table(base)) == [2]


def test_the_bound_is_five_seconds_in_all() -> None:
    assert first_reads.WAIT_SECONDS_MAX == 5.0


@pytest.mark.parametrize("beat", ["old", "none"])
def test_who_seems_dead_is_not_waited_for(tmp_path: Path, given_back: threading.Event, beat: str) -> None:
    base = made(tmp_path)
    theirs = Theirs(base)
    theirs.claims()
    long_ago = time.time() - 121
    os.utime(theirs.heartbeat, (long_ago, long_ago))
    if beat == "none":
        theirs.heartbeat.unlink()
    open_table(base, lock=LOCK).upsert(row("a", 2))
    assert not given_back.is_set()
    assert values(open_table(base)) == [2]


def test_a_write_of_ours_is_not_waited_for_and_nor_is_one_that_has_read_or_began_later(
    tmp_path: Path, given_back: threading.Event
) -> None:
    base = made(tmp_path)
    begin(open_table(base, lock=LOCK).context, Action.COMMIT)
    theirs = Theirs(base)
    theirs.claims()
    theirs.reads()
    table = open_table(base, lock=LOCK)
    txn = begin(table.context, Action.COMMIT)
    Theirs(base).claims()
    with first_reads.section_behind_reads(table.context, txn.time):
        pass
    assert not given_back.is_set()


def test_who_is_in_a_section_already_has_no_lock_to_give_back(tmp_path: Path, given_back: threading.Event) -> None:
    base = made(tmp_path)
    Theirs(base).claims()
    table = open_table(base, lock=LOCK)
    assert table.context.lock is not None
    own = draw_instant(table.context)
    with table.context.lock.section(), first_reads.section_behind_reads(table.context, own):
        pass
    assert not given_back.is_set()


@pytest.mark.parametrize(("metadata", "listings"), [("false", 1), ("true", 2)])
def test_the_timeline_is_listed_once_under_the_lock_unless_a_metadata_table_is_written_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: str, listings: int
) -> None:
    storage, trace = memory_storage(), Trace()
    options = {"hoodie.metadata.enable": metadata}
    table = create_table(storage.base_path, SCHEMA, record_key="id")
    table.upsert(row("a", 1), options=options)
    lock = {**LOCK, "hoodie.write.lock.filesystem.path": str(tmp_path)}
    recorded = HudiTable(with_lock(open_context(RecordingStorage(table.context.storage, trace)), lock))
    begun: list[int] = []

    @contextmanager
    def noting(ctx: TableContext) -> Iterator[None]:
        with section(ctx):
            begun.append(len(trace.steps))
            yield

    monkeypatch.setattr(first_reads, "section", noting)
    recorded.upsert(row("a", 2), options=options)
    inside = trace.steps[begun[0] :]
    decided = next(
        number for number, step in enumerate(inside) if step.key.startswith(".hoodie/.txn/") and step.condition
    )
    found = [step for step in inside[:decided] if (step.call, step.key) == ("list_dir", ".hoodie")]
    assert len(found) == listings, "\n".join(map(str, inside))
    assert values(recorded) == [2]
