"""Two writers of one table: what one decides while the other works, and what of it excludes the
other.

The second writer runs inside the first one's source of rows or between its claim and its decision,
by a hook in the engine: no threads, no chance.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from hudi_table.api import CommitResult, HudiTable, open_table
from hudi_table.errors import WriteConflictError
from hudi_table.model.timeline.conflict_keys import KEY_LIMIT, meet
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.write.attempt import conflict_keys_of_records
from tests.support.written import INDEXES, contents, new_table, rows

T = TypeVar("T")
R = TypeVar("R")
RETRY = {"hoodie.write.num.retries.on.conflict.failures": "1"}


class Meanwhile:
    """An engine that lets something happen once, after the plan and before the first task."""

    parallelism = 1

    def __init__(self, happen: Callable[[], object]) -> None:
        self.happen: Callable[[], object] | None = happen

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        if self.happen is not None:
            happen, self.happen = self.happen, None
            happen()
        return [function(item) for item in items]

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        return map(function, items)


def write_beside(table: HudiTable, mine: Callable[..., Any], theirs: Callable[[HudiTable], object]) -> Any:
    other = open_table(table.base_path)
    return mine(engine=Meanwhile(lambda: theirs(other)))


class Paused(LocalEngine):
    """An engine that waits before or after its tasks until it is told to go on."""

    def __init__(self, *, before: threading.Event | None = None, after: threading.Event | None = None) -> None:
        super().__init__(1)
        self.before, self.after = before, after
        self.reached = threading.Event()

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        if self.before is not None:
            self._wait(self.before)
        done = super().map(function, items)
        if self.after is not None:
            self._wait(self.after)
        return done

    def _wait(self, event: threading.Event) -> None:
        self.reached.set()
        assert event.wait(60)


LAYOUTS = [("CopyOnWrite", index) for index in INDEXES] + [("MergeOnRead", index) for index in INDEXES]


@pytest.fixture(params=LAYOUTS, ids="-".join)
def table(request: pytest.FixtureRequest) -> HudiTable:
    kind, index = request.param
    made = new_table(index=INDEXES[index], type=kind)
    made.insert(rows(("a", "x", 1), ("b", "y", 2)))
    return made


def test_two_updates_of_one_key_exclude_each_other_and_the_first_decision_stands(table: HudiTable) -> None:
    with pytest.raises(WriteConflictError):
        write_beside(
            table, lambda **e: table.upsert(rows(("a", "x", 10)), **e), lambda o: o.upsert(rows(("a", "x", 20)))
        )
    assert contents(table) == [("a", "x", 20), ("b", "y", 2)]


def test_a_conflict_is_tried_again_on_the_new_snapshot_if_the_options_say_so(table: HudiTable) -> None:
    write_beside(
        table,
        lambda **e: table.upsert(rows(("a", "x", 10), ("n", "x", 1)), options=RETRY, **e),
        lambda o: o.upsert(rows(("a", "x", 20), ("n", "x", 2))),
    )
    assert contents(table) == [("a", "x", 10), ("b", "y", 2), ("n", "x", 1)]


def test_writers_of_different_partitions_both_stand(table: HudiTable) -> None:
    write_beside(table, lambda **e: table.upsert(rows(("a", "x", 10)), **e), lambda o: o.upsert(rows(("b", "y", 20))))
    assert contents(table) == [("a", "x", 10), ("b", "y", 20)]


def test_two_first_inserts_of_one_key_exclude_each_other(table: HudiTable) -> None:
    with pytest.raises(WriteConflictError):
        write_beside(table, lambda **e: table.upsert(rows(("n", "z", 1)), **e), lambda o: o.upsert(rows(("n", "z", 2))))
    assert ("n", "z", 2) in contents(table)
    assert len(contents(table)) == 3


def test_a_change_of_the_schema_excludes_every_other_write(table: HudiTable) -> None:
    wider = rows(("n", "new", 1)).append_column("extra", pa.array(["e"]))
    with pytest.raises(WriteConflictError):
        write_beside(table, lambda **e: table.upsert(rows(("m", "other", 1)), **e), lambda o: o.upsert(wider))
    assert "extra" in table.schema().names
    assert [row[0] for row in contents(table)] == ["a", "b", "n"]


def test_overwriting_a_partition_excludes_an_upsert_into_it(table: HudiTable) -> None:
    with pytest.raises(WriteConflictError):
        write_beside(
            table,
            lambda **e: table.write(rows(("o", "x", 1)), operation="insert_overwrite", **e),
            lambda o: o.upsert(rows(("a", "x", 20))),
        )
    assert contents(table) == [("a", "x", 20), ("b", "y", 2)]


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_dropping_a_partition_that_shows_no_row_excludes_who_begins_it(table: HudiTable, operation: Any) -> None:
    table.write(None, operation="delete_partition", partitions=["x"])
    with pytest.raises(WriteConflictError):
        write_beside(
            table,
            lambda **e: table.write(rows(("n", "x", 1)), operation=operation, **e),
            lambda o: o.write(None, operation="delete_partition", partitions=["x"]),
        )
    assert contents(table) == [("b", "y", 2)]


def test_one_batch_by_two_writers_is_written_once(table: HudiTable) -> None:
    with pytest.raises(WriteConflictError):
        write_beside(
            table,
            lambda **e: table.insert(rows(("n", "p1", 1)), batch="f1", **e),
            lambda o: o.insert(rows(("n", "p1", 1)), batch="f1"),
        )
    again = table.insert(rows(("n", "p1", 1)), batch="f1")
    assert again.replayed
    assert [row[0] for row in contents(table)] == ["a", "b", "n"]


def test_two_that_write_one_batch_exclude_each_other_though_their_rows_have_nothing_in_common(table: HudiTable) -> None:
    """As two processes do that read on from one checkpoint, and the later one gets more."""
    with pytest.raises(WriteConflictError):
        write_beside(
            table,
            lambda **e: table.insert(rows(("m", "p1", 1)), batch="f1", **e),
            lambda o: o.insert(rows(("n", "p2", 1)), batch="f1"),
        )
    assert [row[0] for row in contents(table)] == ["a", "b", "n"]


def test_a_failed_writer_leaves_no_file_and_the_next_write_goes_on(table: HudiTable) -> None:
    with pytest.raises(WriteConflictError):
        write_beside(
            table, lambda **e: table.upsert(rows(("a", "x", 10)), **e), lambda o: o.upsert(rows(("a", "x", 20)))
        )
    before = {info.path for info in table.context.storage.list("x")}
    named = {row["base_file"] for row in table.files().to_pylist()}
    assert {path for path in before if path.endswith(".parquet")} <= {name for name in named if name}
    table.upsert(rows(("a", "x", 30)))
    assert ("a", "x", 30) in contents(table)


def test_a_pending_log_of_a_later_write_hides_nothing_of_an_earlier_one(table: HudiTable) -> None:
    """Readers of logs stop at the first block later than their snapshot."""
    go_early, go_late = threading.Event(), threading.Event()
    early, late = Paused(before=go_early), Paused(after=go_late)

    def upsert(value: int, engine: Paused) -> Future[CommitResult]:
        other = open_table(table.base_path)
        running = pool.submit(lambda: other.upsert(rows(("a", "x", value)), engine=engine))
        assert engine.reached.wait(60)
        return running

    with ThreadPoolExecutor(2) as pool:
        first = upsert(10, early)
        second = upsert(20, late)
        go_early.set()
        first.result(60)
        assert contents(table) == [("a", "x", 10), ("b", "y", 2)]
        go_late.set()
        with pytest.raises(WriteConflictError):
            second.result(60)
    assert contents(table) == [("a", "x", 10), ("b", "y", 2)]


def test_many_inserted_keys_touch_their_whole_partition() -> None:
    few = conflict_keys_of_records([("p", pa.array(["a", "b"])), ("q", pa.array(["a"]))], is_global=False)
    many = conflict_keys_of_records([("p", pa.array([str(i) for i in range(KEY_LIMIT + 1)]))], is_global=False)
    assert len(few) == 3
    assert len(many) == 1
    assert meet(few, many)
    assert not meet(many, conflict_keys_of_records([("q", pa.array(["a"]))], is_global=False))


def test_keys_of_a_global_index_meet_across_partitions() -> None:
    left, right = (conflict_keys_of_records([(partition, pa.array(["a"]))], is_global=True) for partition in "pq")
    assert meet(left, right)
    assert not meet(*(conflict_keys_of_records([(partition, pa.array(["a"]))], is_global=False) for partition in "pq"))
