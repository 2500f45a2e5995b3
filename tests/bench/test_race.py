"""The bench at a small size: it holds every contender to the same rows, and says what was
measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.race import ENTRIES, race
from bench.report import markdown, race_record
from bench.rows import Workload, read, workload

QUICK = [entry for entry in ENTRIES if entry.name in ("floor", "local", "delta")]
MACHINE = {
    "commit": "0000000",
    "cores": 2,
    "memory_gib": 4,
    "system": "Linux",
    "load_at_start": 0.1,
    "load_at_end": 0.2,
    "python": "3",
    "java": "17",
    "pyarrow": "1",
    "pyspark": "1",
    "deltalake": "1",
    "hudi": "1",
}


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return workload(tmp_path_factory.mktemp("rows"), 6_000)


def test_a_tenth_of_the_rows_is_updated_and_none_is_new(load: Workload) -> None:
    base, updates = read(load.base), read(load.updates)
    assert (base.num_rows, base.num_columns) == (load.rows, 19)
    assert load.rows == load.loaded.rows == load.loaded.keys == load.upserted.rows == load.upserted.keys
    assert updates.num_rows == load.updated
    assert 0.05 < load.updated / load.rows < 0.15
    assert load.loaded.product != load.upserted.product


def test_contenders_agree_and_the_report_names_each(load: Workload, tmp_path: Path) -> None:
    said: list[str] = []
    results = race(load, tmp_path, 1, QUICK, said.append)
    text = markdown({"race": {"machine": MACHINE} | race_record(load, 1, results)})
    assert len(said) == 2 * len(QUICK)
    assert all(f"| {entry.label} |" in text for entry in QUICK)
    assert "| upsert | ours, LocalEngine | delta-rs | 1.00 |" in text
    assert not list(tmp_path.iterdir())


def test_a_contender_that_loses_rows_ends_the_race(load: Workload, tmp_path: Path) -> None:
    wrong = replace(load, upserted=replace(load.upserted, rows=load.rows + 1))
    with pytest.raises(AssertionError, match="pyarrow alone after upsert holds"):
        race(wrong, tmp_path, 0, QUICK[:1], lambda _: None)
