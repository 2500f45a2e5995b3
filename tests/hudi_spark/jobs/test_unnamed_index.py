"""An ingest into a table that stores no index, as Apache Hudi makes them with version 6: each of
its writers is told, an ingest by the manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_spark.jobs.__main__ import main
from hudi_table.api import open_table
from hudi_table.model.job.jobspec import JobResult, JobSpec
from tests.support.golden import unpack


def rows(base: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in open_table(str(base)).scan().to_arrow().to_pylist()}


def ingested(base: Path, folder: Path, row: dict[str, Any], index: dict[str, Any]) -> tuple[int, JobResult]:
    """Exit code and result of an ingest of one row."""
    (folder / "in").mkdir()
    pq.write_table(pa.Table.from_pylist([row], open_table(str(base)).schema()), folder / "in" / "one.parquet")
    table = {
        "name": "bktcow",
        "location": f"file://{base}",
        "type": "CopyOnWrite",
        "recordKey": ["id"],
        "partitionBy": ["city"],
        "orderingFields": ["ts"],
        "index": index,
    }
    source = {"type": "Files", "path": f"file://{folder / 'in'}", "format": "parquet"}
    work = {"type": "Ingest", "name": "feed", "operation": "Upsert", "source": source, "transform": []}
    asked, answer = folder / "spec.json", folder / "result.json"
    asked.write_text(JobSpec("one", table, work, engine="Local").to_json())
    code = main([str(asked), str(answer)])
    return code, JobResult.from_json(answer.read_text())


def test_a_table_that_stores_no_index_is_written_by_that_of_the_manifest(tmp_path: Path) -> None:
    base = unpack("bktcow", tmp_path).base
    before = rows(base)
    some = next(iter(before.values()))
    changed = {**some, "name": "by a job", "ts": some["ts"] + 1}
    code, result = ingested(base, tmp_path, changed, {"type": "Bucket", "buckets": 4})
    assert code == 0, result
    assert rows(base) == {**before, some["id"]: changed}
    assert open_table(str(base)).context.config.index is None


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ({"type": "Simple"}, "are those of a bucket index; give hoodie.index.type=BUCKET"),
        ({"type": "Bucket", "buckets": 8}, "the options name 8 buckets over id, which put key"),
    ],
    ids=str,
)
def test_an_index_that_is_not_the_tables_is_refused_and_nothing_is_written(
    tmp_path: Path, index: dict[str, Any], words: str
) -> None:
    base = unpack("bktcow", tmp_path).base
    before = rows(base)
    some = next(iter(before.values()))
    code, result = ingested(base, tmp_path, {**some, "ts": some["ts"] + 1}, index)
    assert (code, result.error_class, words in result.message) == (64, "InvalidOption", True), result.message
    assert rows(base) == before
