"""When messages that wait are at risk: their time to be deleted beside the time to read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from math import inf
from typing import Any

import pytest

from hudi_operator.plan.effects import Effect, Emit
from hudi_operator.plan.observed import CommittedCheckpoint, Observed, Pace, Problem, SourceObservation, Took
from hudi_operator.plan.status import why
from hudi_operator.plan.table import plan_table
from hudi_operator.runtime.observing.paces import Step, pace_of, step_of
from hudi_table.model.job.positions import Extent, Positions, TopicExtent, TopicPositions
from hudi_table.model.job.retention import Left, Limits, Retention, Unread, bytes_of, left_of
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.services.setting_checkpoints.audit import SET_KEY
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, NOW, desired, status_of, table

MILLIS = int(NOW.timestamp() * 1000)
KAFKA = {"type": "Kafka", "format": "json", "kafka": {"brokers": "kafka:9092", "topics": ["orders"]}}
DAY = 86_400
EXTENT = Extent("c", {"orders": TopicExtent("one", {0: 0, 1: 0}, {0: 1000, 1: 1000}, {})})
POSITIONS = Positions("c", {"orders": TopicPositions("one", {0: 400, 1: 1000})}, "a", MILLIS)


def kept(age: float, *, days: float = 7, messages: int = 600) -> Retention:
    """The oldest message that waits has come `age` seconds ago."""
    waits = Unread("orders", 0, messages, MILLIS - int(age * 1000), 100.0)
    return Retention({"orders": Limits(int(days * DAY * 1000))}, (waits,))


def took(*found: tuple[float, float]) -> Pace:
    """Commits of 10 s each, as many seconds ago as is given first, and messages in a second."""
    return Pace(tuple(Took(NOW - timedelta(seconds=ago), 10.0, 10 * rate) for ago, rate in found), MILLIS, MILLIS)


def planned(retention: Retention | Problem | None, *, rate: float | None = 10.0, **more: Any) -> list[Effect]:
    pace = more.pop("pace", took((20, rate)) if rate is not None else Pace())
    found = table(checkpoints={"feed": CommittedCheckpoint(POSITIONS, COMMIT.time)}, paces={"feed": pace})
    waits = more.pop("unread", retention.unread if isinstance(retention, Retention) else ())
    wanted = desired(ingest=[ingest(source=more.pop("source", KAFKA))], **more)
    source = SourceObservation("feed", extent=more.pop("extent", EXTENT), retention=retention, unread=waits)
    return plan_table(wanted, Observed(table=found, sources=(source,)), NOW)


def risk(effects: list[Effect]) -> tuple[str, str, str]:
    (found,) = [(c.status, c.reason, c.message) for c in status_of(effects).conditions if c.type == "AtRisk"]
    return found


def test_what_is_kept_for_longer_than_reading_takes_is_not_at_risk() -> None:
    effects = planned(kept(DAY))
    assert risk(effects)[:2] == ("False", "KeptLongEnough")
    (feed,) = status_of(effects).ingest
    assert (feed.retention_remaining, feed.rate) == ("6d", 10.0)
    assert (feed.newest_event_time, feed.watermark) == ("2026-01-02T00:00:00Z",) * 2


def test_what_is_deleted_before_it_can_be_read_is_at_risk_though_days_are_left() -> None:
    slow = planned(kept(2 * DAY), rate=0.001)
    status, reason, message = risk(slow)
    assert (status, reason) == ("True", "DeletedUnread")
    assert message == (
        "feed: of topic orders, partition 0 at most 600 messages are not in the table, and the oldest can be deleted in 5d; "
        "reading all that waits takes 6d22h; read faster, or have the source keep more: docs/runbooks/HudiTableAtRisk.md"
    )
    assert risk(planned(kept(2 * DAY), rate=0.01))[0] == "False"


def test_commits_that_took_all_there_was_do_not_say_how_long_many_messages_take() -> None:
    """An idle topic gets a million messages: its commits took one message in a second until now."""
    idle = [(10.0 * number, 1.0) for number in range(19, 0, -1)]
    million = kept(5, messages=1_000_000)
    there = Extent("c", {"orders": TopicExtent("one", {0: 0, 1: 0}, {0: 1_000_400, 1: 1000}, {})})
    effects = planned(million, extent=there, pace=took(*idle))
    assert risk(effects)[:2] == ("False", "KeptLongEnough")
    assert status_of(effects).ingest[0].rate == 1.0, "that is what they took"
    reading = planned(kept(25, messages=900_000), extent=there, pace=took(*idle, (20, 5_000.0), (10, 5_000.0)))
    assert risk(reading)[0] == "False"


def test_commits_while_more_waited_say_how_long_reading_takes() -> None:
    slow = planned(kept(2 * DAY), pace=took((3 * DAY, 1000.0), (30, 0.001), (20, 0.001), (10, 0.001)))
    assert "reading all that waits takes 6d22h" in risk(slow)[2]
    silent = planned(kept(2 * DAY), rate=0.001, unread=())
    assert risk(silent)[0] == "False", "nobody knows whether anything had waited while it read"


def test_where_less_than_a_quarter_of_the_retention_is_left_it_is_at_risk_whatever_the_rate() -> None:
    assert risk(planned(kept(5 * DAY), rate=None))[0] == "False"
    late = risk(planned(kept(6 * DAY), rate=None))
    assert late[0] == "True"
    assert "can be deleted in 1d; how fast it reads is not known" in late[2]
    assert risk(planned(kept(6 * DAY), rate=1000.0))[0] == "True"
    over = risk(planned(kept(8 * DAY)))
    assert "can be deleted in 0s" in over[2]


def test_of_many_partitions_the_most_urgent_are_named_and_the_others_counted() -> None:
    waits = tuple(Unread("orders", number, 5, MILLIS - (7 * DAY - 60 * number) * 1000, 1.0) for number in range(9))
    message = risk(planned(Retention({"orders": Limits(7 * DAY * 1000)}, waits)))[2]
    assert message.index("partition 0") < message.index("partition 4")
    assert "partition 5" not in message
    assert "and 4 partitions more are so" in message


@pytest.mark.parametrize(
    ("retention", "reason"),
    [
        (Problem("AccessDenied", "the brokers refuse"), "RetentionNotTold"),
        (None, "RetentionNotTold"),
        (replace(kept(DAY), silent=3), "RetentionNotTold"),
    ],
)
def test_brokers_that_do_not_tell_leave_it_unknown(retention: Any, reason: str) -> None:
    assert risk(planned(retention))[:2] == ("Unknown", reason)


def test_what_is_known_to_be_at_risk_is_told_though_others_are_silent() -> None:
    assert risk(planned(replace(kept(6.5 * DAY), silent=3)))[0] == "True"


def test_sources_that_delete_nothing_are_at_no_risk_and_those_not_seen_are_not_known_to_be() -> None:
    files = desired()
    effects = plan_table(files, Observed(table=table(), sources=(SourceObservation("feed"),)), NOW)
    assert "AtRisk" not in {c.type for c in status_of(effects).conditions}
    away = Observed(table=table(), sources=(SourceObservation("feed", problem=Problem("Unavailable", "no brokers")),))
    assert risk(plan_table(desired(ingest=[ingest(source=KAFKA)]), away, NOW))[:2] == ("Unknown", "SourceNotSeen")


def test_it_is_reported_once_when_it_turns_true() -> None:
    def events(effects: list[Effect]) -> list[str]:
        return [each.reason for each in effects if isinstance(each, Emit) and each.reason == "DeletedUnread"]

    first = planned(kept(6.5 * DAY))
    assert events(first) == ["DeletedUnread"]
    (now,) = [c for c in status_of(first).conditions if c.type == "AtRisk"]
    before = {"conditions": [{"type": "AtRisk", "status": "True", "reason": now.reason, "message": now.message, "lastTransitionTime": now.last_transition_time}]}  # fmt: skip
    assert not events(planned(kept(6.6 * DAY), status=before))
    unseen = plan_table(
        desired(before, ingest=[ingest(source=KAFKA)]), Observed(problem=Problem("Unavailable", "no store", True)), NOW
    )
    assert risk(unseen)[0] == "True", "what was known stays while the table is not seen"


def test_the_bytes_that_wait_are_an_estimate_by_the_partitions_that_told() -> None:
    (feed,) = status_of(planned(kept(DAY), unread=kept(DAY).unread)).ingest
    assert (feed.pending_messages, feed.pending_bytes) == (600, 60_000)
    (unknown,) = status_of(planned(kept(DAY), unread=())).ingest
    assert (unknown.pending_messages, unknown.pending_bytes) == (600, None), "no partition told"
    two = (Unread("t", 0, 10, 0, 100.0), Unread("t", 1, 30, 0, 20.0))
    assert bytes_of(two, 40) == 1600
    assert bytes_of(two, 80) == 3200, "those that did not tell are as those that did"
    assert bytes_of((), 0) == 0


def test_event_times_stay_with_the_table_and_begin_anew_with_another() -> None:
    known = {"ingest": [{"name": "feed", "newestEventTime": "2026-01-03T00:00:00Z", "watermark": "2026-01-03T00:00:00Z"}]}  # fmt: skip
    (feed,) = status_of(planned(kept(DAY), status=known)).ingest
    assert (feed.newest_event_time, feed.watermark) == ("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")
    gone = Observed(sources=(SourceObservation("feed", extent=EXTENT),))
    (feed,) = status_of(plan_table(desired(known, ingest=[ingest(source=KAFKA)]), gone, NOW)).ingest
    assert (feed.newest_event_time, feed.watermark) == (None, None)


def test_why_tells_of_it() -> None:
    condition = {"type": "AtRisk", "status": "True", "message": "soon", "lastTransitionTime": "2026-01-02T00:00:00Z"}
    document = {"kind": "HudiTable", "metadata": {"name": "a", "namespace": "n"}, "spec": {}, "status": {"conditions": [condition]}}  # fmt: skip
    found = [each for each in why.causes(document, why.Facts(holder="x"), NOW) if each.why == "soon"]
    assert [(each.what, each.next) for each in found] == [
        ("messages will be deleted unread", "kubectl hudi logs a -n n")
    ]


def test_the_first_limit_that_deletes_counts() -> None:
    waits = Unread("orders", 0, 50, MILLIS - 100_000, 1000.0)
    assert left_of(waits, Limits(), MILLIS) is None
    assert left_of(waits, Limits(millis=400_000), MILLIS) == Left(300.0, 0.75)
    assert left_of(waits, Limits(bytes=100_000), MILLIS) == Left(100.0, 0.5), "50 kB came in 100 s, as much fits"
    assert left_of(waits, Limits(400_000, 100_000), MILLIS) == Left(100.0, 0.5)
    assert left_of(waits, Limits(bytes=40_000), MILLIS) == Left(0.0, 0.0)
    ahead = replace(waits, oldest=MILLIS + 10**12)
    assert left_of(ahead, Limits(bytes=100_000), MILLIS) == Left(inf, 0.5), "nobody knows how fast they come"


def positions(offset: int, partitions: int = 1) -> str:
    return Positions("c", {"t": TopicPositions("i", dict.fromkeys(range(partitions), offset))}, "a").to_text()


def steps(*found: tuple[int, Step]) -> list[tuple[datetime, Step]]:
    return [(NOW - timedelta(seconds=ago), step) for ago, step in found]


def test_the_rate_is_what_commits_took_between_the_first_and_the_last() -> None:
    commit = CommitMetadata("UPSERT", (WriteStat("f", "p", "", num_inserts=2, num_update_writes=3, num_deletes=1),))
    of = [step_of("feed", positions(offset), commit) for offset in (0, 100, 300)]
    assert pace_of(steps((30, of[0]), (20, of[1]), (10, of[2])), NOW).rate == 15.0
    assert pace_of(steps((10, of[0])), NOW).rate is None
    assert pace_of(steps((7200, of[0]), (7100, of[1])), NOW).rate is None, "of the last hour"
    rows = step_of("feed", '{"source": "Jdbc", "attempt": "a"}', commit)
    assert pace_of(steps((20, rows), (10, rows)), NOW).rate == 0.6


def test_a_checkpoint_that_was_set_and_partitions_that_came_are_no_reading() -> None:
    plain, by_hand = CommitMetadata("UPSERT"), CommitMetadata("UPSERT", extra_metadata={SET_KEY: "{}"})
    read = [step_of("feed", positions(offset), plain) for offset in (0, 100)]
    jumped, wider = step_of("feed", positions(9000), by_hand), step_of("feed", positions(9000, 2), plain)
    assert pace_of(steps((30, read[0]), (20, read[1]), (10, jumped), (5, wider)), NOW).rate == 10.0
    back = step_of("feed", positions(50), plain)
    assert pace_of(steps((20, read[1]), (10, back)), NOW).rate is None


@pytest.mark.parametrize("text", ["{", "[]", '{"source": "Kafka"}', '{"attempt": "a", "source": "Kafka", "topics": 7}'])
def test_a_damaged_checkpoint_has_no_pace(text: str) -> None:
    assert step_of("feed", text, CommitMetadata("UPSERT")) == Step("feed")
