"""Unfinished files of killed writers on local disk: seen by the doctor, deleted by cleaning."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from hudi_table.model.service.findings import Check
from hudi_table.table.commit import leftovers
from hudi_table.table.store.clock import SystemClock
from tests.support.written import contents, new_table, rows

HOURS = 5 * 3600


def left(folder: Path, name: str, age: float) -> Path:
    path = folder / f"{name}.hudi-staging"
    path.write_bytes(b"half of it")
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def test_what_a_kill_left_is_told_by_the_doctor_and_deleted_by_a_clean(tmp_path: Path) -> None:
    table = new_table(str(tmp_path / "t"))
    table.upsert(rows(("a", "x", 1)))
    table.upsert(rows(("a", "x", 2)))
    old = [left(tmp_path / "t" / "x", "old", HOURS), left(tmp_path / "t" / ".hoodie", "old", HOURS)]
    young = left(tmp_path / "t" / "x", "young", 60)
    found = table.doctor()
    assert [(finding.check, Path(finding.path).name) for finding in found] == [(Check.LEFTOVER, "old.hudi-staging")] * 2
    assert table.clean({"hoodie.clean.commits.retained": "1"}, force=True) or leftovers.sweep(table.context)
    assert [path.exists() for path in old] == [False, False]
    assert young.exists(), "its writer may be at work"
    assert contents(table) == [("a", "x", 2)]


def test_a_clean_whose_clock_is_hours_ahead_leaves_what_a_writer_is_at_work_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(str(tmp_path / "t"))
    table.upsert(rows(("a", "x", 1)))
    table.upsert(rows(("a", "x", 2)))
    young = left(tmp_path / "t" / ".hoodie", "young", 1)
    real = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda self: real(self) + timedelta(hours=5))
    assert leftovers.sweep(table.context) == 0
    assert young.exists()
