"""Several writers append to one bucket at once, on versions 8 and 9: none waits for another, none
fails, and every row is there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import InvalidOptionError, WriteConflictError
from tests.hudi_table.write.test_conflicts import Meanwhile
from tests.support.scale import scaled
from tests.support.written import contents, keys, new_table, rows, slices

BESIDE = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
SHARED_ID = "00000000-0000-0000-0000-000000000000-0"


def made(version: int = 9, **more: Any) -> HudiTable:
    one = {"type": "Bucket", "buckets": 1}
    return new_table(**{"index": one, "type": "MergeOnRead", "version": version, "partitioned": False, **more})


@pytest.fixture(params=[8, 9])
def table(request: pytest.FixtureRequest) -> HudiTable:
    return made(request.param, ordering_fields="ts")


def beside(table: HudiTable, mine: pa.Table, theirs: Callable[[HudiTable], object]) -> None:
    """A write that has its snapshot and no file yet, while another goes on from begin to end."""
    other = open_table(table.base_path)
    table.upsert(mine, options=BESIDE, engine=Meanwhile(lambda: theirs(other)))


def values(table: HudiTable) -> dict[str, int]:
    return {key: value for key, _, value in contents(table)}


def test_two_that_update_one_bucket_both_stand(table: HudiTable) -> None:
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    beside(table, rows(("a", "x", 10, 2), ("c", "x", 10)), lambda o: o.upsert(rows(("b", "x", 20, 2)), options=BESIDE))
    assert values(table) == {"a": 10, "b": 20, "c": 10}


def test_two_that_begin_a_bucket_write_logs_of_one_file_group(table: HudiTable) -> None:
    beside(table, rows(("a", "x", 10)), lambda o: o.upsert(rows(("b", "x", 20)), options=BESIDE))
    assert values(table) == {"a": 10, "b": 20}
    (found,) = slices(table)
    assert (found.file_id, found.base, len(found.logs)) == (SHARED_ID, None, 2)
    table.compact(force=True)
    (found,) = slices(table)
    assert (values(table), len(found.logs), found.base is None) == ({"a": 10, "b": 20}, 0, False)


def test_the_larger_ordering_value_wins_whoever_completes_last(table: HudiTable) -> None:
    beside(table, rows(("a", "x", 10, 3)), lambda o: o.upsert(rows(("a", "x", 20, 4)), options=BESIDE))
    beside(table, rows(("b", "x", 10, 4)), lambda o: o.upsert(rows(("b", "x", 20, 3)), options=BESIDE))
    assert values(table) == {"a": 20, "b": 10}
    table.compact(force=True)
    assert values(table) == {"a": 20, "b": 10}


@pytest.mark.parametrize("version", [8, 9])
def test_without_ordering_fields_who_began_later_wins_as_with_hudi(version: int) -> None:
    table = made(version)
    beside(table, rows(("a", "x", 10)), lambda o: o.upsert(rows(("a", "x", 20)), options=BESIDE))
    assert values(table) == {"a": 20}
    table.compact(force=True)
    assert values(table) == {"a": 20}


def test_a_delete_goes_on_beside_them(table: HudiTable) -> None:
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    beside(table, rows(("b", "x", 10, 2)), lambda o: o.delete(keys(("a", "x")), options=BESIDE))
    assert values(table) == {"b": 10}


def test_a_compaction_goes_on_beside_them(table: HudiTable) -> None:
    """Planned and executed while a writer is at work, whose snapshot shows nothing of it."""
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    table.upsert(rows(("a", "x", 2, 2)), options=BESIDE)
    beside(table, rows(("b", "x", 10, 2)), lambda o: o.compact(force=True))
    assert values(table) == {"a": 2, "b": 10}
    table.compact(force=True)
    assert values(table) == {"a": 2, "b": 10}


def test_a_compaction_that_waits_is_executed_behind_them(table: HudiTable) -> None:
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    table.upsert(rows(("a", "x", 2, 2)), options=BESIDE)
    other = open_table(table.base_path)
    plan = other.schedule_compaction(force=True)
    beside(table, rows(("b", "x", 10, 2)), lambda o: o.upsert(rows(("c", "x", 3)), options=BESIDE))
    assert plan is not None
    other.compact()
    assert values(table) == {"a": 2, "b": 10, "c": 3}


@pytest.mark.parametrize(
    "other",
    [
        lambda o: o.upsert(rows(("b", "x", 20, 2))),
        lambda o: o.write(rows(("b", "x", 20, 2)), operation="insert_overwrite_table", options=BESIDE),
        lambda o: o.upsert(rows(("n", "x", 1)).append_column("more", pa.array(["m"])), options=BESIDE),
        lambda o: o.write(rows(("n", "x", 1)), operation="bulk_insert", options=BESIDE),
    ],
    ids=["a write that does not append", "an overwrite", "another schema", "a bulk insert"],
)
def test_what_does_more_than_append_excludes_them(table: HudiTable, other: Callable[[HudiTable], object]) -> None:
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    with pytest.raises(WriteConflictError):
        beside(table, rows(("a", "x", 10, 2)), other)
    assert values(table)["b" if "b" in values(table) else "n"] in (1, 20)


def test_a_log_compaction_excludes_them(table: HudiTable) -> None:
    """Its log stands for the older ones, and comes behind what was requested before it."""
    table.upsert(rows(("a", "x", 1)))
    for number in range(2, 5):
        table.upsert(rows(("a", "x", number, number)), options=BESIDE)
    with pytest.raises(WriteConflictError):
        beside(table, rows(("a", "x", 10, 9)), lambda o: o.services.log_compaction(force=True).run())
    assert values(table) == {"a": 4}


def test_a_bucket_begins_anew_where_its_group_was_replaced(table: HudiTable) -> None:
    """The group whose name all know stays hidden: rows that are written to it would be, too."""
    table.upsert(rows(("a", "x", 1)), options=BESIDE)
    table.write(rows(), operation="insert_overwrite_table", options=BESIDE)
    assert (values(table), slices(table)) == ({}, [])
    with pytest.raises(WriteConflictError):
        beside(table, rows(("b", "x", 2)), lambda o: o.upsert(rows(("c", "x", 3)), options=BESIDE))
    assert values(table) == {"c": 3}
    beside(table, rows(("b", "x", 2)), lambda o: o.upsert(rows(("d", "x", 4)), options=BESIDE))
    assert values(table) == {"b": 2, "c": 3, "d": 4}
    (found,) = slices(table)
    assert found.file_id != SHARED_ID
    assert found.file_id.startswith("00000000-")


def test_a_bucket_begins_anew_in_a_partition_that_was_dropped() -> None:
    table = made(partitioned=True)
    table.upsert(rows(("a", "x", 1), ("b", "y", 1)), options=BESIDE)
    table.write(None, operation="delete_partition", partitions=["x"], options=BESIDE)
    table.upsert(rows(("c", "x", 2), ("d", "y", 2)), options=BESIDE)
    assert values(table) == {"b": 1, "c": 2, "d": 2}


@pytest.mark.parametrize("key", ["a", "b"])
def test_a_bucket_begins_anew_that_a_resize_left_empty(key: str) -> None:
    """Of the two keys one goes to the bucket of the new number, so that the first is empty."""
    table = made()
    table.upsert(rows((key, "x", 1)), options=BESIDE)
    table.resize_buckets(2)
    assert len(slices(table)) == 1
    table = open_table(table.base_path)
    table.upsert(rows(*((f"n{number}", "x", number) for number in range(8))), options=BESIDE)
    assert values(table) == {key: 1} | {f"n{number}": number for number in range(8)}


def test_many_writers_of_one_bucket_lose_nothing(table: HudiTable) -> None:
    count, each = 4, scaled(4)

    def write(writer: int) -> None:
        own = open_table(table.base_path)
        for number in range(each):
            own.upsert(
                rows((f"w{writer}-{number}", "x", number), ("shared", "x", number, 100 * number + writer)),
                options=BESIDE,
            )

    with ThreadPoolExecutor(count + 1) as threads:
        work = [threads.submit(write, writer) for writer in range(count)]
        services = threads.submit(lambda: [open_table(table.base_path).compact(force=True) for _ in range(2)])
        for done in work:
            done.result()
        services.result()
    found = values(table)
    assert {key: value for key, value in found.items() if key != "shared"} == {
        f"w{writer}-{number}": number for writer in range(count) for number in range(each)
    }
    assert found["shared"] == each - 1


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"version": 6}, "needs table version 8 or 9, and table"),
        ({"type": "CopyOnWrite"}, "needs a merge-on-read table with an index of type Bucket"),
        ({"index": "Simple"}, "needs a merge-on-read table with an index of type Bucket"),
        (
            {"index": {"type": "ConsistentBucket", "buckets": 2}},
            "needs a merge-on-read table with an index of type Bucket",
        ),
        ({"options": {"hoodie.table.cdc.enabled": "true"}}, "change data capture do not go together"),
    ],
)
def test_other_tables_are_refused_by_name(more: dict[str, Any], why: str) -> None:
    table = made(**more)
    with pytest.raises(InvalidOptionError, match=why):
        table.upsert(rows(("a", "x", 1)), options=BESIDE)
