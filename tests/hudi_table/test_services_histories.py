"""Histories that the machine of writes and services (test_services_machine.py) has found, each by
itself."""

from __future__ import annotations

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import InvalidRequestError
from hudi_table.model.service.services import ServiceType
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import has_archive
from tests.hudi_table.test_services_machine import ENGINE, RETAINED, ServedTable, expired, read


def test_the_newest_moment_stays_readable_when_the_replacement_of_what_a_clean_deleted_is_archived() -> None:
    """Found by a history: without the archived commit, the deleted file group looked as if it had
    never been replaced."""
    machine = type("Served", (ServedTable,), {"buckets": False, "logs": True})()
    machine.create()
    machine.archive()
    machine.overwrite([("a", "x", 19), ("a", "y", 25), ("b", "x", 55)])
    machine.wait(hours=2.0)
    machine.overwrite([("f", "y", 85)])
    machine.archive()
    machine.wait(hours=2.0)
    machine.clean()
    machine.upsert([("e", "y", 15), ("b", "x", 77), ("e", "x", 51)])
    machine.rewrite()
    machine.clean()
    machine.archive()
    machine.save()
    machine.readers_agree()
    machine.teardown()


def test_a_savepoint_keeps_what_an_older_plan_made_of_its_rows_after_it() -> None:
    """Found by a history: a clustering that was planned before a savepoint and executed after it is
    a part of its past, and a clean deleted what it had written; the restore lost rows."""
    machine = type("Served", (ServedTable,), {"buckets": False, "logs": False})()
    machine.create()
    machine.wait(hours=0.01)
    machine.plan(ServiceType.CLUSTERING)
    machine.archive()
    machine.overwrite([("d", "z", 0)])
    machine.save()
    saved = dict(machine.rows)
    machine.rewrite()
    for value in range(RETAINED + 1):
        machine.upsert([("a", "x", value), ("b", "x", value), ("c", "y", value)])
    machine.clean()
    machine.restore(0)
    assert read(machine.table) == saved
    machine.teardown()


def test_the_last_write_that_is_not_archived_is_not_taken_back() -> None:
    """Found by a history: a delete that found no row stood alone before the archive, and without it
    no file counted any more."""
    machine = type("Served", (ServedTable,), {"buckets": True})()
    machine.create()
    machine.delete([("b", "y", 0)])
    machine.upsert([("a", "x", 0)])
    machine.upsert([("a", "x", 0)])
    machine.archive()
    machine.rollback()
    machine.rollback()
    left = machine.past[-1][0]
    with pytest.raises(InvalidRequestError, match=f"{left} is the only write that is not archived"):
        machine.table.rollback(left, writers_stopped=True)
    machine.readers_agree()
    machine.teardown()


def test_a_reader_of_a_write_that_was_taken_back_is_told_so_though_many_rollbacks_came_after() -> None:
    """Found by a history: archiving took the oldest of many rollbacks, and a reader of the write
    that it had taken back saw other rows."""
    machine = type("Served", (ServedTable,), {})()
    machine.create()
    machine.upsert([("a", "x", 0)])
    machine.pin(pick=4)
    machine.rollback()
    for value in range(6):
        machine.overwrite([("a", "x", value)])
        machine.rollback()
    machine.archive()
    machine.readers_agree()
    assert (id(machine), machine.pins[0][0]) in expired
    machine.teardown()


def test_a_write_that_is_the_newest_again_can_be_kept_though_a_clean_came_between() -> None:
    """Found by a history: behind two rollbacks the newest moment was said to lie in the archive."""
    machine = type("Served", (ServedTable,), {"buckets": True})()
    machine.create()
    machine.archive()
    machine.clean()
    machine.rollback()
    machine.rollback()
    machine.pin(pick=-1)
    machine.save()
    machine.readers_agree()
    assert (id(machine), machine.pins[0][0]) not in expired
    machine.teardown()


@pytest.mark.parametrize("version", [6, 8, 9])
def test_files_of_archived_writes_stay_though_a_savepoint_keeps_all_writes_that_are_left(version: int) -> None:
    """Found by a history: of versions 8 and 9 the timeline began nowhere once a restore had left
    commits of savepoints alone, and what archived ones had written was not seen."""
    machine = type("Served", (ServedTable,), {"version": version})()
    machine.create()
    machine.delete([("a", "x", 0)])
    machine.save()
    ((saved, rows),) = machine.saved.items()
    for value in range(RETAINED):
        machine.upsert([("a", "x", value)])
    machine.archive()
    assert saved == load_timeline(machine.table.context).commits[0].time
    assert read(HudiTable(machine.table.context, saved)) == rows
    machine.restore(0)
    assert read(HudiTable(machine.table.context, saved)) == rows
    machine.readers_agree()
    machine.upsert([("c", "y", 9)])
    machine.readers_agree()
    machine.teardown()


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize("clean", [
    {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"},
    {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.cleaner.commits.retained": "1"},
], ids=["versions", "commits"])  # fmt: skip
@pytest.mark.parametrize("logs", [False, True], ids=["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_savepoint_is_read_behind_a_later_clean_though_older_writes_are_archived(
    version: int, logs: bool, clean: dict[str, str]
) -> None:
    """Found by a history: every moment before the clean counted as taken, that of the savepoint
    too, whose files the clean had kept."""
    machine = type("Served", (ServedTable,), {"version": version, "logs": logs})()
    machine.create()
    machine.upsert([("a", "x", 0)])
    for value in range(RETAINED + 2):
        machine.overwrite([("a", "x", value), ("b", "y", value)])
    machine.save()
    for value in range(RETAINED + 2):
        machine.upsert([("a", "x", 10 + value)])
        machine.rewrite()
    machine.archive()
    assert has_archive(machine.table.context)
    assert machine.table.services.cleaning(clean).run(engine=ENGINE)
    ((saved, rows),) = machine.saved.items()
    assert read(HudiTable(machine.table.context, saved)) == rows
    machine.readers_agree()
    machine.teardown()
