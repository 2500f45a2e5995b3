"""Jobs under the lock of their table: an ingest that makes it, and a service. No JVM is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_spark.jobs.__main__ import main
from hudi_table.api import open_table
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.options.lock_settings import FileLockSettings
from hudi_table.table.locks.file_system import FileSystemLock
from hudi_table.table.store.clock import SystemClock

ROWS = pa.table({"id": ["a"], "ts": pa.array([1], pa.int64())})
INGEST = {"type": "Ingest", "name": "feed", "operation": "Upsert"}
CLEANING = {
    "type": "Cleaning",
    "mode": "ScheduleAndExecute",
    "options": {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"},
    "force": True,
}


def run(folder: Path, **work: Any) -> JobResult:
    lock = {
        "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
        "hoodie.write.lock.filesystem.path": str(folder),
        "hoodie.write.lock.wait_time_ms": "1",
        "hoodie.write.lock.client.num_retries": "0",
    }
    table = {"name": "t", "location": f"file://{folder}/t", "type": "CopyOnWrite", "recordKey": ["id"], "lock": lock}
    spec, result = folder / "spec.json", folder / "result.json"
    spec.write_text(JobSpec("one", table, work, engine="Local").to_json())
    main([str(spec), str(result)])
    return JobResult.from_json(result.read_text())


def ingest(folder: Path, number: int) -> JobResult:
    (folder / "in").mkdir(exist_ok=True)
    pq.write_table(ROWS, folder / "in" / f"{number}.parquet")
    source = {"type": "Files", "path": f"file://{folder}/in/", "format": "parquet"}
    return run(folder, **INGEST, source=source, transform=[])


def test_an_ingest_and_a_service_wait_for_the_lock_of_their_table(tmp_path: Path) -> None:
    lock = FileSystemLock(SystemClock(), FileLockSettings(str(tmp_path)), pause=0.01)
    held = lock.acquire(0)
    refused = ingest(tmp_path, 0)
    assert (refused.outcome, refused.error_class) == ("Failed", "Unavailable")
    held.release()
    assert [ingest(tmp_path, number).outcome for number in (0, 1)] == ["Succeeded", "Succeeded"]
    held = lock.acquire(0)
    assert run(tmp_path, **CLEANING).error_class == "Unavailable"
    held.release()
    assert run(tmp_path, **CLEANING).outcome == "Succeeded"
    assert open_table(tmp_path / "t").scan().to_arrow().num_rows == 1
