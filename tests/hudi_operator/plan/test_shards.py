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

HOUR = 3_600_000
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


def millis(ago: float) -> int:
    return int((NOW - timedelta(seconds=ago)).timestamp() * 1000)


def waiting(seconds: int, silent: int = 0) -> StreamLag:
    return StreamLag(24 * HOUR, millis(seconds), silent)


def test_a_table_is_as_late_as_the_oldest_record_that_waits() -> None:
    found = table(checkpoints={"feed": HELD})
    assert told(found, lag=StreamLag(24 * HOUR))[::2] == (("True", "UpToDate"), "0s")
    assert told(found, lag=waiting(50))[::2] == (("True", "UpToDate"), "50s")
    late = ("False", "MessagesWaiting")
    reason, message, lag = told(found, lag=waiting(70))
    assert (reason, lag) == (late, "1m10s")
    assert message == "records of feed are not in the table yet, the oldest for longer than 60s"
    assert told(found, lag=waiting(70), freshness="5m")[0][0] == "True"
    assert told(found, lag=waiting(70, silent=2))[0] == late
    assert told(None)[:2] == (("False", "NothingCommitted"), "feed has committed nothing yet")


def test_a_lag_that_nobody_knows_is_no_freshness() -> None:
    found, unknown = table(checkpoints={"feed": HELD}), ("Unknown", "SourceNotAsked")
    reason, message, lag = told(found)
    assert (reason, lag) == (unknown, "0s")
    assert "only with AWS_ACCESS_KEY_ID of storage.credentialsSecretRef" in message
    assert told(found, lag=StreamLag(24 * HOUR, silent=2))[:2] == (unknown, "2 shards of feed did not tell what waits")
    refused = Problem("AccessDenied", "the stream orders refused the credentials")
    assert told(found, lag=refused)[:2] == (unknown, f"the stream of feed did not tell what waits: {refused.message}")
    assert launches(planned(found, lag=refused)), "the job has rights of its own"


def at_risk(lag: StreamLag | Problem | None, *, seen: float | None = 60) -> tuple[str, str, str]:
    """The condition where the stream was read up to `seen` seconds ago."""
    position = ShardPosition("495", time=millis(seen) if seen is not None else -1)
    held = CommittedCheckpoint(ShardPositions("orders", "arn of now", {"shardId-000000000000": position}), COMMIT.time)
    status = status_of(planned(table(checkpoints={"feed": held}), lag=lag))
    (found,) = (each for each in status.conditions if each.type == "AtRisk")
    return found.status, found.reason, found.message


def test_a_record_that_the_stream_soon_deletes_is_at_risk() -> None:
    assert at_risk(waiting(3600))[:2] == ("False", "KeptLongEnough")
    status, reason, message = at_risk(waiting(19 * 3600), seen=19 * 3600)
    assert (status, reason) == ("True", "DeletedUnread")
    assert message == (
        "feed: records wait that are not in the table, and the oldest can be deleted in 5h; "
        "read faster, or have the source keep more: docs/runbooks/HudiTableAtRisk.md"
    )
    assert "can be deleted in 0s" in at_risk(waiting(25 * 3600), seen=None)[2]
    week = StreamLag(7 * 24 * HOUR, millis(19 * 3600))
    assert at_risk(week, seen=19 * 3600)[0] == "False"


def test_an_ingest_that_reads_a_quiet_stream_no_more_is_at_risk() -> None:
    quiet = StreamLag(24 * HOUR)
    assert at_risk(quiet, seen=7 * 3600)[0] == "False", "a quiet stream gets a commit four times in its retention"
    status, _, message = at_risk(quiet, seen=20 * 3600)
    assert status == "True"
    assert message.startswith("feed: its commits do not tell that the stream was read, and in 4h records may be lost; ")
    assert at_risk(quiet, seen=None)[0] == "False"


def test_how_long_a_record_is_kept_stands_in_the_status() -> None:
    def kept(lag: StreamLag) -> str | None:
        return status_of(planned(table(checkpoints={"feed": HELD}), lag=lag)).ingest[0].retention_remaining

    assert kept(waiting(3600)) == "23h"
    assert kept(StreamLag(24 * HOUR)) is None


def test_a_stream_that_does_not_tell_leaves_the_risk_unknown() -> None:
    assert at_risk(None)[:2] == ("Unknown", "SourceNotAsked")
    assert at_risk(Problem("AccessDenied", "refused"))[:2] == ("Unknown", "RetentionNotTold")
    assert at_risk(StreamLag(24 * HOUR, silent=2))[:2] == ("Unknown", "RetentionNotTold")
    assert at_risk(waiting(20 * 3600, silent=2))[0] == "True", "what is known to be at risk is told"
    status = status_of(planned(table()))
    assert [each.reason for each in status.conditions if each.type == "AtRisk"] == ["NothingCommitted"]
