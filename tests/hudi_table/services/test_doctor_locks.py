"""A lock file whose holder was killed keeps every writer out: the doctor names it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hudi_table.api import create_table, open_table
from hudi_table.errors import UnavailableError
from hudi_table.model.options.lock_settings import FileLockSettings
from hudi_table.model.service.findings import Check, Finding
from hudi_table.table.locks.file_system import FileSystemLock
from hudi_table.table.store.clock import SystemClock
from tests.hudi_table.table.commit.test_locking import IMPATIENT, SCHEMA, row, values

FOLDER = "hoodie.write.lock.filesystem.path"


def found(base: Path, lock: dict[str, str] | None) -> list[Finding]:
    return [finding for finding in open_table(base, lock=lock).doctor() if finding.check is Check.LEFTOVER]


def age(file: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(file, (moment, moment))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_lock_file_that_nobody_renews_is_found_and_may_be_deleted(tmp_path: Path, elsewhere: bool) -> None:
    base, folder = tmp_path / "t", tmp_path / "locks" if elsewhere else tmp_path / "t" / ".hoodie"
    lock = IMPATIENT | {FOLDER: str(folder)}
    create_table(base, SCHEMA, record_key="id").upsert(row("a", 1))
    FileSystemLock(SystemClock(), FileLockSettings(str(folder)), pause=0.01).acquire(0)
    assert found(base, lock) == [], "its holder may be alive"
    age(folder / "lock", 1000)
    (finding,) = found(base, lock)
    assert finding.path == (str(folder / "lock") if elsewhere else ".hoodie/lock")
    assert f"(process {os.getpid()} on " in finding.message
    assert "has been there for 1000 seconds" in finding.message
    assert "delete the file" in finding.advice
    assert bool(found(base, None)) is not elsewhere, "where nobody names a lock the table's own folder is looked at"
    with pytest.raises(UnavailableError, match="delete the file"):
        open_table(base, lock=lock).upsert(row("b", 2))
    (folder / "lock").unlink()
    open_table(base, lock=lock).upsert(row("b", 2))
    assert found(base, lock) == []
    assert values(open_table(base)) == [1, 2]
