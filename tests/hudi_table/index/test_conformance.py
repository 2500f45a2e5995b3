"""Every index keeps to one behaviour; which one a table has is seen in its files and its cost
alone.

Matrix: {each index of `tests/support/indexes.py`} × {copy-on-write, merge-on-read}: insert, update,
delete, a key that changes its partition, duplicate keys of one batch, an empty batch, odd keys, a
fault at storage calls, and random steps beside a dictionary, partitioned or not, with table
services between them. In `make test` each index with a part of that (`thinned`).

Omitted: event time (`test_simple.py`, `tests/hudi_table/write/test_merge_modes.py`), several
writers (`tests/hudi_table/write/test_conflicts.py`), inserts of known keys, which keep both rows
(`test_operations.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from hudi_table.api import HudiTable
from hudi_table.model.table.config import TableType
from hudi_table.table.store.ports import Storage
from tests.support.crashes import Rows, copied, new_store, opened, read
from tests.support.fault_points import Faulted, after_each_fault, check_outcome
from tests.support.indexes import SUBJECTS, Case, Subject
from tests.support.scale import scaled

Row = tuple[str, str, int]
FIRST: tuple[Row, ...] = (("a", "x", 1), ("b", "x", 2), ("c", "y", 3))
EMPTY = ("insert", "upsert", "delete")
ODD_KEYS = (
    "a:b", "a,b", "id:a", "id:a,city:x", ":", ",", "a/b", "../x", "%2F", "a b", " a", "a ", "tab\there", "line\nbreak", "'", '"', "\\",
    "$1", "{}", "null", "\x00", "a\x00b", "é", "e\u0301", "中文", "\ue000", "\uffee", "\U0001f600", "\U0010fffd", "ß", "SS", "k" * 4_000,
)  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each index, with each type of table that has it."""
    if "case" in metafunc.fixturenames:
        cases = [(subject.standing, subject, kind) for subject in SUBJECTS for kind in subject.types]
        ids = [f"{subject}-{kind.value}" for _, subject, kind in cases]
        metafunc.parametrize(("standing", "subject", "kind"), cases, ids=ids, indirect=["standing"], scope="module")


@pytest.fixture(scope="module")
def standing(request: pytest.FixtureRequest) -> Iterator[None]:
    """What an index needs beside it: once for the indexes that need the same."""
    with request.param():
        yield


@pytest.fixture
def case(standing: None, subject: Subject, kind: TableType) -> Case:
    """A partitioned table."""
    return Case(subject, kind)


def contents(table: HudiTable) -> list[Row]:
    """The rows of a table, sorted. Raises AssertionError if a row came twice."""
    return sorted(read(table.context.storage))


def begun(case: Case, *items: Row) -> HudiTable:
    """A table that holds `FIRST`, or `items`."""
    table = case.new_table()
    case.write(table, "insert", *(items or FIRST))
    return table


@pytest.mark.thinned("values")
def test_inserted_keys_are_found_again(case: Case) -> None:
    table = begun(case)
    case.write(table, "insert", ("d", "x", 4), ("e", "z", 5))
    case.write(table, "upsert", *((key, city, value + 10) for key, city, value in contents(table)))
    assert contents(table) == [("a", "x", 11), ("b", "x", 12), ("c", "y", 13), ("d", "x", 14), ("e", "z", 15)]


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize(
    "ends", [("upsert",), ("delete", "upsert"), ("delete", "insert", "delete", "upsert", "upsert")], ids=" ".join
)
def test_a_key_that_comes_back_after_its_deletion_comes_back_once(case: Case, ends: tuple[str, ...]) -> None:
    """An insert looks for no key and begins a file of its own: then two files hold the key, and a
    log deletes it in one of them, or in both."""
    table = begun(case)
    apart = {"hoodie.parquet.small.file.limit": "0"}
    for value, operation in enumerate(("delete", "insert", *ends), start=20):
        case.write(table, operation, ("a", "x", value), options=apart)
        there = [] if operation == "delete" else [("a", "x", value)]
        assert contents(table) == [*there, ("b", "x", 2), ("c", "y", 3)]


