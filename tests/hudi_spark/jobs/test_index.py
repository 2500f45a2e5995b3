"""What a job measures of its table's index, after its work and only where that is asked: real
ingests on the local engine.

Aspects: what is told of filters and of buckets; who measures and who does not; that measuring,
failed or ended, takes nothing of the job's result back; the room that Kubernetes gives it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_spark.jobs import __main__ as job
from hudi_spark.jobs import index
from hudi_table.api import open_table
from hudi_table.model.job.jobspec import MEASURE_INDEX, JobResult, JobSpec

OVERFILLED = {
    "hoodie.index.bloom.num_entries": "10",
    "hoodie.index.bloom.fpp": "0.1",
    "hoodie.bloom.index.filter.type": "SIMPLE",
}
BLOOM = {"index": {"type": "Bloom"}, "options": OVERFILLED}
"""A hundred keys are too many for such filters."""


class Folder:
    """A table and the files that land for it."""

    def __init__(self, path: Path, **table: Any) -> None:
        self.path = path
        self.table = {
            "name": "flights",
            "location": f"file://{path}/lake",
            "type": "CopyOnWrite",
            "recordKey": ["id"],
            "partitionBy": [{"field": "city"}],
            "orderingFields": ["ts"],
            **table,
        }

    def run(self, number: int, city: str = "a", *, asked: bool = True, **work: Any) -> tuple[int, JobResult]:
        """One file more, as an ingest's job takes it."""
        landing = self.path / "in"
        landing.mkdir(exist_ok=True)
        ids = [f"{city}{i}" for i in range(100)]
        rows = {"id": ids, "ts": pa.array([number] * 100, pa.int64()), "city": [city] * 100}
        pq.write_table(pa.table(rows), landing / f"{number}.parquet")
        source = {"type": "Files", "path": f"file://{landing}", "format": "parquet"}
        fields = {"type": "Ingest", "name": "feed", "operation": "Upsert", "source": source, "transform": [], **work}
        spec = JobSpec("one", self.table, fields | ({MEASURE_INDEX: True} if asked else {}), engine="Local")
        (self.path / "spec.json").write_text(spec.to_json())
        return self.again()

    def again(self) -> tuple[int, JobResult]:
        """The same job once more."""
        return job.main([str(self.path / "spec.json"), str(self.result)]), self.read()

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    def read(self) -> JobResult:
        return JobResult.from_json(self.result.read_text())


def test_filters_that_are_too_full_are_told_as_of_the_write_of_the_job(tmp_path: Path) -> None:
    code, result = Folder(tmp_path, **BLOOM).run(1)
    assert (code, result.outcome) == (0, "Succeeded")
    (sentence,) = result.index.pop("advice")
    assert "the bloom filters of 1 of 1 file are too full" in sentence
    assert result.index == {"type": "Bloom", "better": None, "instant": result.instants[0]}


def test_an_index_that_does_well_is_told_without_advice(tmp_path: Path) -> None:
    _, result = Folder(tmp_path, index={"type": "Bloom"}).run(1)
    assert result.index == {"type": "Bloom", "advice": [], "better": None, "instant": result.instants[0]}


def test_buckets_are_judged_by_the_size_that_the_manifest_wants(tmp_path: Path) -> None:
    index = {"index": {"type": "Bucket", "buckets": 2}}
    (tmp_path / "small").mkdir()
    _, large = Folder(tmp_path, **index).run(1)
    _, small = Folder(tmp_path / "small", **index, options={"hoodie.parquet.max.file.size": "1000"}).run(1)
    assert "files should have 120 MiB: fewer buckets" in large.index["advice"][0]
    assert "files should have 0.98 KiB: more buckets" in "".join(small.index["advice"])


def test_a_job_that_is_not_asked_tells_what_an_earlier_operator_understands(tmp_path: Path) -> None:
    folder = Folder(tmp_path, **BLOOM)
    _, result = folder.run(1, asked=False)
    assert result.outcome == "Succeeded"
    assert "index" not in json.loads(folder.result.read_text())


def test_a_job_that_finds_nothing_to_do_measures_and_one_that_fails_does_not(tmp_path: Path) -> None:
    folder = Folder(tmp_path, **BLOOM)
    folder.run(1)
    _, idle = folder.again()
    assert (idle.outcome, idle.index["type"]) == ("NothingToDo", "Bloom")
    code, failed = folder.run(2, operation="Replace")
    assert (code != 0, failed.index) == (True, {})


def test_a_footer_that_cannot_be_read_fails_the_measuring_and_not_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Folder(tmp_path, **BLOOM)
    folder.run(1)
    (broken,) = (tmp_path / "lake").glob("a/*.parquet")
    broken.write_bytes(b"PAR1")
    code, result = folder.run(2, "b")
    assert (code, result.outcome, result.index) == (0, "Succeeded", {})
    assert "CorruptTableError" in capsys.readouterr().err


def test_the_result_stands_before_the_measuring_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, found = Folder(tmp_path, **BLOOM), []

    def ends_here(spec: JobSpec) -> dict[str, Any]:
        found.append((spec.attempt, folder.read()))
        return {}

    monkeypatch.setattr(index, "measure_index", ends_here)
    _, result = folder.run(1)
    assert found == [("one", result)]
    assert open_table(str(tmp_path / "lake")).scan().count() == 100


def test_a_message_for_the_kubelet_holds_both(tmp_path: Path) -> None:
    folder = Folder(tmp_path, **BLOOM)
    folder.result.write_text("")
    inode = folder.result.stat().st_ino
    _, result = folder.run(1)
    assert folder.result.stat().st_ino == inode, "it is mounted, and cannot be replaced"
    assert len(folder.result.read_bytes()) <= job.TERMINATION_BYTES_MAX
    assert (result.figures["recordsInserted"], len(result.index["advice"])) == (100, 1)
