"""The key state: what it spares a writer, and that it cannot make him wrong.

Matrix: {copy-on-write, merge-on-read} × {the state knows the table, lags behind it, is lost}:
commits of others, services, a restore, a disk that fails at any call, two writers at once. What is
kept of partitions and of old groups, options, and what the table stores.

Omitted: what every index does, random steps among it (`test_conformance.py`, which runs this one
too), its runs (`test_runs.py`), processes that die (`test_deaths.py`).
"""

from __future__ import annotations

import errno
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import InvalidOptionError, WriteConflictError
from hudi_table.index.keystate import runs
from hudi_table.index.keystate.index import KeyStateIndex
from hudi_table.index.keystate.state import forget_states, held_state
from hudi_table.model.table.config import IndexType
from hudi_table.model.table.index_properties import INDEX_TYPE, KEY_STATE, STATE_PARTITIONS, STATE_TTL
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.properties import read_properties
from tests.support.decided import Killed, killed_before_publication
from tests.support.recording import RecordingStorage, Trace
from tests.support.scale import scaled
from tests.support.written import contents, keys, last_commit, new_table, rows

BOTH = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
APART = {"hoodie.parquet.small.file.limit": "0"}


def begun(kind: str = "CopyOnWrite", count: int = 6, version: int = 6) -> HudiTable:
    """A table of so many file groups, each of one key."""
    table = new_table(index="KeyState", type=kind, version=version)
    for number in range(count):
        table.insert(rows((f"k{number}", "xyz"[number % 3], number)), options=APART)
    return table


def opened_files(table: HudiTable, write: Callable[[HudiTable], object]) -> list[str]:
    """The names of the base files and logs that a write opened."""
    trace = Trace()
    ctx = table.context
    write(
        HudiTable(
            TableContext(RecordingStorage(ctx.storage, trace, "p"), ctx.config, ctx.clock, ctx.metadata, ctx.settings)
        )
    )
    names = [step.key.rpartition("/")[2] for step in trace.steps if step.call == "open_read"]
    return [name for name in names if name.endswith(".parquet") or ".log." in name]


@contextmanager
def others() -> Iterator[None]:
    """What other processes do: this one's state hears nothing of it."""
    wrote = KeyStateIndex.wrote
    KeyStateIndex.wrote = lambda *_: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        KeyStateIndex.wrote = wrote  # type: ignore[method-assign]


def known_groups(table: HudiTable) -> int:
    with held_state(table.context.storage.base_path) as state:
        return len(state.known)


@BOTH
@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_first_write_of_a_process_reads_each_file_once_and_later_ones_none_but_what_they_rewrite(
    kind: str, version: int
) -> None:
    table = begun(kind, version=version)
    forget_states()
    change = rows(("k4", "z", 40), ("k1", "y", 10), ("new", "x", 1))
    first = opened_files(table, lambda t: t.upsert(change, options=APART))
    assert len(set(first)) == 6
    holding = {
        row["_hoodie_file_name"]
        for row in table.scan(meta=True).to_arrow().to_pylist()
        if row["id"] in ("k4", "k1", "new")
    }
    again = opened_files(
        table, lambda t: t.upsert(rows(("k4", "x", 41), ("k1", "y", 11), ("new", "x", 2)), options=APART)
    )
    assert set(again) == (holding if kind == "CopyOnWrite" else set())
    assert contents(table) == [("k0", "x", 0), ("k1", "y", 11), ("k2", "z", 2), ("k3", "x", 3), ("k4", "x", 41), ("k5", "z", 5), ("new", "x", 2)]  # fmt: skip


@BOTH
def test_of_others_only_the_files_that_they_wrote_since_are_read(kind: str) -> None:
    table = begun(kind)
    table.upsert(rows(("k0", "y", 100)), options=APART)
    with others():
        result = table.upsert(rows(("k1", "x", 200), ("k9", "z", 9)), options=APART)
    news = {stat.path.rpartition("/")[2] for stat in last_commit(table).stats}
    assert result.files_written == len(news) == 3
    read = opened_files(table, lambda t: t.upsert(rows(("other", "x", 0)), options=APART))
    assert set(read) == {name for name in news if name.endswith(".parquet") or ".log." in name}
    table.upsert(rows(("k1", "y", 201), ("k9", "x", 10)))
    assert [row for row in contents(table) if row[0] in ("k0", "k1", "k9")] == [
        ("k0", "y", 100),
        ("k1", "y", 201),
        ("k9", "x", 10),
    ]