@pytest.mark.thinned("values")
def test_keys_of_several_files_are_found_in_theirs(case: Case) -> None:
    table = case.new_table()
    apart = {"hoodie.parquet.small.file.limit": "0"}
    for number in range(4):
        case.write(table, "insert", (f"k{number}", "x", 0), (f"k{9 - number}", "x", 0), options=apart)
    case.write(table, "upsert", *((f"k{number}", "x", number) for number in range(10)), options=apart)
    assert contents(table) == [(f"k{number}", "x", number) for number in range(10)]
    case.write(table, "delete", *((f"k{number}", "x", 0) for number in range(0, 10, 2)))
    assert contents(table) == [(f"k{number}", "x", number) for number in range(1, 10, 2)]


@pytest.mark.thinned("values")
def test_an_update_changes_the_rows_of_its_keys_alone(case: Case) -> None:
    table = begun(case)
    case.write(table, "upsert", ("b", "x", 20))
    assert contents(table) == [FIRST[0], ("b", "x", 20), FIRST[2]]
    case.write(table, "upsert", ("b", "x", 21), ("new", "y", 4))
    assert contents(table) == [FIRST[0], ("b", "x", 21), FIRST[2], ("new", "y", 4)]


@pytest.mark.thinned("values")
def test_a_deleted_key_is_gone_and_may_come_again(case: Case) -> None:
    table = begun(case)
    case.write(table, "delete", ("b", "x", 0), ("nobody", "x", 0))
    assert contents(table) == [FIRST[0], FIRST[2]]
    case.write(table, "upsert", ("b", "x", 22), ("a", "x", 11))
    assert contents(table) == [("a", "x", 11), ("b", "x", 22), FIRST[2]]


@pytest.mark.thinned("values")
def test_a_key_that_changes_its_partition_moves_if_the_index_is_global_and_else_lives_in_both(case: Case) -> None:
    table = begun(case)
    case.write(table, "upsert", ("a", "y", 10))
    stays = [] if case.subject.is_global else [("a", "x", 1)]
    assert contents(table) == sorted([*stays, ("a", "y", 10), *FIRST[1:]])
    case.write(table, "upsert", ("a", "new", 11))
    also = [] if case.subject.is_global else [("a", "y", 10)]
    assert contents(table) == sorted([*stays, *also, ("a", "new", 11), *FIRST[1:]])
    case.write(table, "upsert", ("a", "x", 12))
    assert contents(table) == sorted([*([("a", "new", 11), *also] if also else []), ("a", "x", 12), *FIRST[1:]])


@pytest.mark.thinned("values")
def test_a_delete_that_names_another_partition_deletes_only_if_the_index_is_global(case: Case) -> None:
    table = begun(case)
    case.write(table, "delete", ("a", "y", 0))
    assert contents(table) == list(FIRST[1:] if case.subject.is_global else FIRST)


@pytest.mark.thinned("values")
def test_of_duplicate_keys_in_one_batch_the_last_stays(case: Case) -> None:
    table = begun(case)
    case.write(
        table, "upsert", ("a", "x", 5), ("n", "x", 1), ("a", "x", 6), ("n", "x", 2), ("n", "x", 3), ("a", "x", 4)
    )
    assert contents(table) == [("a", "x", 4), *FIRST[1:], ("n", "x", 3)]


@pytest.mark.thinned("values")
def test_of_a_key_in_several_partitions_of_one_batch_the_last_stays_if_the_index_is_global(case: Case) -> None:
    table = begun(case)
    case.write(table, "upsert", ("n", "x", 1), ("a", "y", 5), ("n", "y", 2), ("a", "z", 6))
    if case.subject.is_global:
        assert contents(table) == [("a", "z", 6), *FIRST[1:], ("n", "y", 2)]
    else:
        assert contents(table) == sorted([*FIRST, ("a", "y", 5), ("a", "z", 6), ("n", "x", 1), ("n", "y", 2)])


