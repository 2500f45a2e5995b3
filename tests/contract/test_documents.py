"""JobSpec and JobResult, pinned: the operator renders the first and parses the second, the job the
reverse.

The golden files change only together with both sides; a field may be added, none may change its
meaning.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.resources import desired_service, desired_table
from hudi_operator.api.status import ADVICE_LENGTH_MAX, ADVICE_MAX, RunStatus
from hudi_operator.launchers.base import ended
from hudi_operator.manifests.jobs import ingest_job, service_job
from hudi_operator.manifests.services import work_of
from hudi_table.model.job.jobspec import JobResult, JobSpec
from tests.support.manifests import ingest, manifest, spec, stored

GOLDEN = Path(__file__).parent
FULL = spec(
    partitionBy=[{"field": "time_hour", "type": "Timestamp", "format": "yyyy/MM"}],
    storage={"endpoint": "http://s3:7070", "region": "us-east-1", "credentialsSecretRef": {"name": "s3"}},
    files={"targetSize": "16Mi", "smallFileLimit": "128Ki"},
    options={"hoodie.bulkinsert.sort.mode": "none"},
    spark={"conf": {"spark.sql.shuffle.partitions": "4"}},
    ingest=[ingest(transform=[{"sql": "select *, concat_ws('-', a, b, hash(c)) id from source"}])],
)
BARE = {
    "location": "file:///data/flights",
    "recordKey": ["id"],
    "ingest": [
        {
            "name": "feed",
            "operation": "Insert",
            "source": {"type": "Files", "path": "file:///in", "format": "csv", "csv": {"delimiter": ";"}},
        }
    ],
}


@pytest.mark.parametrize(("name", "fields"), [("jobspec-spark", FULL), ("jobspec-local", BARE)])
def test_the_operator_renders_the_pinned_jobspec(name: str, fields: dict[str, Any]) -> None:
    desired = desired_table(stored(manifest(**fields)))
    assert desired.spec is not None
    job = ingest_job("flights", desired.spec, desired.spec.ingest[0], "flights-feed-0a1b2c3d-g1-1", 1000)
    assert json.loads(job.to_json()) == json.loads((GOLDEN / f"{name}.json").read_text())


def test_the_operator_renders_the_pinned_jobspec_of_a_service() -> None:
    owner = desired_table(stored(manifest(**FULL))).spec
    fields = {
        "tableRef": {"name": "flights"},
        "type": "Clustering",
        "mode": "Plan",
        "clustering": {
            "sortColumns": ["carrier", "dest"],
            "layout": "ZOrder",
            "targetFileSize": "300Mi",
            "maxGroups": 4,
        },
        "options": {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"},
    }
    wanted = desired_service(stored(manifest("nightly", "TableService", **fields)))
    assert owner is not None
    assert wanted.spec is not None
    assert not wanted.errors
    approved = work_of(wanted.spec, owner).approved("3f2a91bc00112233")
    job = service_job("flights", owner, approved, "nightly-clustering-0a1b2c3d-g1-2", 1 << 30)
    assert json.loads(job.to_json()) == json.loads((GOLDEN / "jobspec-service.json").read_text())


@pytest.mark.parametrize("name", ["jobspec-spark", "jobspec-local", "jobspec-service"])
def test_the_job_reads_the_pinned_jobspec_without_loss(name: str) -> None:
    text = (GOLDEN / f"{name}.json").read_text()
    assert json.loads(JobSpec.from_json(text).to_json()) == json.loads(text)


@pytest.mark.parametrize("name", ["jobresult-succeeded", "jobresult-failed", "jobresult-planned", "jobresult-advised"])
def test_the_operator_reads_the_pinned_jobresult_without_loss(name: str) -> None:
    text = (GOLDEN / f"{name}.json").read_text()
    assert json.loads(JobResult.from_json(text).to_json()) == json.loads(text)


def test_a_result_becomes_the_status_of_its_run() -> None:
    run = RunStatus(
        "flights-feed-0a1b2c3d-g1-1", "Ingest/feed", "Running", 1, 1, batch="b", started="2026-01-01T00:00:00Z"
    )
    good = ended(run, JobResult.from_json((GOLDEN / "jobresult-succeeded.json").read_text()), "2026-01-01T00:00:09Z")
    assert (good.phase, good.reason, good.instants) == ("Succeeded", None, ("20260101000005123",))
    assert good.figures["recordsInserted"] == 281373
    bad = ended(run, JobResult.from_json((GOLDEN / "jobresult-failed.json").read_text()), "2026-01-01T00:00:09Z")
    assert (bad.phase, bad.reason) == ("Failed", "InvalidData")
    assert bad.message == "record key column 'id' is null in 3 rows"
    planned = ended(run, JobResult.from_json((GOLDEN / "jobresult-planned.json").read_text()), "2026-01-01T00:00:09Z")
    assert planned.plan is not None
    assert (planned.plan.digest, planned.plan.files_before, planned.plan.files_after) == ("3f2a91bc00112233", 7, 2)
    assert len(planned.plan.details) == 2
    advised = ended(run, JobResult.from_json((GOLDEN / "jobresult-advised.json").read_text()), "2026-01-01T00:00:09Z")
    assert advised.index is not None
    assert (advised.index.type, advised.index.better) == ("GlobalSimple", "RecordIndex")
    assert (advised.index.instant, advised.index.observed_at) == ("20260101000005123", "2026-01-01T00:00:09Z")
    assert "120 files" in advised.index.advice[0]


def test_what_a_job_says_of_an_index_is_cut_to_what_a_status_takes_or_left_out() -> None:
    run = RunStatus("flights-feed-0a1b2c3d-g1-1", "Ingest/feed", "Running", 1, 1)
    told = {"type": "Bloom", "advice": ["x" * 5000] * 20, "better": None, "instant": "20260101000005123"}
    found = ended(run, JobResult(run.name, "Succeeded", index=told), "2026-01-01T00:00:09Z").index
    assert found is not None
    assert (len(found.advice), {len(sentence) for sentence in found.advice}) == (ADVICE_MAX, {ADVICE_LENGTH_MAX})
    for wrong in ({"type": 7}, {"instant": None}, {"better": "x" * 100}):
        assert ended(run, JobResult(run.name, "Succeeded", index=told | wrong), None).index is None


@pytest.mark.parametrize(
    "change",
    [{"apiVersion": "hudi.lakeops.dev/v2"}, {"kind": "JobResult"}, {"colour": "red"}],
)
def test_another_version_kind_or_field_is_refused(change: dict[str, str]) -> None:
    document = json.loads((GOLDEN / "jobspec-local.json").read_text()) | change
    with pytest.raises(ValueError, match="JobSpec"):
        JobSpec.from_json(json.dumps(document))


def test_no_secret_stands_in_a_jobspec() -> None:
    """Only the names of the variables that the launcher fills."""
    storage = json.loads((GOLDEN / "jobspec-spark.json").read_text())["storage"]
    assert set(storage) == {"endpoint", "region", "credentials"}
    assert all(name.isupper() for name in storage["credentials"])
