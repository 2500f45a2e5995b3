"""The ingest job where a queue of SQS tells which files came: each file once, whatever comes twice,
late, or is nothing that can be read. Bucket and queue are moto's, which sends the events itself."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_spark.jobs import ingest
from hudi_spark.jobs.__main__ import main
from hudi_table.api import open_table
from hudi_table.errors import InvalidDataError, UnavailableError
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.sources.files import notified, source, sqs
from hudi_table.table.store.clock import SystemClock
from tests.support.kubelet import eventually
from tests.support.manifests import manifest
from tests.support.s3 import ACCESS, S3Server, running_s3, s3_replies

pytestmark = pytest.mark.s3

ROWS = pa.table({"id": [f"k{i}" for i in range(6)], "value": pa.array(range(6), pa.int64())})
ACCOUNT = "123456789012"


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    with running_s3() as found:
        yield found


@dataclass
class Landing:
    """A folder of a bucket whose events go to a queue, and the table that its files become."""

    store: S3Server
    lake: Path
    name: str = field(default_factory=lambda: uuid.uuid4().hex[:10])

    def __post_init__(self) -> None:
        self.sqs = _client(self.store)
        self.queue = self.sqs.create_queue(QueueName=self.name)["QueueUrl"]

    def subscribe(self) -> None:
        """From now on events are sent, the first of them a test."""
        arn = f"arn:aws:sqs:us-east-1:{ACCOUNT}:{self.name}"
        self.store.client().put_bucket_notification_configuration(
            Bucket=self.store.bucket,
            NotificationConfiguration={
                "QueueConfigurations": [
                    {
                        "QueueArn": arn,
                        "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"],
                        "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": f"{self.name}/"}]}},
                    }
                ]
            },
        )

    def land(self, name: str, rows: pa.Table | bytes = ROWS) -> None:
        if isinstance(rows, pa.Table):
            sink = pa.BufferOutputStream()
            pq.write_table(rows, sink)
            rows = sink.getvalue().to_pybytes()
        self.store.client().put_object(Bucket=self.store.bucket, Key=f"{self.name}/{name}", Body=rows)

    def send(self, body: str | dict[str, Any]) -> None:
        self.sqs.send_message(QueueUrl=self.queue, MessageBody=body if isinstance(body, str) else json.dumps(body))

    def waiting(self) -> tuple[int, int]:
        """Messages that are seen, and those that are hidden."""
        depth = sqs.Queue(self.queue, credentials=_environment()).depth()
        return depth.waiting, depth.in_flight

    def run(self, operation: str = "Insert", policy: str | None = None, **changes: Any) -> JobResult:
        table = {
            "name": "orders",
            "location": f"file://{self.lake}/orders",
            "type": "CopyOnWrite",
            "recordKey": ["id"],
            "index": {"type": "Simple"},
        }
        asked = {"schemaPolicy": policy, **changes.pop("asked", {})}
        source = {
            "type": "Files",
            "path": f"s3://{self.store.bucket}/{self.name}/",
            "format": "parquet",
            "notifications": {"type": "Sqs", "queue": self.queue},
            **changes,
        }
        work = {"type": "Ingest", "name": "feed", "operation": operation, "source": source, **asked}
        storage = {"endpoint": self.store.endpoint, "region": "us-east-1", "credentials": [*_environment()]}
        self.lake.mkdir(exist_ok=True)
        paths = [self.lake / "spec.json", self.lake / "result.json"]
        paths[0].write_text(JobSpec(uuid.uuid4().hex[:8], table, work, engine="Local", storage=storage).to_json())
        main([str(path) for path in paths])
        return JobResult.from_json(paths[1].read_text())

    def good(self, **changes: Any) -> JobResult:
        done = self.run(**changes)
        assert done.outcome == "Succeeded", done.message
        return done

    def rows(self) -> list[dict[str, Any]]:
        found = open_table(f"{self.lake}/orders").scan().to_arrow().to_pylist()
        return sorted(found, key=lambda each: (each["id"], each["value"]))

    def commits(self) -> int:
        return len(list((self.lake / "orders").glob(".hoodie/timeline/*.commit")))


def _environment() -> dict[str, str]:
    return {"AWS_ACCESS_KEY_ID": ACCESS["access_key_id"], "AWS_SECRET_ACCESS_KEY": ACCESS["secret_access_key"]}


def _client(store: S3Server) -> Any:
    import boto3  # type: ignore[import-untyped]

    keys = {f"aws_{name}": value for name, value in ACCESS.items()}
    return boto3.client("sqs", endpoint_url=store.endpoint, region_name="us-east-1", **keys)


@pytest.fixture
def landing(store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Landing:
    for name, value in _environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(notified, "WAIT_SECONDS", 0)
    found = Landing(store, tmp_path / "lake")
    found.subscribe()
    return found


def test_the_files_that_the_queue_tells_of_become_one_commit_and_its_messages_go(landing: Landing) -> None:
    landing.land("1.parquet", ROWS.slice(0, 3))
    landing.land("more of it/ü+&.parquet", ROWS.slice(3))
    assert landing.waiting()[0] >= 2
    done = landing.good()
    assert done.figures["filesConsumed"] == 2
    assert landing.rows() == ROWS.to_pylist()
    assert landing.waiting() == (0, 0)
    before = landing.commits()
    assert landing.run().outcome == "NothingToDo"
    assert landing.commits() == before


def test_the_first_run_takes_also_what_lay_there_before_the_queue(store: S3Server, landing: Landing) -> None:
    landing.land("old.parquet", ROWS.slice(0, 2))
    landing.sqs.purge_queue(QueueUrl=landing.queue)
    landing.land("new.parquet", ROWS.slice(2, 2))
    landing.good()
    assert landing.rows() == ROWS.slice(0, 4).to_pylist()


def test_later_runs_do_not_list_the_folder(landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
    landing.land("1.parquet", ROWS.slice(0, 3))
    landing.good()
    landing.land("2.parquet", ROWS.slice(3))

    def listed(_: Any) -> Any:
        raise AssertionError("the folder is listed")

    monkeypatch.setattr(source, "list_source", listed)
    landing.good()
    assert landing.rows() == ROWS.to_pylist()


def test_more_files_than_one_answer_tells_of_are_one_commit(landing: Landing) -> None:
    many = pa.table({"id": [f"k{i:03}" for i in range(25)], "value": pa.array(range(25), pa.int64())})
    for number in range(25):
        landing.land(f"{number}.parquet", many.slice(number, 1))
    assert landing.good().figures["filesConsumed"] == 25
    assert landing.rows() == many.to_pylist()
    assert landing.waiting() == (0, 0)


def test_a_file_is_taken_once_though_its_message_was_not_deleted(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notified, "HIDDEN_SECONDS", 3)
    landing.land("1.parquet")

    def fails(*_: Any) -> None:
        raise UnavailableError("the queue does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(sqs.Queue, "delete", fails)
        landing.good()
    eventually(lambda: landing.waiting()[1] == 0 or None, "messages that are seen again")
    assert landing.waiting()[0]
    assert landing.run().outcome == "NothingToDo"
    assert landing.waiting() == (0, 0)
    assert landing.rows() == ROWS.to_pylist()


def test_a_run_that_fails_gives_its_messages_back_at_once(landing: Landing) -> None:
    landing.land("1.parquet", pa.table({"value": pa.array([1], pa.int64())}))
    failed = landing.run()
    assert failed.error_class == "InvalidSchema", failed.message
    assert landing.waiting()[0]
    assert landing.waiting()[1] == 0


def test_a_file_that_was_written_anew_is_taken_as_it_is_now_and_one_that_is_gone_not_at_all(landing: Landing) -> None:
    landing.land("0.parquet", ROWS.slice(0, 1))
    landing.good()
    landing.land("1.parquet", ROWS.slice(1, 1))
    landing.land("1.parquet", ROWS.slice(2, 1))
    landing.land("2.parquet", ROWS.slice(3, 1))
    landing.store.client().delete_object(Bucket=landing.store.bucket, Key=f"{landing.name}/2.parquet")
    landing.good()
    assert [row["id"] for row in landing.rows()] == ["k0", "k2"]
    assert landing.waiting() == (0, 0)


def test_files_that_are_no_data_are_passed_over(landing: Landing) -> None:
    landing.land("_SUCCESS", b"")
    landing.land("_temporary/part.parquet")
    landing.land("empty.parquet", b"")
    landing.land("folder/", b"")
    assert landing.run().outcome == "NothingToDo"
    assert landing.waiting() == (0, 0)


@pytest.mark.parametrize("first", [True, False], ids=["first commit", "later"])
def test_what_cannot_be_read_is_set_aside_and_does_not_keep_the_others_back(landing: Landing, *, first: bool) -> None:
    landing.land("0.parquet", ROWS.slice(0, 1))
    if not first:
        landing.good()
    landing.land("bad.parquet", b"this is no Parquet file")
    # Behind the file that gives the table its columns, in front of those that fit a table that has them.
    other = "other.parquet" if first else "0-other.parquet"
    landing.land(other, pa.table({"id": ["k9"], "value": ["a text"]}))
    landing.land("1.parquet", ROWS.slice(1))
    landing.send("hello")
    landing.send(
        {
            "Records": [
                {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "elsewhere"}, "object": {"key": "x"}}}
            ]
        }
    )
    done = landing.good()
    assert landing.rows() == ROWS.to_pylist()
    for words in ("set aside: 4 messages", "'hello'", "s3://elsewhere/x, which is not below"):
        assert words in done.message
    assert landing.waiting() == (0, 4)
    assert landing.run().outcome == "NothingToDo"


def test_a_file_that_only_the_words_of_an_error_name_is_set_aside_too(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of Spark's tasks."""
    landing.land("1.parquet")
    landing.land("bad.parquet", b"this is no Parquet file")
    real = ingest._commit

    def wordy(*arguments: Any) -> Any:
        try:
            return real(*arguments)
        except InvalidDataError as error:
            raise InvalidDataError(error.message) from error

    monkeypatch.setattr(ingest, "_commit", wordy)
    assert "set aside: 1 message" in landing.good().message
    assert landing.rows() == ROWS.to_pylist()