def test_a_key_that_has_moved_is_not_looked_for_where_it_was() -> None:
    table = begun("MergeOnRead")
    table.upsert(rows(("k0", "y", 1)), options=APART)
    assert table.upsert(rows(("k0", "y", 2)), options=APART).files_written == 1
    table.delete(keys(("k0", "y")))
    assert table.upsert(rows(("k0", "z", 3)), options=APART).files_written == 1
    assert ("k0", "z", 3) in contents(table)


@BOTH
def test_services_and_what_takes_commits_back_change_no_answer(kind: str) -> None:
    table = begun(kind)
    savepoint = table.savepoint().instant
    saved = contents(table)
    table.upsert(rows(("k0", "y", 1), ("k1", "z", 1), ("n", "x", 1)))
    table.restore(savepoint, writers_stopped=True)
    assert contents(table) == saved
    table.upsert(rows(("k0", "z", 2), ("n", "y", 2)))
    table.compact(force=True) if kind == "MergeOnRead" else table.cluster(force=True)
    table.rollback(table.upsert(rows(("k0", "x", 3), ("k5", "x", 3))).instant, writers_stopped=True)
    table.upsert(rows(("k5", "y", 4), ("n", "z", 4)))
    table.write(None, operation="delete_partition", partitions=["z"])
    table.upsert(rows(("n", "x", 5), ("k2", "y", 5)))
    table.write(rows(("k3", "x", 6), ("k7", "x", 6)), operation="insert_overwrite")
    table.clean({"hoodie.clean.commits.retained": "1"}, force=True)
    table.upsert(rows(("k7", "y", 7), ("n", "y", 7)))
    assert contents(table) == [("k1", "y", 1), ("k2", "y", 5), ("k3", "x", 6), ("k4", "y", 4), ("k5", "y", 4), ("k7", "y", 7), ("n", "y", 7)]  # fmt: skip


def test_rows_that_a_task_puts_into_several_files_are_found_again() -> None:
    table = new_table(index="KeyState")
    small = {"hoodie.parquet.max.file.size": "1000", "hoodie.parquet.small.file.limit": "0"}
    items = [(f"key-{number:06d}", "x", number) for number in range(3000)]
    assert table.upsert(rows(*items), options=small).files_written > 1
    result = table.upsert(rows(*((key, "y", value) for key, _, value in items)))
    assert result.rows_deleted == len(items)
    assert contents(table) == [(key, "y", value) for key, _, value in items]


def test_by_event_time_an_older_row_moves_nothing() -> None:
    table = new_table(index="KeyState", ordering_fields="ts", merge_mode="EventTime")
    table.insert(rows(("a", "x", 1, 10), ("b", "x", 2, 10), ("c", "x", 3, 10)))
    table.upsert(rows(("a", "y", 0, 9), ("b", "y", 3, 10), ("c", "x", 0, 9)))
    table.upsert(rows(("a", "y", 4, 11), ("b", "x", 0, 9), ("c", "z", 0, 9)))
    assert contents(table) == [("a", "y", 4), ("b", "y", 3), ("c", "x", 3)]


def test_a_key_whose_file_lost_its_last_row_by_event_time_comes_back_anywhere() -> None:
    table = new_table(index="KeyState", ordering_fields="ts", merge_mode="EventTime")
    table.upsert(rows(("a", "x", 1, 1)))
    table.upsert(rows(("a", "x", 1, 2, True)))
    table.upsert(rows(("a", "y", 3, 5), ("b", "z", 4, 5)))
    assert contents(table) == [("a", "y", 3), ("b", "z", 4)]


@BOTH
def test_a_row_that_deletes_its_key_leaves_nothing_that_comes_back(kind: str) -> None:
    table = new_table(index="KeyState", type=kind)
    table.insert(rows(("a", "x", 1), ("b", "x", 2)))
    table.upsert(rows(("a", "x", 1, 1, True)))
    table.upsert(rows(("a", "y", 3), ("b", "y", 4)))
    table.upsert(rows(("b", "y", 0, 1, True)))
    assert contents(table) == [("a", "y", 3)]


@BOTH
def test_keys_of_partitions_that_are_not_kept_are_found_within_their_partition_alone(kind: str) -> None:
    table = begun(kind)
    forget_states()
    kept = APART | {STATE_PARTITIONS: "[xy]"}
    table.upsert(rows(("k0", "y", 10), ("k2", "z", 20), ("k5", "x", 50)), options=kept)
    assert known_groups(table) == 4 + 2, "the groups of x and y, and two that the write began"
    stays = [("k1", "y", 1), ("k2", "z", 20), ("k3", "x", 3), ("k4", "y", 4), ("k5", "x", 50), ("k5", "z", 5)]
    assert contents(table) == [("k0", "y", 10), *stays]
    table.upsert(rows(("k0", "x", 11)), options=APART | {STATE_PARTITIONS: "x"})
    assert contents(table) == [("k0", "x", 11), ("k0", "y", 10), *stays], "a whole path matches, or does not"


