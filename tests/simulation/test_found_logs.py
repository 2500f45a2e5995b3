"""A committed log behind the block of a later instant that has not completed, whose process sleeps
or is dead: nothing of it is passed over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_table.api import HudiTable
from hudi_table.model.names import parse_log_file
from hudi_table.table.store.ports import Storage
from tests.support.crashes import LOG_LAYOUTS, Layout, opened, read, rows, with_logs
from tests.support.sleeping import Killed, Sleeps, waking


def log_file(call: str, path: str, data: bytes) -> bool:
    return parse_log_file(path.rpartition("/")[2]) is not None


def logs_of(store: Storage) -> set[str]:
    return {info.path for info in store.list() if log_file("", info.path, b"")}


def compacts_its_logs(table: HudiTable) -> object:
    return table.compact_logs({"hoodie.log.compaction.blocks.threshold": "2"}, force=True)


def writes(table: HudiTable) -> object:
    return table.write(rows(("a", "x", 70)), operation="upsert")


def dies_behind_its_log(store: Storage, run: Callable[[HudiTable], object]) -> None:
    with pytest.raises(Killed):
        run(waking(Sleeps(store, log_file, lambda: None, dies=True)))


def claim(call: str, path: str, data: bytes) -> bool:
    return path.endswith(".deltacommit.requested")


@pytest.mark.parametrize("layout", LOG_LAYOUTS, ids=str)
def test_a_commit_is_read_and_found_behind_the_log_of_a_later_write_that_is_under_way(layout: Layout) -> None:
    store = begun(layout)
    logs_before = logs_of(store)
    # Who is dead with a lower instant has left a log, so that the one that commits would come behind the later one's.
    dies_behind_its_log(store, writes)
    of_the_dead = logs_of(store) - logs_before

    def meanwhile() -> None:
        for path in of_the_dead:
            store.delete(path)
        dies_behind_its_log(store, writes)

    is_read_and_found(store, Sleeps(store, log_file, meanwhile))


@pytest.mark.parametrize("layout", LOG_LAYOUTS, ids=str)
def test_a_commit_is_read_and_found_behind_a_later_log_compaction_that_is_under_way(layout: Layout) -> None:
    """It was claimed before the log compaction was planned, and took its snapshot when that had
    written its log."""
    store = begun(layout)
    is_read_and_found(store, Sleeps(store, claim, lambda: dies_behind_its_log(store, compacts_its_logs), behind=True))


def begun(layout: Layout) -> Storage:
    store = with_logs(layout)
    opened(store).write(rows(("a", "x", 8), ("n", "x", 2)), operation="upsert")
    return store


def is_read_and_found(store: Storage, sleeper: Sleeps) -> None:
    before = {row for row in read(store) if row[0] != "n"}
    waking(sleeper).write(rows(("n", "x", 7), ("q", "x", 1)), operation="upsert")
    assert read(store) == before | {("n", "x", 7), ("q", "x", 1)}
    opened(store).write(rows(("q", "x", 2)), operation="upsert")
    assert read(store) == before | {("n", "x", 7), ("q", "x", 2)}
