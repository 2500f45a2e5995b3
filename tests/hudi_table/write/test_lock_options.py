"""Hudi's options of a lock on every surface that takes options: a write, a service and a table that
is created with them hold it."""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hudi_table.api import HudiTable, create_table, open_table, write_hudi
from hudi_table.errors import InvalidOptionError, UnavailableError
from hudi_table.model.options.known import IgnoredOptionWarning
from hudi_table.model.options.lock_settings import FileLockSettings
from hudi_table.table.locks.file_system import FileSystemLock
from hudi_table.table.store.clock import SystemClock
from tests.support.written import SCHEMA, contents, rows

CLASSES = "org.apache.hudi.client.transaction.lock"
FILE = {"hoodie.write.lock.provider": f"{CLASSES}.FileSystemBasedLockProvider"}
IMPATIENT = {"hoodie.write.lock.wait_time_ms": "1", "hoodie.write.lock.client.num_retries": "0"}
STORAGE = {"hoodie.write.lock.provider": f"{CLASSES}.StorageBasedLockProvider"}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
CONTROL = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
Options = Mapping[str, str]


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = create_table(tmp_path / "t", SCHEMA, record_key="id")
    made.upsert(rows(("a", "x", 1)))
    return made


def taken(folder: Path) -> FileSystemLock:
    return FileSystemLock(SystemClock(), FileLockSettings(str(folder)), pause=0.01)


CALLS: dict[str, Callable[[HudiTable, Options], object]] = {
    "upsert": lambda t, o: t.upsert(rows(("a", "x", 2)), options=o),
    "write_hudi": lambda t, o: write_hudi(t.context.base_path, rows(("a", "x", 2)), options=o),
    "write_hudi with lock": lambda t, o: write_hudi(t.context.base_path, rows(("a", "x", 2)), lock=o),
    "open_table": lambda t, o: open_table(t.context.base_path, lock=o).upsert(rows(("a", "x", 2))),
    "create_table": lambda t, o: create_table(
        t.context.base_path, SCHEMA, record_key="id", options=o, if_exists="open"
    ).upsert(rows(("a", "x", 2))),
    "create_table with lock": lambda t, o: create_table(
        t.context.base_path, SCHEMA, record_key="id", lock=o, if_exists="open"
    ).upsert(rows(("a", "x", 2))),
    "cluster": lambda t, o: t.cluster(o, force=True),
    "clean": lambda t, o: t.clean(ONE_VERSION | dict(o)),
}


@pytest.mark.parametrize("call", CALLS)
def test_options_of_a_write_name_the_lock_that_it_holds(call: str, table: HudiTable, tmp_path: Path) -> None:
    table.upsert(rows(("a", "x", 1)))  # so that there is something to clean
    options = {"hoodie.write.lock.provider": f"{CLASSES}.FileSystemBasedLockProvider"} | IMPATIENT
    held = taken(tmp_path / "t" / ".hoodie").acquire(0)
    with pytest.raises(UnavailableError, match="was not to be had"):
        CALLS[call](table, options)
    held.release()
    CALLS[call](table, options)
    taken(tmp_path / "t" / ".hoodie").acquire(0).release()


def test_a_write_holds_the_file_that_the_file_system_options_describe(table: HudiTable, tmp_path: Path) -> None:
    options = FILE | IMPATIENT | {"hoodie.write.lock.filesystem.path": str(tmp_path)}
    held = taken(tmp_path).acquire(0)
    stale = options | {"hoodie.write.lock.filesystem.expire": "1"}
    with pytest.raises(UnavailableError):
        table.upsert(rows(("a", "x", 2)), options=stale)
    os.utime(tmp_path / "lock", (time.time() - 90, time.time() - 90))
    with pytest.raises(UnavailableError):
        table.upsert(rows(("a", "x", 2)), options=options)
    table.upsert(rows(("a", "x", 3)), options=stale)
    held.release()
    assert contents(table) == [("a", "x", 3)]


