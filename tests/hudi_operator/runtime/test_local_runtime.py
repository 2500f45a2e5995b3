"""The local runtime from manifests to tables: real jobs in processes of their own, on the local
engine.

Aspects: convergence, new files, restarts and lost jobs, and what is wrong with a manifest, a
location, a store or a credential. Each ends in one condition and leaves the table as it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table.api import open_table
from hudi_table.errors import WriteConflictError
from hudi_table.table.store.clock import SystemClock
from tests.support.manifests import ingest, manifest
from tests.support.s3 import ACCESS, running_s3, s3_replies

ROWS = pa.table({"id": ["a", "b", "c"], "ts": pa.array([1, 2, 3], pa.int64()), "city": ["x", None, "x"]})
QUICK = RetryPolicy(attempts_max=2, backoff_first_seconds=0.1, backoff_max_seconds=0.1)
SECRET = {"AWS_ACCESS_KEY_ID": ACCESS["access_key_id"], "AWS_SECRET_ACCESS_KEY": ACCESS["secret_access_key"]}


@dataclass
class Place:
    """A working folder: manifests, landing folder, state."""

    folder: Path
    lines: list[str] = field(default_factory=list)

    @property
    def location(self) -> Path:
        return self.folder / "lake" / "flights"

    def land(self, name: str, rows: pa.Table = ROWS) -> None:
        (self.folder / "in").mkdir(exist_ok=True)
        pq.write_table(rows, self.folder / "in" / name)

    def table(self, **changes: Any) -> dict[str, Any]:
        source = {"type": "Files", "path": f"file://{self.folder}/in/", "format": "parquet"}
        spec = {
            "location": f"file://{self.location}",
            "recordKey": ["id"],
            "orderingFields": ["ts"],
            "index": {"type": "Bucket", "buckets": 2},
            "ingest": [ingest(source=source)],
        }
        return manifest(**(spec | changes))

    def apply(
        self, *documents: dict[str, Any], policy: RetryPolicy = QUICK, clock: SystemClock | None = None
    ) -> Mapping[str, Any]:
        """The HudiTable after `hudictl local`."""
        path = self.folder / "manifest.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        runtime = LocalRuntime([path], self.folder / "state", clock or SystemClock(), self.lines.append, policy)
        return runtime.run()[0]

    def rows(self) -> list[dict[str, Any]]:
        found: pa.Table = open_table(str(self.location)).scan().to_arrow()
        return sorted(found.to_pylist(), key=lambda row: str(row["id"]))

    def attempts(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "state" / "attempts").glob("*"))

    def stored(self) -> Path:
        return self.folder / "state" / "resources" / "HudiTable.default.flights.json"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def conditions(document: Mapping[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in document["status"]["conditions"]}


def assert_stalled(document: Mapping[str, Any], reason: str, *words: str) -> None:
    """One reason and one message, in both conditions that tell it."""
    found = conditions(document)
    assert found["Stalled"][:2] == ("True", reason), found
    assert found["Ready"][0] == "False"
    assert found["Ready"][1:] == found["Stalled"][1:]
    for word in words:
        assert word in found["Stalled"][2]


def test_files_become_a_table_and_new_files_the_next_batch(place: Place) -> None:
    place.land("1.parquet")
    first = place.apply(place.table())
    assert conditions(first)["Ready"][:2] == ("True", "TableReadable")
    assert first["status"]["data"]["records"] == 3
    assert place.rows() == ROWS.to_pylist()

    again = place.apply(place.table())
    assert len(place.attempts()) == 1, "nothing was waiting, so nothing ran"
    assert again["status"] == first["status"]

    place.land("2.parquet", pa.table({"id": ["a", "d"], "ts": pa.array([9, 9], pa.int64()), "city": ["y", "y"]}))
    third = place.apply(place.table())
    assert third["status"]["data"]["records"] == 4
    assert third["status"]["ingest"][0]["consumedFiles"] == 2
    assert [run["figures"]["filesConsumed"] for run in third["status"]["runs"]] == [1, 1]
    assert "flights: Succeeded: Ingest/feed: 1 row inserted, 1 updated, 0 deleted from 1 file" in "\n".join(place.lines)


def test_a_state_that_was_lost_is_found_again_in_the_timeline(place: Place) -> None:
    place.land("1.parquet")
    place.apply(place.table())
    for path in sorted((place.folder / "state").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    again = place.apply(place.table())
    assert conditions(again)["Ready"][0] == "True"
    assert place.attempts() == []


def test_a_job_that_vanished_after_its_commit_succeeded(place: Place) -> None:
    place.land("1.parquet")
    place.apply(place.table())
    (attempt,) = place.attempts()
    (place.folder / "state" / "attempts" / attempt / "result.json").unlink()
    document = json.loads(place.stored().read_text())
    document["status"]["runs"][0]["phase"] = "Running"
    place.stored().write_text(json.dumps(document))
    found = place.apply(place.table())
    assert found["status"]["runs"][0]["phase"] == "Succeeded"
    assert place.attempts() == [attempt]


def test_a_job_that_vanished_before_its_commit_is_run_again(place: Place) -> None:
    place.land("1.parquet")
    planned = place.table()
    place.apply({**planned, "spec": {**planned["spec"], "suspend": True}})
    document = json.loads(place.stored().read_text())
    run = {"name": "flights-feed-x-g2-1", "work": "Ingest/feed", "phase": "Running", "generation": 2, "attempt": 1}
    document["status"]["runs"] = [run | {"started": "2026-01-01T00:00:00Z"}]
    place.stored().write_text(json.dumps(document))
    found = place.apply(planned)
    assert [run["phase"] for run in found["status"]["runs"]] == ["Succeeded", "Failed"]
    assert found["status"]["runs"][1]["reason"] == "JobLost"
    assert place.rows() == ROWS.to_pylist()


def test_a_suspended_table_starts_nothing(place: Place) -> None:
    place.land("1.parquet")
    found = place.apply(place.table(suspend=True))
    assert conditions(found)["Fresh"][:2] == ("False", "FilesWaiting")
    assert place.attempts() == []


def test_without_files_there_is_no_table_and_no_fault(place: Place) -> None:
    found = place.apply(place.table())
    assert conditions(found)["Ready"][:2] == ("False", "NoTable")
    assert "Stalled" not in conditions(found)


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"options": {"hoodie.parquet.max.file.sise": "1"}}, "InvalidSpec", "hoodie.parquet.max.file.size"),
        ({"recordKey": []}, "InvalidSpec", "spec.recordKey"),
        ({"location": "lake/flights"}, "InvalidSpec", "spec.location"),
        ({"orderingFields": ["hour", "minute"], "tableVersion": 6}, "InvalidSpec", "spec.orderingFields"),
        ({"storage": {"credentialsSecretRef": {"name": "s3"}}}, "InvalidSpec", "there is no Secret 's3'"),
    ],
)
def test_a_wrong_manifest_starts_nothing(place: Place, changes: dict[str, Any], reason: str, words: str) -> None:
    place.land("1.parquet")
    assert_stalled(place.apply(place.table(**changes)), reason, words)
    assert place.attempts() == []
    assert not place.location.exists()


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"recordKey": ["flight_id"]}, "InvalidSchema", "flight_id"),
        ({"recordKey": ["city"]}, "InvalidData", "city"),
    ],
)
def test_rows_that_do_not_fit_stall_at_once_until_the_manifest_is_mended(
    place: Place, changes: dict[str, Any], reason: str, words: str
) -> None:
    place.land("1.parquet")
    for _ in range(2):
        assert_stalled(place.apply(place.table(**changes)), reason, words)
    assert len(place.attempts()) == 1, "no loop: the same rows and the same manifest would fail again"
    assert not [path for path in place.location.rglob("*") if path.is_file()]
    assert conditions(place.apply(place.table()))["Ready"][0] == "True"


def test_a_key_field_that_is_changed_stalls_and_changes_nothing(place: Place) -> None:
    place.land("1.parquet")
    place.apply(place.table())
    place.land("2.parquet")
    for _ in range(2):
        found = place.apply(place.table(recordKey=["city"]))
        assert_stalled(found, "InvalidSpec", "spec.recordKey: is ['city']", "['id']")
    assert place.rows() == ROWS.to_pylist()
    assert len(place.attempts()) == 1
    assert conditions(place.apply(place.table()))["Ready"][0] == "True"


def test_a_location_that_holds_something_else_is_left_alone(place: Place) -> None:
    place.land("1.parquet")
    place.location.mkdir(parents=True)
    (place.location / "notes.txt").write_text("mine")
    assert_stalled(place.apply(place.table()), "InvalidRequest", "notes.txt")
    assert [path.name for path in place.location.rglob("*")] == ["notes.txt"]
    assert place.attempts() == []


def test_damaged_properties_stall(place: Place) -> None:
    place.land("1.parquet")
    place.apply(place.table())
    properties = place.location / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.name=flights", "hoodie.table.name=x"))
    place.land("2.parquet")
    assert_stalled(place.apply(place.table()), "CorruptTable", "hoodie.properties")
    assert len(place.attempts()) == 1


def test_a_source_file_that_cannot_be_read_is_named_and_may_be_replaced(place: Place) -> None:
    place.land("1.parquet")
    (place.folder / "in" / "2.parquet").write_bytes(b"PAR1 no Parquet at all PAR1")
    assert_stalled(place.apply(place.table()), "InvalidData", "2.parquet")
    place.land("2.parquet")
    assert conditions(place.apply(place.table()))["Ready"][0] == "True"


def test_a_store_that_does_not_answer_is_given_up_after_some_looks(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRET.items():
        monkeypatch.setenv(name, value)
    with s3_replies((503, "SlowDown")) as store:
        found = place.apply(
            place.table(location="s3://lake/flights", storage={"endpoint": store.endpoint, "region": "us-east-1"})
        )
        assert not [method for method, _ in store.requests if method in ("PUT", "DELETE", "POST")]
    assert_stalled(found, "Unavailable")
    assert place.attempts() == []


def test_a_credential_that_is_refused_stalls_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with s3_replies((403, "InvalidAccessKeyId")) as store:
        found = place.apply(
            place.table(location="s3://lake/flights", storage={"endpoint": store.endpoint, "region": "us-east-1"})
        )
        assert not [method for method, _ in store.requests if method in ("PUT", "DELETE", "POST")]
    assert_stalled(found, "AccessDenied")
    assert place.attempts() == []


@pytest.mark.s3
def test_table_and_source_may_lie_on_s3_and_the_secret_stays_in_memory(place: Place) -> None:
    with running_s3() as server:
        sink = pa.BufferOutputStream()
        pq.write_table(ROWS, sink)
        server.client().put_object(Bucket=server.bucket, Key="in/1.parquet", Body=sink.getvalue().to_pybytes())
        source = {"type": "Files", "path": f"s3://{server.bucket}/in/", "format": "parquet"}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "stringData": SECRET}
        storage = {"endpoint": server.endpoint, "region": "us-east-1", "credentialsSecretRef": {"name": "s3"}}
        location = f"s3://{server.bucket}/flights"
        found = place.apply(place.table(location=location, storage=storage, ingest=[ingest(source=source)]), secret)
        assert conditions(found)["Ready"][0] == "True", conditions(found)
        rows = open_table(location, storage_options=server.options).scan().to_arrow().sort_by("id")
        assert rows.to_pylist() == ROWS.to_pylist()
    value = SECRET["AWS_SECRET_ACCESS_KEY"]
    kept = [path for path in (place.folder / "state").rglob("*") if path.is_file() and value in path.read_text()]
    assert not kept
    assert value not in "\n".join(place.lines)


def test_a_state_folder_is_used_by_one_process_at_a_time(place: Place) -> None:
    place.apply(place.table())
    other = LocalRuntime([place.folder / "manifest.yaml"], place.folder / "state", SystemClock(), print)
    other.cluster.acquire()
    try:
        with pytest.raises(WriteConflictError, match="another hudictl local"):
            place.apply(place.table())
    finally:
        other.cluster.release()


def test_watching_takes_new_files_as_they_come(place: Place) -> None:
    class Watcher(SystemClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(min(seconds, 0.1))
            ended = sum("Succeeded" in line for line in place.lines)
            if ended == 1:
                place.land("2.parquet", ROWS.set_column(1, "ts", pa.array([7, 8, 9], pa.int64())))
            elif ended == 2:
                raise KeyboardInterrupt

    place.land("1.parquet")
    path = place.folder / "manifest.yaml"
    path.write_text(yaml.safe_dump(place.table()))
    with pytest.raises(KeyboardInterrupt):
        LocalRuntime([path], place.folder / "state", Watcher(), place.lines.append, QUICK, watch=True).run()
    assert [row["ts"] for row in place.rows()] == [7, 8, 9]


def test_a_merge_on_read_table_is_compacted_when_its_trigger_says_so(place: Place) -> None:
    changes: dict[str, Any] = {
        "type": "MergeOnRead",
        "maintenance": {"compaction": {"mode": "Auto"}},
        # The first of them is the founding commit.
        "options": {"hoodie.compact.inline.max.delta.commits": "4"},
    }
    place.land("1.parquet")
    place.apply(place.table(**changes))
    place.land("2.parquet", pa.table({"id": ["a"], "ts": pa.array([9], pa.int64()), "city": ["y"]}))
    logged = place.apply(place.table(**changes))
    assert conditions(logged)["Compacted"][:2] == ("False", "LogFiles")
    assert logged["status"]["data"]["logBytes"] > 0
    place.land("3.parquet", pa.table({"id": ["b"], "ts": pa.array([9], pa.int64()), "city": ["y"]}))
    done = place.apply(place.table(**changes))
    # Of two that began in the same second either may come first.
    compaction, *ingests = sorted(done["status"]["runs"], key=lambda run: str(run["work"]))
    assert [run["work"] for run in (compaction, *ingests)] == ["Compaction", *["Ingest/feed"] * 3]
    assert compaction["phase"] == "Succeeded"
    assert compaction["figures"]["fileGroups"] >= 1
    assert conditions(done)["Compacted"][:2] == ("True", "NoLogFiles")
    assert done["status"]["data"]["records"] == 3
    assert [row["ts"] for row in place.rows()] == [9, 9, 3]
    again = place.apply(place.table(**changes))
    assert again["status"]["runs"] == done["status"]["runs"]


def test_a_published_plan_is_executed_by_the_next_look(place: Place) -> None:
    changes: dict[str, Any] = {"type": "MergeOnRead", "maintenance": {"compaction": {"mode": "Auto"}}}
    place.land("1.parquet")
    place.apply(place.table(**changes))
    table = open_table(str(place.location))
    table.upsert(pa.table({"id": ["a"], "ts": pa.array([9], pa.int64()), "city": ["y"]}))
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    done = place.apply(place.table(**changes))
    # An ingest that found nothing may have begun in the same second.
    assert [run["instants"] for run in done["status"]["runs"] if run["work"] == "Compaction"] == [[plan.instant]]
    assert done["status"]["timeline"]["pending"] == []


def cities(place: Place, *, suspend: bool = False, **hudi: str) -> dict[str, Any]:
    """A table that follows the one of `place`."""
    source = {"type": "Hudi", "hudi": {"location": f"file://{place.location}", "deletes": "Delete", **hudi}}
    return manifest(
        "cities", location=f"file://{place.folder}/lake/cities", recordKey=["id"], suspend=suspend,
        index={"type": "Bucket", "buckets": 2}, ingest=[ingest(source=source)],
    )  # fmt: skip


def cities_of(place: Place) -> list[str]:
    found: pa.Table = open_table(str(place.folder / "lake" / "cities")).scan(["id"]).to_arrow()
    return sorted(found.column("id").to_pylist())


def test_a_table_follows_another_one_with_its_deletes(place: Place) -> None:
    place.land("1.parquet")
    place.apply(place.table(), cities(place))
    assert cities_of(place) == ["a", "b", "c"]
    open_table(str(place.location)).delete(ROWS.slice(0, 1).select(["id", "ts"]))
    place.apply(place.table(), cities(place))
    assert cities_of(place) == ["b", "c"]


@pytest.mark.parametrize(("hold", "kept"), [("24h", True), ("0s", False)])
def test_cleaning_leaves_what_a_table_has_not_taken_yet(place: Place, hold: str, *, kept: bool) -> None:
    place.land("1.parquet")
    place.apply(place.table(), cities(place, maxHold=hold))
    above = open_table(str(place.location))
    above.delete(ROWS.slice(0, 1).select(["id", "ts"]))
    for n in range(10, 24):
        above.upsert(pa.table({"id": ["b"], "ts": pa.array([n], pa.int64()), "city": ["y"]}))
    # A clean leaves to readers what was superseded within the last minute.
    for file in place.location.glob(".hoodie/timeline/*"):
        os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 120))
    resting = cities(place, suspend=True, maxHold=hold)
    place.apply(place.table(maintenance={"cleaning": {"keepCommits": 2}}), resting)
    assert bool(list(place.location.glob(".hoodie/timeline/*.clean"))) is not kept
    follower = json.loads((place.folder / "state" / "resources" / "HudiTable.default.cities.json").read_text())
    assert ("heldUntil" in follower["status"]["ingest"][0]) is kept, "both tables tell of it"
    place.apply(place.table(), cities(place, maxHold=hold))
    assert cities_of(place) == (["b", "c"] if kept else ["a", "b", "c"])
