"""The races on version 9 at a small size: ours on both versions holds the same rows, and the report
tells which step is slower."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import logs, race
from bench.process import Cost
from bench.race import Times
from bench.report import markdown
from bench.rows import Workload, workload
from bench.versions import LOG_TARGETS, LOGS, RACE, RACE_TARGETS, Versions, race_versions, versions_record
from hudi_table import open_table
from tests.bench.test_race import MACHINE

QUICK = [entry for entry in RACE if entry.worker in ("floor", "local")]
QUICK_LOGS = [entry for entry in LOGS if entry.worker in ("local-logs", "hudi-rs")]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return workload(tmp_path_factory.mktemp("rows"), 6_000)


def test_contenders_of_both_versions_hold_the_same_rows_and_the_report_names_each(
    load: Workload, tmp_path: Path
) -> None:
    said: list[str] = []
    found = race_versions(load, tmp_path / "versions", 1, said.append, QUICK, QUICK_LOGS)
    assert list(found.race) == ["floor", "local", "local-9"]
    assert {name: set(steps) for name, steps in found.logs.items()} == {
        "local-logs": set(logs.STEPS),
        "local-logs-9": set(logs.STEPS),
        "hudi-rs-9": {"snapshot"},
    }
    record = versions_record(load, 1, found)
    assert [(each["ours"], each["other"]) for each in record["race"]["targets"]] == [("local-9", "local")] * 2
    text = markdown({"versions": {"machine": MACHINE} | record})
    labels = [*(entry.label for entry in QUICK), *(entry.label for entry in QUICK_LOGS)]
    assert all(f"| {label} |" in text for label in labels)
    assert "| snapshot | ours, LocalEngine, version 9 | hudi-rs, version 9 | 1.00 |" in text


def test_the_tables_have_the_versions_that_the_labels_say(load: Workload, tmp_path: Path) -> None:
    entries = [entry for entry in QUICK_LOGS if not entry.reads_only]
    folder = tmp_path / "logs"
    logs.race_logs(load, folder, 0, lambda _: None, entries)
    assert {entry.version for entry in entries} == {6, 9}
    for entry in entries:
        assert open_table(str(folder / entry.name)).context.config.version == entry.version


def test_the_report_tells_which_step_is_slower_than_on_version_6(load: Workload) -> None:
    def costs(names: list[str], steps: tuple[str, ...]) -> dict[str, dict[str, Times]]:
        slow = {name: Cost(1.2 if name.endswith("-9") else 1.0, 1.0, 1 << 30, 0) for name in names}
        return {name: {step: Times(cost, [cost]) for step in steps} for name, cost in slow.items()}

    found = Versions(
        costs([entry.name for entry in RACE], race.STEPS), costs([entry.name for entry in LOGS], logs.STEPS)
    )
    record = versions_record(load, 1, found)
    assert len(record["race"]["targets"]) == len(RACE_TARGETS)
    assert len(record["logs"]["targets"]) == len(LOG_TARGETS)
    text = markdown({"versions": {"machine": MACHINE} | record})
    assert "| compact | ours, Spark, version 9 | ours, Spark | 1.10 | 1.20 | 1.00 | **no** |" in text
