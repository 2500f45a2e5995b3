"""What is planned for ingests from Kafka: attempts and drivers, one successor after each end,
losses that stop, and lag."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Effect, Launch, Stop
from hudi_operator.plan.observed import CommittedCheckpoint, Observed, SourceObservation, TableObservation
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.positions import Extent, Positions, TopicExtent, TopicPositions
from hudi_table.model.job.retention import Unread
from hudi_table.model.table.config import TableType
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, CONFIG, NOW, desired, status_of, table

KAFKA = {"type": "Kafka", "format": "json", "kafka": {"brokers": "kafka:9092", "topics": ["orders"]}}
MILLIS = int(NOW.timestamp() * 1000)


def extent(end: int = 10, begin: int = 0, number: str = "one") -> Extent:
    return Extent("c", {"orders": TopicExtent(number, {0: begin}, {0: end}, {0: end})})


def fed(offset: int, *, seconds_ago: int = 5) -> TableObservation:
    """A table whose newest commit has read so far."""
    positions = Positions("c", {"orders": TopicPositions("one", {0: offset})}, "a", MILLIS - 1000 * seconds_ago)
    return table(checkpoints={"feed": CommittedCheckpoint(positions, COMMIT.time)})


def planned(
    found: TableObservation | None, there: Extent, *runs: RunStatus, of: dict[str, Any] | None = None, **changes: Any
) -> list[Effect]:
    source, unread = changes.pop("source", KAFKA), changes.pop("unread", ())
    told = frozenset((each.topic, each.partition) for each in unread)
    wanted = desired(ingest=[ingest(source=source, **changes)], **(of or {}))
    seen = SourceObservation("feed", extent=there, unread=unread, told=told)
    return plan_table(wanted, Observed(table=found, sources=(seen,), runs=runs), NOW)


def launches(effects: list[Effect]) -> list[Launch]:
    return [effect for effect in effects if isinstance(effect, Launch)]


def run_of(effects: list[Effect], phase: str = "Running", **changes: Any) -> RunStatus:
    (launch,) = launches(effects)
    return replace(launch.run, phase=phase, **changes)


def conditions(effects: list[Effect]) -> dict[str, tuple[str, str, str]]:
    return {c.type: (c.status, c.reason, c.message) for c in status_of(effects).conditions}


def test_once_is_started_while_messages_wait_and_rests_when_none_do() -> None:
    effects = planned(fed(4), extent(10))
    (launch,) = launches(effects)
    assert (launch.spec.engine, launch.spec.work["mode"]) == ("Local", "Once")
    assert launch.spec.work["source"]["kafka"]["maxBytes"] == 64 << 20
    assert "takes at most 6 messages" in conditions(effects)["Reconciling"][2]
    assert not launches(planned(fed(10), extent(10)))


def test_an_attempt_that_found_nothing_is_not_repeated_until_something_comes() -> None:
    first = planned(None, extent(10))
    nothing = run_of(first, "NothingToDo")
    again = planned(None, extent(10), nothing)
    assert not launches(again)
    assert "Stalled" not in conditions(again)
    assert launches(planned(None, extent(11), nothing))


def test_what_is_lost_stops_an_ingest_before_a_job_is_started() -> None:
    for mode in ("Once", "Continuous"):
        effects = planned(fed(10), extent(40, begin=25), mode=mode)
        assert not launches(effects)
        assert conditions(effects)["Stalled"][1] == "DataLoss"
        assert "at most 15 messages are lost" in conditions(effects)["Stalled"][2]
    assert conditions(planned(fed(10), extent(40, number="two")))["Stalled"][1] == "DataLoss"
    going_on = {**KAFKA, "kafka": {**KAFKA["kafka"], "onDataLoss": "Continue"}}  # type: ignore[dict-item]
    assert launches(planned(fed(10), extent(40, begin=25), source=going_on))


def test_a_continuous_driver_is_started_once_whatever_waits() -> None:
    effects = planned(fed(10), extent(10), mode="Continuous", commitInterval="2s")
    (launch,) = launches(effects)
    assert launch.spec.work["commitIntervalSeconds"] == 2
    running = planned(fed(10), extent(30), run_of(effects), mode="Continuous")
    assert not launches(running)
    assert "Reconciling" not in conditions(running), "a driver at work is no change on its way"
    assert conditions(running)["Ready"][0] == "True"


def test_one_successor_follows_each_end_of_a_driver() -> None:
    first = planned(fed(10), extent(10), mode="Continuous")
    ended = run_of(first, "Succeeded")
    second = planned(fed(10), extent(10), ended, mode="Continuous")
    assert launches(second)[0].run.name != ended.name
    assert not launches(planned(fed(10), extent(10), run_of(second), ended, mode="Continuous"))


def test_a_driver_whose_brokers_are_away_is_never_given_up() -> None:
    runs: list[RunStatus] = []
    now = NOW
    for _ in range(12):
        wanted = desired(ingest=[ingest(source=KAFKA, mode="Continuous")])
        seen = Observed(table=fed(10), sources=(SourceObservation("feed", extent=extent()),), runs=tuple(runs[::-1]))
        effects = plan_table(wanted, seen, now)
        assert "Stalled" not in conditions(effects)
        failed = run_of(effects, "Failed", reason="Unavailable", message="no brokers")
        runs.append(replace(failed, finished=now.strftime("%Y-%m-%dT%H:%M:%SZ")))
        now += timedelta(seconds=301)


def test_a_driver_ends_when_the_manifest_changes_or_rests() -> None:
    running = run_of(planned(fed(10), extent(10), mode="Continuous"))

    def stops(effects: list[Effect]) -> list[str]:
        return [effect.name for effect in effects if isinstance(effect, Stop)]

    def judged(generation: int = 1, **changes: Any) -> list[Effect]:
        wanted = desired(generation=generation, **changes)
        sources = (SourceObservation("feed", extent=extent()),)
        return plan_table(wanted, Observed(table=fed(10), sources=sources, runs=(running,)), NOW)

    same = [ingest(source=KAFKA, mode="Continuous")]
    assert not stops(judged(ingest=same))
    changed = judged(2, ingest=same)
    assert stops(changed) == [running.name]
    assert launches(changed), "its successor goes on from the newest checkpoint"
    for effects in (judged(ingest=same, suspend=True), judged(ingest=[ingest(source=KAFKA)])):
        assert stops(effects) == [running.name]
    assert not launches(judged(ingest=same, suspend=True))
    wrong = judged(2, ingest=same, recordKey=[])
    assert not stops(wrong), "a manifest that is wrong takes nothing away"
    assert conditions(wrong)["Stalled"][1] == "InvalidSpec"


def test_services_run_beside_a_driver() -> None:
    of = {"type": "MergeOnRead", "maintenance": {"cleaning": {"mode": "Auto"}}}
    commits = tuple(replace(COMMIT, time=f"202601010000{i:02}000") for i in range(20))
    found = replace(fed(10), config=replace(CONFIG, type=TableType.MERGE_ON_READ), commits=commits)
    running = run_of(planned(fed(10), extent(10), mode="Continuous"))
    (service,) = launches(planned(found, extent(10), running, of=of, mode="Continuous"))
    assert service.run.work == "Cleaning"


def test_a_driver_that_has_ended_is_followed_beside_a_service_at_work() -> None:
    driver = run_of(planned(fed(10), extent(10), mode="Continuous"))
    service = replace(driver, name="cleaning", work="Cleaning", batch="b")
    ended = replace(driver, phase="Succeeded")
    (successor,) = launches(planned(fed(10), extent(10), service, ended, mode="Continuous"))
    assert successor.run.work == "Ingest/feed", "a stream does not wait for as long as a compaction takes"
    assert not launches(planned(fed(10), extent(30), service, mode="Once"))


def told(found: TableObservation | None, there: Extent, **changes: Any) -> tuple[tuple[str, str, str], Any]:
    effects = planned(found, there, mode="Continuous", **changes)
    return conditions(effects)["Fresh"], status_of(effects).ingest[0]


def oldest(seconds_ago: float, partition: int = 0) -> Unread:
    return Unread("orders", partition, 20, MILLIS - int(1000 * seconds_ago), 100.0)


def test_lag_is_the_age_of_the_oldest_message_that_waits() -> None:
    fresh, feed = told(fed(10, seconds_ago=500), extent(10))
    assert (fresh[1], feed.pending_messages, feed.lag) == ("UpToDate", 0, "0s")
    fresh, feed = told(fed(10, seconds_ago=36_000), extent(30), unread=(oldest(1),))
    assert (fresh[1], feed.pending_messages, feed.lag) == ("UpToDate", 20, "1s"), "the topic was idle for hours"
    fresh, feed = told(fed(10, seconds_ago=5), extent(30), unread=(oldest(70),))
    assert (feed.lag, fresh) == ("1m10s", (
        "False", "MessagesWaiting", "at most 20 messages of feed not in the table yet, the oldest for longer than 60s",
    ))  # fmt: skip
    assert told(fed(10), extent(30), unread=(oldest(70),), freshness="5m")[0][0] == "True"
    assert told(None, extent(30))[0][2] == "feed has committed nothing yet"
    assert told(None, extent(30))[1].pending_messages is None


def test_of_several_partitions_the_one_that_is_furthest_behind_counts() -> None:
    there = Extent("c", {"orders": TopicExtent("one", {0: 0, 1: 0}, {0: 30, 1: 30}, {})})
    held = Positions("c", {"orders": TopicPositions("one", {0: 10, 1: 10})}, "a", MILLIS)
    found = table(checkpoints={"feed": CommittedCheckpoint(held, COMMIT.time)})
    fresh, feed = told(found, there, unread=(oldest(2), oldest(2 * 86_400, partition=1)))
    assert (fresh[0], feed.lag) == ("False", "2d")


def test_of_partitions_that_did_not_tell_the_newest_message_in_the_table_counts() -> None:
    fresh, feed = told(fed(10, seconds_ago=50), extent(30))
    assert (fresh[1], feed.lag) == ("UpToDate", "50s")
    fresh, feed = told(fed(10, seconds_ago=70), extent(30))
    assert (fresh[0], feed.lag) == ("False", "1m10s")


def test_a_timestamp_of_the_future_makes_nothing_fresh() -> None:
    century = -75 * 365 * 86_400
    fresh, feed = told(fed(10, seconds_ago=century), extent(30))
    assert fresh[2] == "at most 20 messages of feed not in the table yet, and it is not known since when"
    fresh, feed = told(fed(10, seconds_ago=70), extent(30), unread=(oldest(century),))
    assert (fresh[0], feed.lag) == ("False", "1m10s"), "it tells as little as a partition that is silent"
    fresh, feed = told(fed(10, seconds_ago=36_000), extent(30), unread=(oldest(-5),))
    assert (fresh[1], feed.lag) == ("UpToDate", "0s"), "clocks differ by seconds"
    endless = fed(10, seconds_ago=-(1 << 62) // 1000)
    assert told(endless, extent(30), unread=(oldest(-(1 << 62) // 1000),))[0][0] == "False"
