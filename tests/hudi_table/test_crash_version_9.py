"""The crash points of version 6 on tables of version 9: what the suites of writes, services,
archive and hash rings try there, by the same checks, on the layouts that they do not try of version
9 themselves.

Matrix: {copy-on-write, logs, change logs, hash rings} × {each operation; schedule, execute and give
up or roll back, of compaction, log compaction, clustering, resize and split; clean, savepoint,
rollback, restore, archiving; a write beside a failed one} × each storage call × {crash before,
crash after, torn write, lost reply}, in memory; hudi-rs reads every distinct layout. Of the
metadata table of version 9: `test_crash_metadata.py`, and of one of Hudi's
`test_crash_dropping.py`.

In `make test` the suites themselves meet version 9, by one layout each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hudi_table import test_crash_archiving as archiving
from tests.hudi_table import test_crash_cleaning as cleaning
from tests.hudi_table import test_crash_clustering as clustering
from tests.hudi_table import test_crash_compaction as compaction
from tests.hudi_table import test_crash_points as writing
from tests.hudi_table import test_crash_resizing as resizing
from tests.hudi_table import test_crash_restore as restoring
from tests.hudi_table import test_crash_rings as rings
from tests.support.crashes import (
    CHANGE_LAYOUTS,
    LAYOUTS,
    LOG_LAYOUTS,
    OPERATIONS,
    RING_LAYOUT,
    Layout,
    copied,
    opened,
    prepared,
    read,
    with_a_failed_write,
    with_logs,
)
from tests.support.fault_points import ForeignReader, after_each_fault, on_table

pytestmark = pytest.mark.at_scale(2)

Figure = Callable[[int, str], None]


def later(*layouts: Layout) -> list[Layout]:
    """The same of version 9."""
    return [replace(layout, version=9) for layout in layouts]


FILES = later(*LAYOUTS[1:])
"""The first is one that the suites try themselves."""
LOGS = later(*LOG_LAYOUTS)
(CHANGES,) = later(*CHANGE_LAYOUTS[1:])
(RING,) = later(RING_LAYOUT)
BUCKETS = later(resizing.FILES, resizing.LOGS)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("layout", FILES, ids=str)
def test_a_fault_at_any_storage_call_leaves_the_old_or_the_new_table(
    layout: Layout, name: str, tmp_path: Path, figure: Figure
) -> None:
    tried(writing.Run(prepared(layout), layout, name, 900.0, tmp_path), figure)


@pytest.mark.parametrize("name", ["insert", "upsert", "delete", "insert_overwrite"])
@pytest.mark.parametrize("layout", LOGS, ids=str)
def test_a_fault_at_any_storage_call_of_a_write_to_logs_leaves_the_old_or_the_new_table(
    layout: Layout, name: str, tmp_path: Path, figure: Figure
) -> None:
    tried(writing.Run(prepared(layout), layout, name, 900.0, tmp_path), figure)


@pytest.mark.parametrize("name", ["upsert", "delete"])
def test_a_fault_at_any_storage_call_of_a_write_that_logs_its_changes_leaves_rows_and_changes_that_agree(
    name: str, tmp_path: Path, figure: Figure
) -> None:
    tried(writing.Run(prepared(CHANGES), CHANGES, name, 900.0, tmp_path), figure)


@pytest.mark.parametrize("name", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("layout", FILES[:2], ids=str)
def test_a_fault_while_a_failed_write_is_recovered_changes_nothing_else(
    layout: Layout, name: str, tmp_path: Path, figure: Figure
) -> None:
    tried(writing.Run(with_a_failed_write(prepared(layout)), layout, name, 0.0, tmp_path), figure)


@pytest.mark.parametrize("name", ["upsert", "insert", "insert_overwrite", "insert_overwrite_table", "delete_partition"])
def test_a_fault_at_any_storage_call_of_a_write_by_rings_leaves_the_old_or_the_new_table(
    name: str, tmp_path: Path, figure: Figure
) -> None:
    tried(rings.RingRun(prepared(RING), RING, name, 900.0, tmp_path), figure)


def tried(run: writing.Run, figure: Figure) -> None:
    figure(run.every_point(), "crash points of version 9")
    figure(len(run.foreign), "layouts read by hudi-rs")


@pytest.mark.parametrize("step", ["schedule", "execute", "roll back"])
def test_a_fault_at_any_storage_call_of_a_split_changes_no_row_and_the_retry_ends_it(
    step: str, tmp_path: Path, figure: Figure
) -> None:
    operate = {"schedule": rings.schedule, "execute": rings.execute, "roll back": rings.roll_back}[step]
    begun = with_logs(RING)
    for before in {"schedule": [], "execute": [rings.schedule], "roll back": [rings.schedule, rings.execute]}[step]:
        before(opened(begun))
    foreign, done = ForeignReader(tmp_path), 0
    for point in after_each_fault(begun, on_table(operate)):
        store, where = point.store, point.where
        assert read(store) == clustering.AFTER, where
        rings.check_rings(store, clustering.AFTER, where)
        foreign.check(store, clustering.AFTER, where)
        for suspect in point.suspects:
            rings.check_goes_on(copied(store), suspect, where)
        rings.check_retry(copied(store), operate, where)
        done += 1
    figure(done, "crash points of version 9")
    figure(len(foreign), "layouts read by hudi-rs")


@pytest.mark.parametrize("step", ["schedule", "execute", "roll back"])
@pytest.mark.parametrize("layout", BUCKETS, ids=str)
def test_a_fault_at_any_storage_call_of_a_resize_changes_no_row_and_the_retry_ends_it(
    layout: Layout, step: str, tmp_path: Path, figure: Figure
) -> None:
    resizing.test_a_fault_at_any_storage_call_changes_no_row_and_the_retry_ends_it(
        layout, step, tmp_path, of_version_9(figure)
    )


@pytest.mark.parametrize("step", compaction.STARTS)
@pytest.mark.parametrize("layout", LOGS, ids=str)
def test_a_fault_at_any_storage_call_of_a_compaction_changes_no_row_and_the_retry_completes_the_plan(
    layout: Layout, step: str, tmp_path: Path, figure: Figure
) -> None:
    compaction.test_a_fault_at_any_storage_call_changes_no_row_and_the_retry_completes_the_plan(
        layout, step, tmp_path, of_version_9(figure)
    )


@pytest.mark.parametrize("layout", LOGS, ids=str)
def test_a_fault_at_any_storage_call_of_a_log_compaction_changes_no_row(layout: Layout, figure: Figure) -> None:
    compaction.test_a_fault_at_any_storage_call_of_a_log_compaction_changes_no_row(layout, of_version_9(figure))


@pytest.mark.parametrize("step", clustering.STARTS)
@pytest.mark.parametrize("layout", later(*clustering.LAYOUTS[:2]), ids=str)
def test_a_fault_at_any_storage_call_of_a_clustering_changes_no_row_and_the_retry_ends_the_plan(
    layout: Layout, step: str, tmp_path: Path, figure: Figure
) -> None:
    clustering.test_a_fault_at_any_storage_call_changes_no_row_and_the_retry_ends_the_plan(
        layout, step, tmp_path, of_version_9(figure)
    )


@pytest.mark.parametrize("step", cleaning.STEPS)
def test_a_fault_at_any_storage_call_of_a_clean_or_a_savepoint_changes_no_row_and_the_retry_completes_it(
    step: str, tmp_path: Path, figure: Figure
) -> None:
    cleaning.test_a_fault_at_any_storage_call_changes_no_row_and_the_retry_completes_it(
        LOGS[1], step, tmp_path, of_version_9(figure)
    )


@pytest.mark.parametrize("step", restoring.STEPS)
@pytest.mark.parametrize("layout", later(*restoring.LAYOUTS[:2]), ids=str)
def test_a_fault_at_any_storage_call_of_a_rollback_or_a_restore_leaves_the_rows_of_before_or_after(
    layout: Layout, step: str, tmp_path: Path, figure: Figure
) -> None:
    restoring.test_a_fault_at_any_storage_call_leaves_the_rows_of_before_or_after(
        layout, step, tmp_path, of_version_9(figure)
    )


@pytest.mark.parametrize("layout", [FILES[2], LOGS[1]], ids=str)
def test_a_fault_at_any_storage_call_of_an_archiving_loses_no_row_and_no_instant(
    layout: Layout, tmp_path: Path, figure: Figure
) -> None:
    archiving.test_a_fault_at_any_storage_call_of_an_archiving_loses_no_row_and_no_instant(
        layout, tmp_path, of_version_9(figure)
    )


def of_version_9(figure: Figure) -> Figure:
    """Counts apart from those of the suites."""
    return lambda count, unit: figure(count, f"{unit} of version 9" if unit == "crash points" else unit)
