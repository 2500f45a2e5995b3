"""Plans: which rows go to which file group, under which id."""

from __future__ import annotations

import dataclasses
import pickle
import uuid

import pyarrow as pa
import pytest

from hudi_table.index.base import Slot
from hudi_table.model.names import LogFileName, bucket_of_file_id, log_write_token
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.table.rows.merge import MergeRule
from hudi_table.table.view.file_system_view import BaseFile, FileSlice, LogFile
from hudi_table.write.settings import WriteSettings
from hudi_table.write.workload import (
    Mode,
    PlannedTask,
    PlanRequest,
    measured_row_size,
    plan_tasks,
    row_size,
)

DEFAULT = WriteOptions.parse({})
SEED = uuid.UUID(int=7)
SETTINGS = WriteSettings(
    schema=pa.schema([("id", pa.string())]),
    avro_schema="{}",
    rule=MergeRule(),
    combine=False,
    combine_orderings=(),
    sort=False,
    codec="zstd",
    compression_level=1,
    row_group_rows=1_000,
    target_file_size=1_000,
    bloom=None,
)


def stored(partition: str, file_id: str, size: int) -> FileSlice:
    return FileSlice(
        partition, file_id, "1", BaseFile(f"{partition}/{file_id}_0_1.parquet", partition, file_id, "1", size)
    )


def plan(
    slots: list[Slot], rows: list[int], existing: dict[Slot, FileSlice] | None = None, **more: object
) -> list[PlannedTask]:
    request = PlanRequest(
        slots=slots, rows=rows, existing=existing or {}, settings=SETTINGS, instant="20260101000000000", seed=SEED,
        merging=True, row_size=10.0, small_file_limit=800,
    )  # fmt: skip
    return plan_tasks(dataclasses.replace(request, **more))  # type: ignore[arg-type] # a bag of changes


def shape(tasks: list[PlannedTask]) -> list[tuple[str, str, int]]:
    return [(item.task.partition, item.task.mode.value, item.rows) for item in tasks]


def test_new_rows_fill_files_of_the_target_size_and_the_rest_goes_to_a_small_one() -> None:
    tasks = plan([Slot("p")], [250])
    assert shape(tasks) == [("p", "create", 100), ("p", "create", 100), ("p", "create", 50)]
    bounds = [(item.sources[0].start, item.sources[0].stop) for item in tasks]
    assert bounds == [(0, 100), (100, 200), (200, 250)]
    assert all(item.task.rolls_over for item in tasks)


def test_a_rest_that_is_too_small_for_a_file_of_its_own_stays_in_the_last_one() -> None:
    assert shape(plan([Slot("p")], [210])) == [("p", "create", 100), ("p", "create", 110)]


def test_new_rows_fill_small_files_first_the_smallest_before_the_others() -> None:
    existing = {Slot("p", size): stored("p", size, int(size)) for size in ("700", "500", "900")}
    tasks = plan([Slot("p")], [100], existing)
    assert {item.task.file_id: item.rows for item in tasks if item.task.base_path} == {"500": 50, "700": 30}
    assert [item.rows for item in tasks if item.task.base_path is None] == [20]


def test_small_files_stay_as_they_are_where_packing_is_off() -> None:
    tasks = plan([Slot("p")], [10], {Slot("p", "500"): stored("p", "500", 500)}, pack_small_files=False)
    assert shape(tasks) == [("p", "create", 10)]


def test_updates_and_new_rows_of_one_file_are_one_task() -> None:
    known = Slot("p", "500")
    tasks = plan([known, Slot("p")], [3, 4], {known: stored("p", "500", 500)})
    assert shape(tasks) == [("p", "merge", 7)]
    assert tasks[0].task.prev_commit == "1"
    assert [source.slot for source in tasks[0].sources] == [0, 1]


def test_rows_are_put_behind_stored_ones_where_nothing_merges() -> None:
    known = Slot("p", bucket=1)
    file_id = "00000001-aaaa-0"
    tasks = plan([known], [3], {known: stored("p", file_id, 10)}, merging=False)
    assert (tasks[0].task.mode, tasks[0].task.file_id) == (Mode.APPEND, file_id)