@pytest.mark.thinned("values")
def test_an_empty_batch_changes_nothing(case: Case) -> None:
    table = case.new_table()
    for operation in EMPTY:
        case.write(table, operation)
        assert contents(table) == [], operation
    case.write(table, "upsert", *FIRST)
    for operation in EMPTY:
        case.write(table, operation)
        assert contents(table) == list(FIRST), operation
    case.write(table, "upsert", ("a", "x", 7))
    assert contents(table) == [("a", "x", 7), *FIRST[1:]]


@pytest.mark.thinned("values")
def test_keys_of_any_characters_are_kept_apart_and_found_again(case: Case) -> None:
    table = begun(case, *((key, "x", 0) for key in ODD_KEYS))
    apart = {"hoodie.parquet.small.file.limit": "0"}
    case.write(table, "upsert", *((key, "x", number) for number, key in enumerate(ODD_KEYS)), options=apart)
    assert contents(table) == sorted((key, "x", number) for number, key in enumerate(ODD_KEYS))
    case.write(table, "delete", *((key, "x", 0) for key in ODD_KEYS[::2]))
    assert contents(table) == sorted((key, "x", 2 * number + 1) for number, key in enumerate(ODD_KEYS[1::2]))


WRITES: dict[str, tuple[Row, ...]] = {
    "upsert": (("a", "x", 9), ("b", "y", 8), ("n", "z", 7)),
    "delete": (("a", "x", 0), ("c", "x", 0)),
}


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize("operation", WRITES)
def test_a_fault_at_a_storage_call_leaves_the_old_or_the_new_rows_and_an_index_that_finds_them(
    case: Case, operation: str, figure: Callable[[int, str], None]
) -> None:
    run = Interrupted(case, operation)
    figure(run.every_point(), "crash points")


class Interrupted:
    """One write with a fault at its calls: all of them in `test-full`, some in `make test`, others
    for each index, table and operation."""

    def __init__(self, case: Case, operation: str) -> None:
        self.case, self.operation = case, operation
        self.start = begun(case).context.storage
        after = copied(self.start)
        self.write(after)
        self.old, self.new = read(self.start), read(after)
        assert self.old != self.new

    def write(self, store: Storage, suspect: float = 900.0) -> None:
        self.case.write(opened(store, suspect=suspect), self.operation, *WRITES[self.operation])

    def every_point(self) -> int:
        count, subject = 0, self.case.subject
        stride = 18 if subject.costly else 6
        for point in after_each_fault(self.start, self.write, stride=stride, alone=not subject.outside):
            self.check(point)
            count += 1
        return count

    def check(self, point: Faulted) -> None:
        store, where = point.store, point.where
        found = read(store)
        check_outcome(found, self.old, self.new, point.outcome, where)
        for suspect in point.suspects:
            self._again(copied(store), found, suspect, where)

    def _again(self, store: Storage, found: Rows, suspect: float, where: str) -> None:
        """Every key that is there is found by the next write, wherever the fault left it; then the
        same write ends well."""
        table = opened(store, suspect=suspect)
        # Decided, and perhaps not published: what a recovery finishes is seen here first.
        self.case.write(table, "upsert", ("other", "x", 1))
        stored = read(store) - {("other", "x", 1)}
        assert stored in (self.old, self.new), f"{where}: the next write left {sorted(stored)}"
        assert stored == self.new or found == self.old, f"{where}: rows that were seen are gone"
        again = {(key, city, value + 100) for key, city, value in stored}
        self.case.write(table, "upsert", *sorted(again))
        assert read(store) == again | {("other", "x", 1)}, f"{where}: a key was not found again"


