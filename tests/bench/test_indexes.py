"""The section of indexes at a small size: each part finds what it asks for, and the report says
what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.index_report import indexes_record, lookups_record, planning_record
from bench.index_rows import batch
from bench.indexes import ENTRIES, race_indexes
from bench.lookups import WAYS, measured_lookups
from bench.planning import PlanningEntry, measured_planning, sizes
from bench.planning_table import BUCKETS, Shape, make_table
from bench.process import Cost
from bench.race import Times
from bench.report import markdown
from bench.rows import Workload, read, workload
from bench.settings import KEY
from hudi_table import open_table
from hudi_table.metadata.validate import differences
from tests.bench.test_race import MACHINE

QUICK = [entry for entry in ENTRIES if entry.who != "hudi"]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return workload(tmp_path_factory.mktemp("rows"), 6_000)


def test_half_of_a_batch_is_known_and_half_is_new(load: Workload) -> None:
    found = batch(load)
    keys = read(found.rows)[KEY]
    known = set(read(load.base, (KEY,))[KEY].to_pylist())
    assert found.updated == found.inserted == round(load.rows / 200)
    assert sum(key in known for key in keys.to_pylist()) == found.updated
    assert found.after.rows == found.after.keys == load.rows + found.inserted


def test_contenders_agree_on_what_an_index_finds(load: Workload, tmp_path: Path) -> None:
    found = batch(load)
    results = race_indexes(load, found, tmp_path / "race", 1, lambda _: None, QUICK)
    record = {"machine": MACHINE} | indexes_record(load, found, 1, results)
    text = markdown({"indexes": {"upsert": record}})
    assert all(f"| {entry.label} |" in text for entry in QUICK)
    assert "| upsert | ours, LocalEngine, bloom | delta-rs, bloom | 1.00 |" in text


def test_every_way_of_a_lookup_opens_the_files_that_it_says(load: Workload, tmp_path: Path) -> None:
    found = measured_lookups(load, tmp_path / "lookups", 1, lambda _: None)
    of_one = {item.way: item for item in found if item.keys == 1}
    assert list(of_one) == list(WAYS)
    assert of_one["bucket"].opened <= 7 < of_one["bucket"].files
    assert of_one["statistics"].opened < of_one["sorted"].files
    assert of_one["record index"].opened == 1 < of_one["record index"].files
    text = markdown({"indexes": {"lookups": {"machine": MACHINE} | lookups_record(load, 1, found)}})
    assert f"| {of_one['bucket'].opened} of {of_one['bucket'].files} |" in text


def test_planning_is_measured_on_tables_of_three_sizes(tmp_path: Path) -> None:
    results = measured_planning(tmp_path / "planning", 300, 1, lambda _: None, touched=(2,))
    assert {entry.groups for entry in results} == set(sizes(300)) == {10, 30, 300}
    assert {entry.metadata for entry in results} == {False, True}
    text = markdown({"indexes": {"planning": {"machine": MACHINE} | planning_record(1, results)}})
    assert text.count("| 300 | yes | 2 |") == 1


def test_a_plan_that_takes_too_much_memory_misses_its_target() -> None:
    cost = Cost(0.5, 0.5, 600 << 20, 0)
    entry = PlanningEntry(100_000, metadata=False, touched=10)
    record = planning_record(1, {entry: {step: Times(cost, [cost]) for step in entry.steps}})
    assert not record["found"][0]["met"]


def test_the_synthetic_table_is_a_table_whose_metadata_agrees_with_its_folders(tmp_path: Path) -> None:
    make_table(tmp_path / "t", Shape(50 * BUCKETS), metadata=True)
    table = open_table(str(tmp_path / "t"))
    assert len(table.scan().plan_files()) == 50 * BUCKETS
    assert differences(table.context) == []
