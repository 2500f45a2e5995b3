"""A metadata table that is built while threads and processes write: afterwards it lists every file,
and has the filter and the statistics of each; what a process that was killed has begun, the next
one finishes.

Every interleaving of one writer and a building: `test_keeping.py`, `test_crash_metadata.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import WriteConflictError
from hudi_table.metadata.building_plans import pending_buildings
from hudi_table.metadata.indexing import finish_buildings
from hudi_table.metadata.table import read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from tests.support.crashes import SCHEMA, rows
from tests.support.metadata_table import missing_entries
from tests.support.scale import scaled

T = TypeVar("T")
R = TypeVar("R")
INDEXES = ("column_stats", "bloom_filters")
ALL = ("bloom_filters", "column_stats", "files")
WRITERS = 3
WRITES = 4
RETRY = {"hoodie.write.num.retries.on.conflict.failures": "50"}

KILLED = """
import os, signal, sys
from hudi_table.api import open_table
table = open_table(sys.argv[1])
put = table.context.storage.put
def last(path, data):
    put(path, data)
    if sys.argv[2] in path:
        os.kill(os.getpid(), signal.SIGKILL)
table.context.storage.put = last
table.build_metadata(["column_stats", "bloom_filters"])
"""


def new_table(base: Path, kind) -> HudiTable:
    table = create_table(str(base), SCHEMA, record_key="id", partition_by="city", index="Simple", type=kind, version=6)
    table.upsert(rows(("a", "x", 0), ("b", "y", 0)))
    return table


def assert_whole(base: Path, expected: set[tuple[str, str, int]]) -> None:
    ctx = open_table(str(base)).context
    assert read_partitions(ctx).ready == ALL
    assert differences(ctx) == []
    assert missing_entries(ctx, ("id", "value")) == []
    found = open_table(str(base)).scan().to_arrow().to_pylist()
    assert {(row["id"], row["city"], row["value"]) for row in found} == expected


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_built_beside_threads_that_write_it_has_every_file_of_theirs(tmp_path: Path, kind: str) -> None:
    base = tmp_path / "t"
    new_table(base, kind)
    begun = threading.Barrier(WRITERS + 1)
    failures: list[BaseException] = []

    def write(number: int) -> None:
        begun.wait()
        try:
            for value in range(scaled(WRITES)):
                mine = (f"w{number}", "xyz"[number % 3], value), (f"w{number}-{value}", "x", value)
                open_table(str(base)).upsert(rows(*mine), options=RETRY)
        except BaseException as error:  # noqa: BLE001 - raised again by the test
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    begun.wait()
    assert open_table(str(base)).build_metadata(INDEXES)
    for thread in threads:
        thread.join()
    assert not failures, failures
    last = scaled(WRITES) - 1
    expected = {("a", "x", 0), ("b", "y", 0)}
    expected |= {(f"w{number}", "xyz"[number % 3], last) for number in range(WRITERS)}
    expected |= {(f"w{number}-{value}", "x", value) for number in range(WRITERS) for value in range(last + 1)}
    assert_whole(base, expected)


@pytest.mark.parametrize("at", [".indexing.inflight", ".hfile", "010.deltacommit"])
def test_what_a_killed_process_has_begun_is_written_to_by_others_and_finished_by_the_next(
    tmp_path: Path, at: str
) -> None:
    base = tmp_path / "t"
    new_table(base, "CopyOnWrite")
    ended = subprocess.run([sys.executable, "-c", KILLED, str(base), at], env=os.environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    ctx = open_table(str(base)).context
    assert len(pending_buildings(ctx, load_timeline(ctx))) == 1
    open_table(str(base)).upsert(rows(("c", "x", 1)))
    assert read_partitions(ctx).ready == ()
    assert open_table(str(base)).build_metadata(INDEXES)
    assert not finish_buildings(open_table(str(base)).context)
    open_table(str(base)).upsert(rows(("a", "x", 5)))
    assert_whole(base, {("a", "x", 5), ("b", "y", 0), ("c", "x", 1)})


@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_changes_that_a_write_has_logged_and_that_is_given_up_are_not_listed(tmp_path: Path, version: int) -> None:
    options = {"hoodie.table.cdc.enabled": "true"}
    spec: dict[str, Any] = {"record_key": "id", "partition_by": "city", "version": version, "options": options}
    table = create_table(str(tmp_path), SCHEMA, **spec)
    table.upsert(rows(("a", "x", 0)))
    other = open_table(str(tmp_path))

    class Behind(LocalEngine):
        """Others go on once the files are written."""

        def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
            done = super().map(function, items)
            if other.build_metadata():
                other.upsert(rows(("a", "x", 2)))
            return done

    with pytest.raises(WriteConflictError):
        table.upsert(rows(("a", "x", 1)), engine=Behind(1))
    assert differences(other.context) == []