KEYS = tuple("abcdefghijkl")
CITIES = ("x", "y", "z")
OPERATIONS = ("upsert",) * 6 + ("delete",) * 3 + ("insert", "bulk_insert", "insert_overwrite", "delete_partition")
SERVICES = ("compact", "cluster", "clean", "archive")
KEPT = {"hoodie.clean.commits.retained": "2", "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize("partitioned", [True, False], ids=["parts", "flat"])
def test_random_steps_agree_with_a_dictionary(
    case: Case, partitioned: bool, figure: Callable[[int, str], None]
) -> None:
    walk = _Walk(Case(case.subject, case.type, partitioned), random.Random(f"{case}-{partitioned}"))
    steps = scaled(25, quick=4 if case.subject.costly else 6)
    for number in range(steps):
        done = walk.step()
        found, expected = read(walk.store), frozenset(walk.model.values())
        assert found == expected, f"step {number}, {done}: {sorted(found - expected)} for {sorted(expected - found)}"
    figure(steps, "random steps of an index")


class _Walk:
    """A table and a dictionary of what it should hold."""

    def __init__(self, case: Case, chance: random.Random) -> None:
        self.case, self.chance = case, chance
        self.store = new_store()
        self.table = case.new_table(self.store)
        self.model: dict[tuple[str, ...], Row] = {}
        self.drawn = 0

    def key(self, row: Row) -> tuple[str, ...]:
        return row[:2] if self.case.keyed_by_partition else row[:1]

    def step(self) -> str:
        """One write, or now and then a service, a process that starts anew."""
        number = self.chance.randrange(20)
        if number == 0:
            self.table = opened(self.store)
            return "reopened"
        if number <= 3:
            return self.serve(self.chance.choice(SERVICES))
        operation = self.chance.choice(OPERATIONS)
        small = str(self.chance.choice([0, 1 << 20]))
        if operation == "delete_partition":
            return self.drop_partition()
        batch = self.fresh() if "insert" in operation else self.known()
        self.apply(operation, batch)
        self.case.write(self.table, operation, *batch, options={"hoodie.parquet.small.file.limit": small})
        return f"{operation} of {batch} with small files below {small}"

    def serve(self, name: str) -> str:
        if name == "compact" and self.case.type is TableType.MERGE_ON_READ:
            self.table.compact(force=True)
        elif name == "cluster" and self.case.subject.clusters:
            self.table.cluster(force=True)
        elif name == "clean":
            self.table.clean(KEPT)
        elif name == "archive":
            self.table.archive(KEPT)
        return name

    def drop_partition(self) -> str:
        present = sorted({row[1] if self.case.partitioned else "" for row in self.model.values()})
        if not present:
            return "nothing to drop"
        doomed = self.chance.choice(present)
        self.table.write(
            None, operation="delete_partition", partitions=[doomed], options=dict(self.case.subject.written)
        )
        self.forget(lambda row: not self.case.partitioned or row[1] == doomed)
        return f"delete_partition of {doomed}"

    def known(self) -> list[Row]:
        count = self.chance.randrange(8)
        return [
            (self.chance.choice(KEYS), self.chance.choice(CITIES), self.chance.randrange(1000)) for _ in range(count)
        ]

    def fresh(self) -> list[Row]:
        count = self.chance.randrange(4)
        self.drawn += count
        return [(f"n{self.drawn - number}", self.chance.choice(CITIES), number) for number in range(count)]

    def apply(self, operation: str, batch: list[Row]) -> None:
        if operation == "insert_overwrite":
            cities = {row[1] for row in batch}
            # Without rows there is no partition to replace, not even that of a table without partitions.
            self.forget(lambda row: row[1] in cities if self.case.partitioned else bool(batch))
        for row in batch:
            if operation == "delete":
                self.model.pop(self.key(row), None)
            else:
                self.model[self.key(row)] = row

    def forget(self, doomed: Callable[[Row], bool]) -> None:
        self.model = {key: row for key, row in self.model.items() if not doomed(row)}
