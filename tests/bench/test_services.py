"""The section of table services at a small size: layouts spare files, and the report tells what was
measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.idle import Idle
from bench.process import Cost
from bench.race import Times
from bench.report import markdown, services_record
from bench.rows import Workload, workload
from bench.services import ENTRIES, LAYOUTS, UNSORTED, FilesRead, ServicesResults, files_read, small_files
from bench.services_steps import FILES
from tests.bench.test_race import MACHINE

COST = Cost(2.0, 3.0, 1 << 30, 0)


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return workload(tmp_path_factory.mktemp("rows"), 6_000)


def test_every_layout_spares_files_and_a_curve_does_so_by_either_column(load: Workload, tmp_path: Path) -> None:
    assert small_files(load, tmp_path / "small") == FILES
    said: list[str] = []
    found = files_read(load, tmp_path / "small", tmp_path, said.append)
    assert list(found) == [UNSORTED, *LAYOUTS]
    assert found[UNSORTED].both > 0.9
    assert all(found[layout].both <= 0.25 for layout in LAYOUTS)
    assert all(found[layout].second <= 0.6 < found["linear"].second for layout in LAYOUTS[1:])
    assert len(said) == len(LAYOUTS)


def test_the_report_tells_what_misses_its_target(load: Workload) -> None:
    results = {entry.worker: {"cluster": Times(COST, [COST])} for entry in ENTRIES}
    files = {entry.worker: 4 for entry in ENTRIES}
    read = {UNSORTED: FilesRead(1.0, 1.0, 1.0), "hilbert": FilesRead(0.3, 0.4, 0.4)}
    idle = {"Cleaning": Idle(1.5, "NothingToDo", java=False), "Repair": Idle(1.5, "NothingToDo", java=True)}
    record = services_record(load, 1, ServicesResults(FILES, 1 << 20, results, files, read, idle))
    text = markdown({"services": {"machine": MACHINE} | record})
    assert "| cluster | ours, LocalEngine | Apache Hudi 1.1.1 | 0.25 | 1.00 | 1.00 | **no** |" in text
    assert "| hilbert | 30% | 40% | 40% | **no** |" in text
    assert "| Cleaning | 1.5 s | NothingToDo | no | 2.0 s | yes |" in text
    assert "| Repair | 1.5 s | NothingToDo | yes | 2.0 s | **no** |" in text