def test_a_write_holds_the_object_that_the_storage_options_describe(table: HudiTable, tmp_path: Path) -> None:
    more = {
        "hoodie.write.lock.storage.validity.timeout.secs": "20",
        "hoodie.write.lock.storage.renew.interval.secs": "2",
    }
    before = time.time()
    table.upsert(rows(("a", "x", 2)), options=STORAGE | more)
    found = json.loads((tmp_path / "t" / ".hoodie" / ".locks" / "table_lock.json").read_text())
    assert found["expired"] is True
    assert before + 20 <= found["validUntil"] / 1000 + 0.001 <= time.time() + 20
    with pytest.raises(InvalidOptionError, match="less than ten times"):
        table.upsert(
            rows(("a", "x", 2)), options=STORAGE | more | {"hoodie.write.lock.storage.renew.interval.secs": "3"}
        )


def test_who_waits_for_the_lock_waits_as_long_as_the_options_say(table: HudiTable, tmp_path: Path) -> None:
    held = taken(tmp_path / "t" / ".hoodie").acquire(0)
    short = {
        "hoodie.write.lock.wait_time_ms": "10",
        "hoodie.write.lock.client.num_retries": "2",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "35",
    }
    with pytest.raises(UnavailableError, match=r"within 0\.1 seconds"):
        table.upsert(rows(("a", "x", 2)), options=FILE | short)
    begun = time.monotonic()
    threading.Timer(0.5, held.release).start()
    table.upsert(rows(("a", "x", 3)), options=FILE | {"hoodie.write.lock.wait_time_ms_between_retry": "50"})
    assert 0.4 < time.monotonic() - begun < 40


def test_optimistic_concurrency_control_needs_a_lock_by_name(table: HudiTable, tmp_path: Path) -> None:
    calls = (
        lambda o: table.upsert(rows(("a", "x", 2)), options=o),
        lambda o: table.clean(o),
        lambda o: create_table(tmp_path / "other", SCHEMA, record_key="id", options=o),
    )
    for call in calls:
        with pytest.raises(InvalidOptionError, match=r"hoodie\.write\.lock\.provider"):
            call({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"})
    table.upsert(rows(("a", "x", 2)), options=CONTROL | FILE)
    open_table(tmp_path / "t", lock=FILE).upsert(rows(("a", "x", 3)), options=CONTROL)
    with pytest.raises(InvalidOptionError, match="NON_BLOCKING"):
        table.upsert(
            rows(("a", "x", 4)), options=FILE | {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
        )
    assert contents(table) == [("a", "x", 3)]


def test_a_lock_of_threads_alone_is_told_to_do_nothing(table: HudiTable) -> None:
    alone = {"hoodie.write.lock.provider": f"{CLASSES}.InProcessLockProvider"}
    with pytest.warns(IgnoredOptionWarning, match="excludes nobody outside of its process"):
        table.upsert(rows(("a", "x", 2)), options=CONTROL | alone)
    with pytest.raises(InvalidOptionError, match="names no lock"):
        open_table(table.context.base_path, lock=alone)


def test_a_lock_that_cannot_be_is_refused_with_the_reason(table: HudiTable) -> None:
    hive = {"hoodie.write.lock.provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"}
    for call in CALLS.values():
        with pytest.raises(InvalidOptionError, match="has not been shown to exclude"):
            call(table, hive)
        with pytest.raises(InvalidOptionError, match=r"zookeeper\.base_path' is missing"):
            call(table, {"hoodie.write.lock.provider": f"{CLASSES}.ZookeeperBasedLockProvider"})
    with pytest.raises(InvalidOptionError, match=r"hoodie\.write\.lock\.wait_time_ms' is of a lock"):
        table.upsert(rows(("a", "x", 2)), options={"hoodie.write.lock.wait_time_ms": "5"})


def test_a_call_names_no_other_lock_than_the_table_was_opened_with(table: HudiTable) -> None:
    opened = open_table(table.context.base_path, lock=FILE)
    opened.upsert(rows(("a", "x", 2)), options=FILE | {"hoodie.write.lock.provider": "FileSystemBasedLockProvider"})
    with pytest.raises(InvalidOptionError, match="another lock"):
        opened.upsert(rows(("a", "x", 3)), options=STORAGE)
    with pytest.raises(InvalidOptionError, match="another lock"):
        opened.clean(STORAGE)


def test_a_table_that_is_created_with_a_lock_says_nothing_of_options_that_do_nothing(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", IgnoredOptionWarning)
        made = create_table(tmp_path / "t", SCHEMA, record_key="id", options=FILE | CONTROL)
    assert made.context.lock is not None
    assert not any(name.startswith("hoodie.write.") for name in made.properties)
