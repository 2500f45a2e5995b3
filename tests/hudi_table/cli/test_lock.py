"""`--lock`: a verb that changes a table holds the lock that its other writers take."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import create_table
from hudi_table.cli import exits
from hudi_table.cli.program import main
from hudi_table.model.options.lock_settings import FileLockSettings
from hudi_table.table.locks.file_system import FileSystemLock
from hudi_table.table.store.clock import SystemClock
from tests.support.written import SCHEMA, contents, rows

LOCK = [
    *("--lock", "hoodie.write.lock.provider=FileSystemBasedLockProvider"),
    *("--lock", "hoodie.write.lock.wait_time_ms=1"),
    *("--lock", "hoodie.write.lock.client.num_retries=0"),
]


def test_a_rollback_waits_for_the_lock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = create_table(tmp_path / "t", SCHEMA, record_key="id")
    table.upsert(rows(("a", "x", 1)))
    instant = table.upsert(rows(("a", "x", 2))).instant
    verb = ["rollback", str(tmp_path / "t"), instant, "--yes", "--writers-stopped", *LOCK]
    held = FileSystemLock(SystemClock(), FileLockSettings(str(tmp_path / "t" / ".hoodie")), pause=0.01).acquire(0)
    assert main(verb) != exits.GOOD
    assert "was not to be had" in capsys.readouterr().err
    held.release()
    assert main(verb) == exits.GOOD
    assert contents(table) == [("a", "x", 1)]


def test_a_lock_that_cannot_be_is_a_wrong_argument(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create_table(tmp_path / "t", SCHEMA, record_key="id")
    for wrong in ("hoodie.write.lock.provider", "hoodie.write.lock.provider=NoopLockProvider", "region=x"):
        assert main(["clean", str(tmp_path / "t"), "--lock", wrong]) == exits.USAGE
    assert "hudictl explain InvalidOption" in capsys.readouterr().err
