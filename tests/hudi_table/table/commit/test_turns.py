"""A write that has lost an attempt is let go first by those that began later and touch what it
does."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.metadata.validate import differences
from hudi_table.model.names import TURNS
from hudi_table.model.timeline.conflict_keys import TABLE
from hudi_table.table.commit.beside import turns
from hudi_table.table.commit.beside.turns import Line
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.context import TxnSettings
from tests.support.beside import seen_anew

T = TypeVar("T")
R = TypeVar("R")
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", pa.int64())])
RETRY = {"hoodie.write.num.retries.on.conflict.failures": "5"}
LOCK = {
    "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms_between_retry": "10",
}
PATIENCE = 60.0


class Steps(LocalEngine):
    """An engine that does something before the tasks of each attempt."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__(1)
        self.steps, self.attempts = list(steps), 0

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        self.attempts += 1
        if self.attempts <= len(self.steps):
            self.steps[self.attempts - 1]()
        return super().map(function, items)


@pytest.fixture(params=[6, 9])
def base(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    bucket = {"type": "Bucket", "buckets": 1}
    table = create_table(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="city", index=bucket, version=request.param
    )
    table.upsert(row("a", 1))
    return tmp_path / "t"


def row(key: str, value: int, city: str = "x") -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "city": city, "v": value}], schema=SCHEMA)


def values(base: Path) -> list[int]:
    return sorted(seen_anew(open_table(base)).scan().to_arrow()["v"].to_pylist())


def shown(base: Path) -> list[Path]:
    return sorted((base / TURNS).glob("*")) if (base / TURNS).is_dir() else []


def beats(base: Path, value: int) -> Callable[[], object]:
    """Another writer commits to the same bucket meanwhile."""
    return lambda: open_table(base).upsert(row("other", value))


def started(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a write waits for another's turn."""
    happened, wait = threading.Event(), turns.Place._wait

    def waiting(place: turns.Place) -> None:
        happened.set()
        wait(place)

    monkeypatch.setattr(turns.Place, "_wait", waiting)
    monkeypatch.setattr(turns, "LOOK_SECONDS_MAX", 0.5)
    return happened


def left_turn(base: Path, *, age: float = 0.0, touches: tuple[str, ...] = (TABLE,)) -> Path:
    """A turn whose writer has died, as long ago."""
    path = base / TURNS / "20200101000000000"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"touches": touches}))
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_a_write_that_has_lost_an_attempt_shows_its_turn_until_it_ends(base: Path) -> None:
    seen: list[list[Path]] = []

    def first() -> None:
        seen.append(shown(base))
        beats(base, 2)()

    engine = Steps(first, lambda: seen.append(shown(base)))
    open_table(base).upsert(row("a", 5), options=RETRY, engine=engine)
    assert [len(each) for each in seen] == [0, 1]
    assert shown(base) == []
    assert not (base / TURNS).exists()
    assert values(base) == [2, 5]


def test_one_that_does_not_try_again_has_none_and_one_that_fails_leaves_none(base: Path) -> None:
    with pytest.raises(WriteConflictError):
        open_table(base).upsert(row("a", 5), engine=Steps(beats(base, 2)))
    assert shown(base) == []
    once = {"hoodie.write.num.retries.on.conflict.failures": "1"}

    # Decided behind the turn's back, as by one that looked before it was there.
    def overtaken() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(turns.Place, "refuse_before_others", lambda *_: None)
            beats(base, 3)()

    engine = Steps(beats(base, 2), overtaken)
    with pytest.raises(WriteConflictError):
        open_table(base).upsert(row("a", 5), options=once, engine=engine)
    assert engine.attempts == 2
    assert shown(base) == []


@pytest.mark.parametrize("lock", [None, LOCK], ids=["without a lock", "under a lock"])
def test_one_that_began_later_waits_until_it_has_committed(
    base: Path, waits: threading.Event, lock: dict[str, str] | None
) -> None:
    later: list[threading.Thread] = []
    second = Steps()

    def comes_later() -> None:
        later.append(started(lambda: open_table(base, lock=lock).upsert(row("b", 7), options=RETRY, engine=second)))
        assert waits.wait(PATIENCE)
        assert values(base) == [1, 2]

    first = Steps(beats(base, 2), comes_later)
    open_table(base, lock=lock).upsert(row("a", 5), options=RETRY, engine=first)
    later[0].join(PATIENCE)
    assert (first.attempts, second.attempts) == (2, 2)
    assert values(base) == [2, 5, 7]
    assert shown(base) == []


@pytest.mark.parametrize("lock", [None, LOCK], ids=["without a lock", "under a lock"])
def test_what_waits_has_told_the_metadata_table_what_counts(
    base: Path, waits: threading.Event, lock: dict[str, str] | None
) -> None:
    keeps = RETRY | {"hoodie.metadata.enable": "true"}
    open_table(base).upsert(row("a", 1), options=keeps)
    later: list[threading.Thread] = []

    def comes_later() -> None:
        later.append(started(lambda: open_table(base, lock=lock).upsert(row("b", 7), options=keeps)))
        assert waits.wait(PATIENCE)

    first = Steps(beats(base, 2), comes_later)
    open_table(base, lock=lock).upsert(row("a", 5), options=keeps, engine=first)
    later[0].join(PATIENCE)
    assert values(base) == [2, 5, 7]
    assert differences(open_table(base).context) == []


