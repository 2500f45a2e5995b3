"""What is planned for ingests from Kinesis: in mode Once a run every so often, one driver in mode
Continuous, and what the status says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Effect, Launch
from hudi_operator.plan.observed import CommittedCheckpoint, Observed, Problem, SourceObservation, TableObservation
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.shards import ShardPosition, ShardPositions, StreamLag
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, NOW, desired, status_of, table

SHARDS = {"shardId-000000000000": ShardPosition("495", time=1)}
HELD = CommittedCheckpoint(ShardPositions("orders", "arn of now", SHARDS, refused=3), COMMIT.time)


def planned(found: TableObservation | None, *runs: RunStatus, **changes: Any) -> list[Effect]:
    more = {
        name: changes.pop(name) for name in ("mode", "commitInterval", "onUndecodable", "freshness") if name in changes
    }
    seen = SourceObservation("feed", lag=changes.pop("lag", None))
    source = {"type": "Kinesis", "format": "json", "kinesis": {"stream": "orders", **changes}}
    wanted = desired(ingest=[ingest(source=source, **more)])
    return plan_table(wanted, Observed(table=found, sources=(seen,), runs=runs), NOW)


def launches(effects: list[Effect]) -> list[Launch]:
    return [effect for effect in effects if isinstance(effect, Launch)]


def test_the_job_is_told_how_to_read_and_needs_no_spark() -> None:
    start = {"position": "Timestamp", "timestamp": "1970-01-01T00:00:02Z"}
    (launch,) = launches(planned(None, startFrom=start, maxBytes="1Mi", onUndecodable="Quarantine"))
    work = launch.spec.work
    assert (launch.spec.engine, work.get("mode", "Once"), work["onUndecodable"]) == ("Local", "Once", "Quarantine")
    assert work["source"]["kinesis"] == {
        "stream": "orders", "startFrom": {"position": "Timestamp", "timestampMillis": 2000}, "metadata": [],
        "maxRows": 1_000_000, "maxBytes": 1 << 20, "onDataLoss": "Stop",
    }  # fmt: skip


def test_the_stream_is_asked_every_so_often() -> None:
    found = table(checkpoints={"feed": HELD})
    (first,) = launches(planned(found, every="1m"))
    ended = replace(first.run, phase="NothingToDo", finished=rfc3339(NOW - timedelta(seconds=30)))
    assert not launches(planned(found, ended, every="1m"))
    assert launches(planned(found, ended, every="20s"))


def test_one_driver_follows_the_stream_and_has_one_successor() -> None:
    found, following = table(checkpoints={"feed": HELD}), {"mode": "Continuous", "commitInterval": "2s"}
    (first,) = launches(planned(found, **following))
    assert (first.spec.work["mode"], first.spec.work["commitIntervalSeconds"]) == ("Continuous", 2.0)
    assert not launches(planned(found, first.run, **following))
    ended = replace(first.run, phase="Succeeded", finished=rfc3339(NOW))
    (second,) = launches(planned(found, ended, **following))
    assert second.run.name != first.run.name


def test_the_status_counts_what_was_refused() -> None:
    (told,) = status_of(planned(table(checkpoints={"feed": HELD}))).ingest
    assert (told.refused_messages, told.checkpoint) == (3, HELD.checkpoint.batch)


def told(found: TableObservation | None, **changes: Any) -> tuple[tuple[str, str], str, str]:
    status = status_of(planned(found, **changes))
    (fresh,) = (each for each in status.conditions if each.type == "Fresh")
    return (fresh.status, fresh.reason), fresh.message, status.ingest[0].lag


def waiting(seconds: int, silent: int = 0) -> StreamLag:
    return StreamLag(int((NOW - timedelta(seconds=seconds)).timestamp() * 1000), silent)


def test_a_table_is_as_late_as_the_oldest_record_that_waits() -> None:
    found = table(checkpoints={"feed": HELD})
    assert told(found, lag=StreamLag())[::2] == (("True", "UpToDate"), "0s")
    assert told(found, lag=waiting(50))[::2] == (("True", "UpToDate"), "50s")
    late = ("False", "MessagesWaiting")
    reason, message, lag = told(found, lag=waiting(70))
    assert (reason, lag) == (late, "1m10s")
    assert message == "records of feed are not in the table yet, the oldest for longer than 60s"
    assert told(found, lag=waiting(70), freshness="5m")[0][0] == "True"
    assert told(found, lag=waiting(70, silent=2))[0] == late
    assert told(None)[:2] == (late, "feed has committed nothing yet")


def test_a_lag_that_nobody_knows_is_no_freshness() -> None:
    found, unknown = table(checkpoints={"feed": HELD}), ("Unknown", "SourceNotAsked")
    reason, message, lag = told(found)
    assert (reason, lag) == (unknown, "0s")
    assert "only with AWS_ACCESS_KEY_ID of storage.credentialsSecretRef" in message
    assert told(found, lag=StreamLag(None, 2))[:2] == (unknown, "2 shards of feed did not tell what waits")
    refused = Problem("AccessDenied", "the stream orders refused the credentials")
    assert told(found, lag=refused)[:2] == (unknown, f"the stream of feed did not tell what waits: {refused.message}")
    assert launches(planned(found, lag=refused)), "the job has rights of its own"
