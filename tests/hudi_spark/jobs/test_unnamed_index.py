"""An ingest into a table that stores no index, as Apache Hudi makes them with version 6: each of
its writers is told, an ingest by the manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_spark.jobs.__main__ import main
from hudi_table.api import open_table
from hudi_table.model.job.jobspec import JobResult, JobSpec
from tests.support.golden import unpack


def rows(base: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in open_table(str(base)).scan().to_arrow().to_pylist()}


def test_a_table_that_stores_no_index_is_written_by_that_of_the_manifest(tmp_path: Path) -> None:
    base = unpack("bktcow", tmp_path).base
    before = rows(base)
    some = next(iter(before.values()))
    changed = {**some, "name": "by a job", "ts": some["ts"] + 1}
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pylist([changed], open_table(str(base)).schema()), tmp_path / "in" / "one.parquet")
    table = {
        "name": "bktcow",
        "location": f"file://{base}",
        "type": "CopyOnWrite",
        "recordKey": ["id"],
        "partitionBy": ["city"],
        "orderingFields": ["ts"],
        "index": {"type": "Bucket", "buckets": 4},
    }
    source = {"type": "Files", "path": f"file://{tmp_path / 'in'}", "format": "parquet"}
    work = {"type": "Ingest", "name": "feed", "operation": "Upsert", "source": source, "transform": []}
    asked, answer = tmp_path / "spec.json", tmp_path / "result.json"
    asked.write_text(JobSpec("one", table, work, engine="Local").to_json())

    code = main([str(asked), str(answer)])

    assert code == 0, JobResult.from_json(answer.read_text())
    assert rows(base) == {**before, some["id"]: changed}
    assert open_table(str(base)).context.config.index is None