class Later(SystemClock):
    """A clock of some days later."""

    days = 0

    def now(self) -> Any:
        return super().now() + timedelta(days=self.days)


def test_keys_to_whose_group_nobody_wrote_for_so_long_are_found_within_their_partition_alone() -> None:
    table, clock = begun("MergeOnRead"), Later()
    ctx = table.context
    later = HudiTable(TableContext(ctx.storage, ctx.config, clock, ctx.metadata, ctx.settings))
    old = APART | {STATE_TTL: "1.5"}
    clock.days = 1
    later.upsert(rows(("k0", "x", 10), ("k1", "z", 11)), options=old)
    assert known_groups(table) == 6 + 1
    clock.days = 2
    later.upsert(rows(("k0", "y", 20), ("k1", "x", 21), ("k2", "z", 22), ("k3", "z", 23)), options=old)
    assert contents(table) == [
        ("k0", "y", 20), ("k1", "x", 21), ("k2", "z", 22), ("k3", "x", 3), ("k3", "z", 23), ("k4", "y", 4), ("k5", "z", 5)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({STATE_PARTITIONS: "("}, r"index.partition.regex=\( is no regular expression"),
        ({STATE_TTL: "-1"}, "index.state.ttl"),
        ({STATE_TTL: "1e9"}, "index.state.ttl"),
        ({"index.bootstrap.enabled": "false"}, "always begins with the keys of the table"),
        ({"index.global.enabled": "false"}, "a key state is global"),
        ({KEY_STATE: "true"}, "create the table with index KeyState"),
        ({INDEX_TYPE: "GLOBAL_BLOOM"}, "contradicts the table, which stores 'FLINK_STATE'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_options_that_a_key_state_cannot_follow_are_refused_by_name(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        new_table(index="KeyState").upsert(rows(("a", "x", 1)), options=options)


@pytest.mark.parametrize("key", [STATE_PARTITIONS, STATE_TTL])
def test_options_of_a_key_state_are_refused_for_another_index(key: str) -> None:
    with pytest.raises(
        InvalidOptionError, match=f"option {key} is of a key state, and the table's index is GlobalSimple"
    ):
        new_table(index="GlobalSimple").upsert(rows(("a", "x", 1)), options={key: "1"})


def test_the_options_of_flink_name_it_and_the_table_stores_what_finds_the_same_keys_for_every_writer() -> None:
    told = {INDEX_TYPE: "FLINK_STATE", "index.bootstrap.enabled": "true", "index.global.enabled": "true"}
    table = new_table(index=None, options={INDEX_TYPE: "FLINK_STATE"})
    stored = read_properties(table.context.storage, table.context.clock)
    assert (stored[INDEX_TYPE], stored[KEY_STATE]) == ("GLOBAL_SIMPLE", "true")
    table.upsert(rows(("a", "x", 1)), options=told)
    table.upsert(rows(("a", "y", 2)), options=told)
    assert contents(table) == [("a", "y", 2)]
    assert open_table(table.base_path).context.config.index == table.context.config.index
    assert table.context.config.index is not None
    assert table.context.config.index.type is IndexType.KEY_STATE


@pytest.mark.parametrize("other", ["GlobalSimple", "GlobalBloom", "RecordIndex"])
def test_a_table_of_another_global_index_becomes_one_and_goes_back(other: str) -> None:
    moves = {"hoodie.record.index.update.partition.path": "true"} if other == "RecordIndex" else {}
    table = new_table(index=other, options=moves)
    table.insert(rows(("a", "x", 1), ("b", "x", 2)))
    table.use_index("KeyState")
    table.upsert(rows(("a", "y", 3)))
    table.use_index(other)
    assert KEY_STATE not in read_properties(table.context.storage, table.context.clock)
    table.upsert(rows(("a", "x", 4), ("b", "y", 5)))
    assert contents(table) == [("a", "x", 4), ("b", "y", 5)]


class Failing:
    """A file whose disk is full from call number `room` on."""

    left = 0

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @classmethod
    def meet(cls) -> None:
        cls.left -= 1
        if cls.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    def __enter__(self) -> Failing:
        return self

    def __exit__(self, *_: object) -> None:
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        if name in ("write", "flush"):
            self.meet()
        return getattr(self.inner, name)


@BOTH
def test_a_disk_that_is_full_at_any_call_of_the_state_costs_time_and_no_row(
    kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, figure: Callable[[int, str], None]
) -> None:
    monkeypatch.setattr(runs, "HELD_ENTRIES", 0)
    plain, room = tempfile.TemporaryFile, 0
    while True:
        monkeypatch.setattr(tempfile, "TemporaryFile", plain)
        table = begun(kind, 3)

        def full(*arguments: Any, **more: Any) -> Failing:
            Failing.meet()
            return Failing(plain(*arguments, **more))

        Failing.left = room
        monkeypatch.setattr(tempfile, "TemporaryFile", full)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            table.upsert(rows(("k0", "y", 10), ("k1", "x", 11), ("n", "z", 1)), options=APART)
            table.upsert(rows(("k0", "z", 20), ("n", "x", 2)), options=APART)
        assert contents(table) == [("k0", "z", 20), ("k1", "x", 11), ("k2", "z", 2), ("n", "x", 2)], (
            f"room for {room} calls"
        )
        if Failing.left >= 0:
            break
        assert "free space in the folder for temporary files" in caplog.text
        Failing.left = 1 << 30
        assert set(opened_files(table, lambda t: t.upsert(rows(("k1", "y", 3)), options=APART)))
        assert [row for row in contents(table) if row[0] == "k1"] == [("k1", "y", 3)]
        room += 1
    figure(room, "calls at which the disk of a key state was full")
    assert room > 10


@BOTH
def test_of_two_writers_at_once_each_finds_what_the_other_wrote(kind: str, figure: Callable[[int, str], None]) -> None:
    """One acts between the other's look-up and its commit, by turns with and without the state
    hearing of it."""
    table, model = begun(kind), {f"k{number}": ("xyz"[number % 3], number) for number in range(6)}
    conflicts, steps = 0, scaled(200, quick=12)
    for step in range(steps):
        mine, theirs = f"k{step % 6}", f"k{step * 5 % 6}"
        city = "xyz"[(step // 2) % 3]

        def meanwhile(key: str = theirs, place: str = city, value: int = step) -> None:
            with others():
                open_table(table.base_path).upsert(rows((key, place, -value)), options=APART)
            model[key] = (place, -value)

        with Meanwhile(meanwhile):
            try:
                table.upsert(rows((mine, "zxy"[step % 3], step)), options=APART)
                model[mine] = ("zxy"[step % 3], step)
            except WriteConflictError:
                conflicts += 1
        assert contents(table) == sorted((key, *place) for key, place in model.items()), f"step {step}"
    assert 0 < conflicts < steps
    figure(steps, "writes with a key state between whose look-up and commit another came")


class Meanwhile:
    """Something that happens once, right after the next look-up."""

    def __init__(self, happen: Callable[[], None]) -> None:
        self.happen, self.route = happen, KeyStateIndex.route

    def __enter__(self) -> None:
        def route(index: KeyStateIndex, *arguments: Any) -> Any:
            answer = self.route(index, *arguments)
            KeyStateIndex.route = self.route  # type: ignore[method-assign]
            self.happen()
            return answer

        KeyStateIndex.route = route  # type: ignore[method-assign,assignment]

    def __exit__(self, *_: object) -> None:
        KeyStateIndex.route = self.route  # type: ignore[method-assign]


@BOTH
@pytest.mark.parametrize("version", [6, 8, 9])
def test_keys_of_a_write_whose_process_died_behind_its_decision_are_found_by_the_write_that_publishes_it(
    kind: str, version: int
) -> None:
    table = begun(kind, version=version)
    with killed_before_publication(), others(), suppress(Killed):
        HudiTable(table.context).upsert(rows(("k0", "y", 100), ("k1", "z", 100), ("new", "x", 100)), options=APART)
    assert contents(table) == sorted((f"k{number}", "xyz"[number % 3], number) for number in range(6))
    table.upsert(rows(("k0", "z", 200), ("new", "y", 200)), options=APART)
    kept = [(f"k{number}", "xyz"[number % 3], number) for number in range(2, 6)]
    assert contents(table) == sorted([("k0", "z", 200), ("k1", "z", 100), ("new", "y", 200), *kept])


def test_a_process_keeps_the_states_of_few_tables() -> None:
    for number in range(40):
        with held_state(f"memory://table-{number}/t") as state:
            state.alive = state.alive[:0]
    from hudi_table.index.keystate import state as module

    assert len(module._STATES) == module.STATES_MAX