def test_what_was_set_aside_goes_where_the_redrive_policy_says(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notified, "HIDDEN_SECONDS", 0)
    monkeypatch.setattr(notified, "MESSAGES_MAX", 1)
    dead = landing.sqs.create_queue(QueueName=f"{landing.name}-dead")["QueueUrl"]
    policy = {"deadLetterTargetArn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:{landing.name}-dead", "maxReceiveCount": 2}
    landing.sqs.set_queue_attributes(QueueUrl=landing.queue, Attributes={"RedrivePolicy": json.dumps(policy)})
    landing.sqs.purge_queue(QueueUrl=landing.queue)
    landing.send("hello")
    for _ in range(3):
        assert landing.run().outcome == "NothingToDo"
    assert landing.waiting() == (0, 0)
    assert landing.sqs.receive_message(QueueUrl=dead)["Messages"][0]["Body"] == "hello"


def test_files_are_told_of_by_sns_and_by_eventbridge_too(landing: Landing) -> None:
    landing.land("0.parquet", ROWS.slice(0, 1))
    landing.good()
    landing.land("1+1.parquet", ROWS.slice(1, 1))
    landing.land("2 2.parquet", ROWS.slice(2, 1))
    landing.sqs.purge_queue(QueueUrl=landing.queue)
    landing.send({"Type": "Notification", "Message": json.dumps(_event(landing, "2+2.parquet"))})
    detail = {"bucket": {"name": landing.store.bucket}, "object": {"key": f"{landing.name}/1+1.parquet"}}
    landing.send({"source": "aws.s3", "detail-type": "Object Created", "detail": detail})
    landing.send({"source": "aws.s3", "detail-type": "Object Deleted", "detail": detail})
    landing.good()
    assert landing.rows() == ROWS.slice(0, 3).to_pylist()
    assert landing.waiting() == (0, 0)


