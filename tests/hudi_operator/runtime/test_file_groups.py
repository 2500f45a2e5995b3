"""What the operator counts of file groups that have logs and no base file, as Flink leaves them and
writers that block nobody. A status said of such a table that it had no rows and no logs to compact.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_operator.api.resources import desired_table
from hudi_operator.manifests.services import ServiceWork
from hudi_operator.plan.observed import TableObservation
from hudi_operator.plan.schedule.due import extent
from hudi_operator.plan.status.report import data
from hudi_operator.runtime.observe import Observer
from hudi_table.api import create_table
from hudi_table.model.service.services import ServiceType
from hudi_table.table.store.clock import SystemClock
from tests.support.manifests import manifest, stored

ROWS = pa.table({"id": ["a", "b", "c"], "ts": pa.array([1, 2, 3], pa.int64()), "day": ["x", "x", "y"]})
BESIDE = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}


@pytest.mark.parametrize("compacted", [False, True], ids=["logs alone", "one partition compacted"])
def test_file_groups_that_have_logs_alone_are_counted(tmp_path: Path, *, compacted: bool) -> None:
    table = create_table(
        str(tmp_path), ROWS.schema, record_key="id", ordering_fields="ts", partition_by="day", type="MergeOnRead",
        index={"type": "Bucket", "buckets": 1},
    )  # fmt: skip
    if compacted:
        table.upsert(ROWS.slice(0, 2), options=BESIDE)
        table.compact(force=True)
    table.upsert(ROWS.slice(2) if compacted else ROWS, options=BESIDE)
    desired = desired_table(stored(manifest(location=f"file://{tmp_path}", recordKey=["id"], type="MergeOnRead")))
    found = Observer(SystemClock()).table(desired, {})
    assert isinstance(found, TableObservation)
    told = data(desired.spec, found)
    assert told is not None
    assert (told.records, told.files, told.partitions) == (None, int(compacted), 2)
    logs = list(tmp_path.glob("y/.*.log.*" if compacted else "*/.*.log.*"))
    assert told.log_bytes == sum(log.stat().st_size for log in logs) > 0
    assert extent(ServiceWork(ServiceType.LOG_COMPACTION), found) == (len(logs), told.log_bytes)