def test_one_that_does_not_try_again_waits_too_and_conflicts_then(base: Path, waits: threading.Event) -> None:
    errors: list[BaseException] = []
    later: list[threading.Thread] = []

    def write() -> None:
        try:
            open_table(base).upsert(row("b", 7))
        except WriteConflictError as error:
            errors.append(error)

    def comes_later() -> None:
        later.append(started(write))
        assert waits.wait(PATIENCE)

    open_table(base).upsert(row("a", 5), options=RETRY, engine=Steps(beats(base, 2), comes_later))
    later[0].join(PATIENCE)
    assert len(errors) == 1
    assert values(base) == [2, 5]


def test_one_that_touches_something_else_does_not_wait(base: Path, waits: threading.Event) -> None:
    engine = Steps(beats(base, 2), lambda: open_table(base).upsert(row("c", 7, "elsewhere"), options=RETRY))
    open_table(base).upsert(row("a", 5), options=RETRY, engine=engine)
    assert not waits.is_set()
    assert values(base) == [2, 5, 7]


def test_one_that_began_earlier_goes_before_it_and_then_it_is_its_turn(base: Path, waits: threading.Event) -> None:
    release, reached = threading.Event(), threading.Event()

    def rests() -> None:
        reached.set()
        release.wait(PATIENCE)

    # It tries again, since its first attempt is lost to the one that has committed already.
    earlier = Steps(rests)
    thread = started(lambda: open_table(base).upsert(row("b", 7), options=RETRY, engine=earlier))
    assert reached.wait(PATIENCE)

    def earlier_ends() -> None:
        release.set()
        thread.join(PATIENCE)

    first = Steps(beats(base, 3), earlier_ends)
    open_table(base).upsert(row("a", 5), options=RETRY, engine=first)
    assert (earlier.attempts, first.attempts) == (2, 3)
    assert not waits.is_set()
    assert values(base) == [3, 5, 7]


def test_a_turn_that_a_dead_writer_left_is_deleted_and_not_waited_for(base: Path, waits: threading.Event) -> None:
    left = left_turn(base, age=901)
    open_table(base).upsert(row("a", 5), options=RETRY)
    assert not waits.is_set()
    assert not left.exists()


def test_a_turn_without_a_sign_of_life_for_half_a_minute_is_that_of_a_dead_writer(
    base: Path, waits: threading.Event
) -> None:
    left = left_turn(base, age=turns.LIFE_SECONDS_MAX + 5)
    open_table(base).upsert(row("a", 2))
    assert not waits.is_set()
    assert not left.exists()


def test_a_turn_is_waited_for_no_longer_than_its_writer_seems_alive(base: Path, waits: threading.Event) -> None:
    table = HudiTable(open_context(open_table(base).context.storage, settings=TxnSettings(3600.0, 30.0)))
    left_turn(base, age=27)
    begun = time.monotonic()
    table.upsert(row("a", 5), options=RETRY)
    assert waits.is_set()
    assert 1 < time.monotonic() - begun < 20
    assert shown(base) == []


@pytest.mark.parametrize("lock", [None, LOCK], ids=["without a lock", "under a lock"])
def test_nobody_waits_longer_than_the_bound(
    base: Path, waits: threading.Event, monkeypatch: pytest.MonkeyPatch, lock: dict[str, str] | None
) -> None:
    keeps = {"hoodie.metadata.enable": "true"}
    open_table(base).upsert(row("a", 2), options=keeps)
    monkeypatch.setattr(turns, "WAIT_SECONDS_MAX", 1.0)
    left = left_turn(base)
    open_table(base, lock=lock).upsert(row("a", 5), options=keeps)
    assert waits.is_set()
    assert left.exists(), "its writer shows signs of life"
    assert values(base) == [5]
    assert differences(open_table(base).context) == []


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"touches": 1}'])
def test_what_is_no_turn_holds_nobody_up(base: Path, waits: threading.Event, text: str) -> None:
    left_turn(base).write_text(text)
    open_table(base).upsert(row("a", 5), options=RETRY)
    assert not waits.is_set()


def test_a_turn_of_very_many_keys_is_one_for_the_table(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "KEYS_MAX", 1)
    found: list[object] = []
    engine = Steps(beats(base, 2), lambda: found.append(json.loads(shown(base)[0].read_text())["touches"]))
    open_table(base).upsert(row("a", 5), options=RETRY, engine=engine)
    assert found == [[TABLE]]


def test_who_has_a_turn_is_not_held_up_by_markers_of_those_that_wait(base: Path, waits: threading.Event) -> None:
    early = RETRY | {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}
    later: list[threading.Thread] = []

    def comes_later() -> None:
        later.append(started(lambda: open_table(base).upsert(row("b", 7), options=RETRY)))
        assert waits.wait(PATIENCE)
        # The next attempt is later than that one's, whose markers are there.
        raise WriteConflictError("once more")

    engine = Steps(beats(base, 2), comes_later)
    open_table(base).upsert(row("a", 5), options=early, engine=engine)
    later[0].join(PATIENCE)
    assert engine.attempts == 3
    assert values(base) == [2, 5, 7]


def test_a_store_that_takes_no_turn_costs_nothing_but_the_turn(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table: HudiTable = open_table(base)
    line = Line(table.context, "20200101000000000", tries=True)
    monkeypatch.setattr(type(table.context.storage), "put", refused)
    line.announce(("file:x/1",))
    line.end()
    assert shown(base) == []


def refused(*_: object) -> None:
    raise WriteConflictError("no")