def test_what_a_message_tells_of_elsewhere_does_not_keep_its_other_files_back(landing: Landing) -> None:
    landing.land("1.parquet")
    landing.sqs.purge_queue(QueueUrl=landing.queue)
    ours = _event(landing, "1.parquet")
    elsewhere = json.loads(json.dumps(ours).replace(landing.name, "elsewhere"))
    landing.send({"Records": [*elsewhere["Records"], *ours["Records"]]})
    assert "set aside" not in landing.good().message
    assert (landing.rows(), landing.waiting()) == (ROWS.to_pylist(), (0, 0))


def test_a_queue_that_is_not_there_and_another_type_are_refused_by_name(landing: Landing) -> None:
    absent = landing.run(notifications={"type": "Sqs", "queue": f"{landing.queue}-absent"})
    assert absent.error_class == "InvalidRequest"
    assert f"there is no queue {landing.queue}-absent" in absent.message
    other = landing.run(notifications={"type": "Pubsub", "queue": "x"})
    assert "notifications.type is 'Pubsub'; give Sqs" in other.message


def test_a_queue_that_refuses_or_does_not_answer_says_so_without_a_secret(landing: Landing) -> None:
    with s3_replies((403, "AccessDenied")) as closed:
        found = landing.run(notifications={"type": "Sqs", "queue": f"{closed.endpoint}/{ACCOUNT}/landing"})
    gone = landing.run(notifications={"type": "Sqs", "queue": f"{closed.endpoint}/{ACCOUNT}/landing"})
    assert gone.error_class == "Unavailable", gone.message
    assert found.error_class in ("AccessDenied", "InvalidRequest"), found.message
    assert not any(value in each.message for each in (found, gone) for value in ACCESS.values())