def test_a_new_bucket_gets_one_group_of_its_number_whatever_its_size() -> None:
    tasks = plan([Slot("p", bucket=5)], [10_000])
    assert len(tasks) == 1
    assert bucket_of_file_id(tasks[0].task.file_id) == 5
    assert not tasks[0].task.rolls_over


def test_slots_without_rows_make_no_task() -> None:
    assert plan([Slot("p"), Slot("q", bucket=0)], [0, 0]) == []


def test_one_request_makes_one_plan_and_another_seed_other_ids() -> None:
    ids = [item.task.file_id for item in plan([Slot("p"), Slot("q")], [250, 10])]
    assert ids == [item.task.file_id for item in plan([Slot("p"), Slot("q")], [250, 10])]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & {item.task.file_id for item in plan([Slot("p"), Slot("q")], [250, 10], seed=uuid.UUID(int=8))}


def test_rolled_file_ids_differ_from_all_others_and_survive_pickling() -> None:
    tasks = [item.task for item in plan([Slot("p")], [250])]
    ids = [task.rolled_file_id(number) for task in tasks for number in range(3)]
    assert len(set(ids)) == 9
    assert ids[0] == tasks[0].file_id
    copies = [pickle.loads(pickle.dumps(task)) for task in tasks]
    assert [task.rolled_file_id(number) for task in copies for number in range(3)] == ids


def test_attempts_differ_in_the_write_token_alone() -> None:
    task = plan([Slot("p")], [1])[0].task
    again = dataclasses.replace(task, attempt=1)
    assert (task.write_token, again.write_token) == ("0-0-0", "0-0-1")
    assert task.file_id == again.file_id


def test_more_incoming_rows_than_a_task_may_hold_are_worked_on_in_parts() -> None:
    settings = dataclasses.replace(SETTINGS, memory_bytes=1_000)
    tasks = plan([Slot("p", bucket=0), Slot("p", bucket=1)], [100, 10], settings=settings, arrow_row_size=25.0)
    assert [item.task.parts for item in tasks] == [3, 1]


@pytest.mark.parametrize(
    ("commits", "expected"),
    [([], None), ([(100, 10)], None), ([(2_000_000, 1_000)], 2_000.0), ([(50, 1), (3_000_000, 1_000)], 3_000.0)],
)
def test_the_size_of_a_row_is_measured_on_the_newest_commit_that_wrote_enough(
    commits: list[tuple[int, int]], expected: float | None
) -> None:
    stats = [WriteStat("f", "p/f", "p", num_writes=rows, total_write_bytes=size) for size, rows in commits]
    assert measured_row_size(CommitMetadata("INSERT", (stat,)) for stat in stats) == expected


def test_without_a_measure_the_size_of_a_row_is_estimated_from_memory_or_the_fallback() -> None:
    assert row_size(50.0, 1_000, 10, DEFAULT) == 50.0
    assert 10 < row_size(None, 1_000, 10, DEFAULT) < 100
    assert row_size(None, 0, 0, DEFAULT) == 1024
    given = WriteOptions.parse({"hoodie.copyonwrite.record.size.estimate": "175"})
    assert row_size(None, 1_000, 10, given) == 175


@pytest.mark.parametrize(
    ("known", "version"),
    [
        ((), 1),
        (("20251231000000000",), 2),
        (("20260101000000001",), 1),
        (("20251231000000000", "20260101000000001"), 2),
        (("20251231000000000", "20251231000000001"), 2),
    ],
    ids=["none", "a committed write's", "a later write's", "both", "an earlier write's that is under way or dead"],
)
def test_a_log_follows_those_of_committed_writes_alone(known: tuple[str, ...], version: int) -> None:
    names = [LogFileName("f", "1", number, log_write_token(time, 0)) for number, time in enumerate(known, 1)]
    group = stored("p", "f", 10)
    group = dataclasses.replace(group, logs=tuple(LogFile(f"p/{name}", 1, name) for name in names))
    slot = Slot("p", file_id="f")
    log = plan([slot], [1], {slot: group}, to_logs=True, committed={"20251231000000000"})[0].task.log
    assert log is not None
    assert log.version == version
