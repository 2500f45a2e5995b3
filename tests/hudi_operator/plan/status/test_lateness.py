"""When a table is late by its own `freshness`, and when that is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hudi_operator.plan.effects import Effect, Emit
from hudi_operator.plan.observed import CommittedCheckpoint, Observed, SourceObservation
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.positions import Extent, Positions, TopicExtent, TopicPositions
from hudi_table.model.job.retention import Unread
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, FILES, NOW, desired, status_of, table

KAFKA = {"type": "Kafka", "format": "json", "kafka": {"brokers": "kafka:9092", "topics": ["orders"]}}
EXTENT = Extent("c", {"orders": TopicExtent("one", {0: 0}, {0: 10}, {})})
FILES_FOLLOWED = {"mode": "Continuous"}


def stream(waited: float | None, *others: dict[str, Any], status: dict[str, Any] | None = None) -> list[Effect]:
    """The oldest message has waited for so many seconds; None: nothing is committed yet."""
    held = Positions("c", {"orders": TopicPositions("one", {0: 4})}, "a", 0)
    found = table(checkpoints={"feed": CommittedCheckpoint(held, COMMIT.time)}) if waited is not None else table()
    unread = Unread("orders", 0, 6, int((NOW.timestamp() - (waited or 0)) * 1000), 1.0)
    source = SourceObservation("feed", extent=EXTENT, unread=(unread,), told=frozenset({("orders", 0)}))
    wanted = desired(status, ingest=[ingest(source=KAFKA), *others])
    more = [SourceObservation(each["name"], FILES) for each in others]
    return plan_table(wanted, Observed(table=found, sources=(source, *more)), NOW)


def files(seconds: float) -> list[Effect]:
    """A folder that a driver lists, whose only file has come so many seconds ago."""
    (one, *_) = FILES
    seen = SourceObservation("feed", (replace(one, modified=NOW - timedelta(seconds=seconds)),))
    return plan_table(desired(ingest=[ingest(**FILES_FOLLOWED)]), Observed(table=table(), sources=(seen,)), NOW)


def fresh(effects: list[Effect]) -> tuple[str, str, str]:
    (found,) = [(c.status, c.reason, c.message) for c in status_of(effects).conditions if c.type == "Fresh"]
    return found


def reasons(effects: list[Effect]) -> list[tuple[str, str]]:
    found = [each for each in effects if isinstance(each, Emit)]
    return [(each.type, each.reason) for each in found if each.reason not in ("Started", "Stalled")]


def condition(status: str, reason: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Fresh", "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}  # fmt: skip


def test_files_that_a_driver_lists_are_late_by_freshness() -> None:
    assert fresh(files(30))[0] == "True"
    assert fresh(files(70)) == ("False", "FilesLate", "1 file of feed not in the table yet for longer than 60s")


def test_what_is_late_is_told_before_files_that_only_wait() -> None:
    assert fresh(stream(70, ingest(name="other")))[1] == "MessagesWaiting"
    assert fresh(stream(5, ingest(name="other")))[1] == "FilesWaiting"


def test_a_stream_that_has_committed_nothing_is_not_fresh_and_not_known_to_be_late() -> None:
    assert fresh(stream(None)) == ("False", "NothingCommitted", "feed has committed nothing yet")


def test_lateness_is_reported_once_and_so_is_its_end() -> None:
    assert reasons(stream(70)) == [("Warning", "MessagesWaiting")]
    assert reasons(stream(70, status=condition("True", "UpToDate"))) == [("Warning", "MessagesWaiting")]
    assert reasons(stream(700, status=condition("False", "MessagesWaiting"))) == []
    assert reasons(stream(70, status=condition("False", "CommitsWaiting"))) == [("Warning", "MessagesWaiting")]
    assert reasons(stream(5, status=condition("False", "MessagesWaiting"))) == [("Normal", "UpToDate")]
    assert reasons(stream(5, status=condition("True", "UpToDate"))) == []
    assert reasons(files(70)) == [("Warning", "FilesLate")]


def test_files_that_wait_for_a_run_and_streams_that_begin_are_no_events() -> None:
    assert reasons(stream(None)) == []
    assert reasons(stream(5, ingest(name="other"))) == []
    assert reasons(stream(5, status=condition("False", "FilesWaiting"))) == []
