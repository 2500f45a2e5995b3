"""What is planned for ingests from another table: a run whenever commits wait there, what its loss
does, and what the status says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Effect, Launch, RequeueAfter
from hudi_operator.plan.observed import CommittedCheckpoint, Observed, SourceObservation, TableObservation
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.upstream import Upstream, UpstreamExtent
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, NOW, desired, status_of, table

LOCATION = "s3://lake/orders"
HELD = CommittedCheckpoint(Upstream("b1", "a", "orders", "20260101000000000", "20260101000000000"), COMMIT.time)
WAITS = UpstreamExtent("20260101120000000", 3, 5 << 20, NOW - timedelta(seconds=30))
REST = UpstreamExtent("20260101000000000")


def planned(
    found: TableObservation | None, extent: UpstreamExtent | None, *runs: RunStatus, **changes: Any
) -> list[Effect]:
    more = {
        name: changes.pop(name)
        for name in ("freshness", "operation", "mode", "commitInterval", "transform")
        if name in changes
    }
    source = {"type": "Hudi", "hudi": {"location": LOCATION, **changes}}
    wanted = desired(ingest=[ingest(source=source, **more)])
    sources = (SourceObservation("feed", upstream=extent),)
    return plan_table(wanted, Observed(table=found, sources=sources, runs=runs), NOW)


def launches(effects: list[Effect]) -> list[Launch]:
    return [effect for effect in effects if isinstance(effect, Launch)]


def conditions(effects: list[Effect]) -> dict[str, tuple[str, str, str]]:
    return {c.type: (c.status, c.reason, c.message) for c in status_of(effects).conditions}


def test_commits_that_wait_are_taken_in_and_the_job_is_told_how() -> None:
    effects = planned(table(checkpoints={"feed": HELD}), WAITS, deletes="Delete")
    (launch,) = launches(effects)
    assert launch.spec.engine == "Local"
    assert launch.spec.work["source"]["hudi"] == {
        "location": LOCATION, "startFrom": "Earliest", "deletes": "Delete", "onDataLoss": "Stop"
    }  # fmt: skip
    assert "takes 3 commits of s3://lake/orders, 5.0 MiB" in conditions(effects)["Reconciling"][2]


def test_many_bytes_are_taken_in_by_spark() -> None:
    (launch,) = launches(planned(None, replace(WAITS, size=1 << 30)))
    assert launch.spec.engine == "Spark"


def test_one_driver_follows_whatever_waits_and_is_replaced_by_one_successor() -> None:
    found, following = table(checkpoints={"feed": HELD}), {"mode": "Continuous", "commitInterval": "2s"}
    (first,) = launches(planned(found, REST, **following))
    asked = (first.spec.engine, first.spec.work["mode"], first.spec.work["commitIntervalSeconds"])
    assert asked == ("Local", "Continuous", 2.0)
    assert not launches(planned(found, replace(WAITS, size=1 << 30), first.run, **following))
    killed = replace(first.run, phase="Failed", reason="JobVanished", finished=rfc3339(NOW))
    again = [each for each in planned(found, WAITS, killed, **following) if isinstance(each, Launch | RequeueAfter)]
    assert again, "it is started again, if need be a little later"
    ended = replace(first.run, phase="Succeeded", finished=rfc3339(NOW))
    (second,) = launches(planned(found, WAITS, ended, **following))
    assert second.run.name != first.run.name
    assert not launches(planned(found, WAITS, second.run, ended, **following))


def test_no_driver_is_started_before_the_other_table_is_there_or_after_what_it_lacks_is_lost() -> None:
    found = table(checkpoints={"feed": HELD})
    assert not launches(planned(found, None, mode="Continuous"))
    effects = planned(found, replace(REST, lost="the table can no longer tell"), mode="Continuous")
    assert not launches(effects)
    assert conditions(effects)["Stalled"][1] == "DataLoss"


def test_a_transform_that_only_spark_does_does_not_go_with_a_driver() -> None:
    steps = [{"sql": "SELECT soundex(id) AS id FROM source"}]
    assert launches(planned(table(checkpoints={"feed": HELD}), WAITS, transform=steps))
    effects = planned(table(checkpoints={"feed": HELD}), WAITS, transform=steps, mode="Continuous")
    assert conditions(effects)["Stalled"][1] == "InvalidSpec"
    assert "spec.ingest[0].transform" in conditions(effects)["Stalled"][2]


@pytest.mark.parametrize(
    ("sql", "words"),
    [("SELECT id, max(n) AS n FROM source GROUP BY id", "groups"), ("SELECT soundex(id) AS id FROM source", "SOUNDEX")],
)
def test_a_transform_of_which_no_row_can_be_told_keeps_none_apart(sql: str, words: str) -> None:
    found = table(checkpoints={"feed": HELD})
    assert launches(planned(found, WAITS, transform=[{"sql": sql}]))
    effects = planned(found, WAITS, transform=[{"sql": sql, "onFail": "Quarantine"}])
    _, reason, message = conditions(effects)["Stalled"][:3]
    assert (reason, "spec.ingest[0].transform" in message, words in message) == ("InvalidSpec", True, True), message


def test_nothing_runs_while_nothing_waits() -> None:
    effects = planned(table(checkpoints={"feed": HELD}), REST)
    assert not launches(effects)
    assert conditions(effects)["Fresh"][:2] == ("True", "UpToDate")


def test_what_a_run_found_nothing_in_is_not_looked_at_again() -> None:
    found = table(checkpoints={"feed": HELD})
    (launch,) = launches(planned(found, WAITS))
    nothing = replace(launch.run, phase="NothingToDo", finished=rfc3339(NOW))
    assert not launches(planned(found, WAITS, nothing))
    assert launches(planned(found, replace(WAITS, newest="20260101130000000"), nothing))


def test_changes_that_can_no_longer_be_told_stop_the_ingest_unless_all_rows_are_to_come_again() -> None:
    found, lost = table(checkpoints={"feed": HELD}), replace(WAITS, lost="the table can no longer tell")
    effects = planned(found, lost)
    assert not launches(effects)
    assert conditions(effects)["Stalled"][1] == "DataLoss"
    assert "hudi.onDataLoss: Continue" in conditions(effects)["Stalled"][2]
    assert launches(planned(found, lost, onDataLoss="Continue"))


def test_a_table_that_is_not_there_yet_is_waited_for() -> None:
    effects = planned(None, None)
    assert not launches(effects)
    assert conditions(effects)["Fresh"] == (
        "Unknown", "NoUpstream", "no table at s3://lake/orders yet: once there is one it is taken in",
    )  # fmt: skip


def test_the_status_says_how_far_it_is_and_how_late() -> None:
    found = table(checkpoints={"feed": HELD})
    (feed,) = status_of(planned(found, WAITS)).ingest
    assert (feed.pending_commits, feed.pending_bytes, feed.lag) == (3, 5 << 20, "30s")
    assert (feed.checkpoint, feed.last_commit) == ("b1", COMMIT.time)
    assert conditions(planned(found, WAITS))["Fresh"][:2] == ("True", "UpToDate"), "30 seconds are not late"
    late = conditions(planned(found, WAITS, freshness="10s"))["Fresh"]
    assert late == (
        "False", "CommitsWaiting", "3 commits of feed not in the table yet, the oldest for longer than 10s"
    )  # fmt: skip


def held_until(extent: UpstreamExtent | None, *, holding: bool = True, **hudi: str) -> str | None:
    source = {"type": "Hudi", "hudi": {"location": LOCATION, **hudi}}
    seen = Observed(
        table=table(checkpoints={"feed": HELD}),
        sources=(SourceObservation("feed", upstream=extent),),
        holding=frozenset({"feed"} if holding else ()),
    )
    (told,) = status_of(plan_table(desired(ingest=[ingest(source=source)]), seen, NOW)).ingest
    return told.held_until


def test_the_status_tells_until_when_the_other_table_keeps_what_waits() -> None:
    waits = replace(WAITS, since=NOW - timedelta(hours=2))
    assert held_until(waits) == "2026-01-02T22:00:00Z", "24 h from the first commit that was not taken"
    assert held_until(waits, maxHold="3h") == "2026-01-02T01:00:00Z"
    assert held_until(waits, maxHold="1h") is None, "it has held for as long as it may"
    assert held_until(waits, holding=False) is None, "nobody knows of it there"
    assert held_until(REST) is None
    assert held_until(None) is None