def test_what_is_forgotten_past_the_bound_is_what_left_the_folder(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hudi_table.model.job import checkpoint

    monkeypatch.setattr(checkpoint, "RECENT_MAX", 1)
    monkeypatch.setattr(checkpoint, "CONSUMED_MAX", 2)
    for number in range(3):
        landing.land(f"{number}.parquet", ROWS.slice(number, 1))
    landing.good()
    landing.store.client().delete_object(Bucket=landing.store.bucket, Key=f"{landing.name}/0.parquet")
    landing.land("3.parquet", ROWS.slice(3, 1))
    landing.good()
    landing.send(_event(landing, "1.parquet"))
    assert landing.run().outcome == "NothingToDo"
    assert landing.rows() == ROWS.slice(0, 4).to_pylist()


def test_a_manifest_makes_the_table_and_a_run_comes_with_the_next_message(landing: Landing, tmp_path: Path) -> None:
    place = f"s3://{landing.store.bucket}/{landing.name}/"
    document = manifest(
        "orders",
        location=f"s3://{landing.store.bucket}/lake-{landing.name}/orders",
        recordKey=["id"],
        index={"type": "Bucket", "buckets": 2},
        storage={"endpoint": landing.store.endpoint, "region": "us-east-1"},
        ingest=[
            {
                "name": "feed",
                "source": {
                    "type": "Files",
                    "path": place,
                    "format": "parquet",
                    "notifications": {"type": "Sqs", "queue": landing.queue},
                },
            }
        ],
    )
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump(document))

    def applied() -> dict[str, Any]:
        lines: list[str] = []
        found = LocalRuntime([path], tmp_path / "state", SystemClock(), lines.append).run()[0]
        assert ACCESS["secret_access_key"] not in "".join(lines) + json.dumps(found)
        return dict(found["status"])

    landing.land("1.parquet", ROWS.slice(0, 3))
    first = applied()
    assert first["ingest"][0] == first["ingest"][0] | {"pendingFiles": 0, "consumedFiles": 1}
    assert len(applied()["runs"]) == len(first["runs"])
    landing.land("2.parquet", ROWS.slice(3))
    landing.send("hello")
    second = applied()
    assert second["runs"][0]["phase"] == "Succeeded"
    assert "set aside: 1 message" in second["runs"][0]["message"]
    assert second["ingest"][0]["inFlightMessages"] == 1
    assert second["data"]["records"] == 6


def _event(landing: Landing, name: str) -> dict[str, Any]:
    where = {"bucket": {"name": landing.store.bucket}, "object": {"key": f"{landing.name}/{name}"}}
    return {"Records": [{"eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": where}]}
