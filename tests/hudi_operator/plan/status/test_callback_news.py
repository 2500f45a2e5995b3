"""Which events tell of the receivers of a table's commits: each change once."""

from __future__ import annotations

from hudi_operator.api.status import Condition
from hudi_operator.plan.status.callbacks import news
from hudi_operator.plan.status.conditions import CALLBACKS_DELIVERED


def told(before: Condition | None, after: Condition | None) -> list[tuple[str, str]]:
    """Reason and message of each event."""
    found = news([before] if before else [], [after] if after else [])
    return [(each.reason, each.message) for each in found]


def of(status: str, reason: str, message: str = "") -> Condition:
    return Condition(CALLBACKS_DELIVERED, status, reason, message, "2026-11-21T10:00:00Z")


GOOD, REFUSED, SILENT = (
    of("True", "Delivered", "all have all"),
    of("False", "Refused", "hook refuses"),
    of("False", "Silent", "hook is silent"),
)


def test_a_receiver_that_begins_to_fail_is_told_once_and_again_for_a_new_reason() -> None:
    for before in (None, GOOD, of("Unknown", "NotRead"), SILENT):
        assert told(before, REFUSED) == [("Refused", "hook refuses")]
    assert told(REFUSED, of("False", "Refused", "hook refuses again")) == []


def test_that_all_receive_commits_again_is_told_where_it_was_told_that_one_fails() -> None:
    assert told(REFUSED, GOOD) == [("CallbacksResumed", "all have all")]
    for before in (None, GOOD, of("Unknown", "NotRead")):
        assert told(before, GOOD) == []


def test_what_is_not_known_is_no_news() -> None:
    for before in (None, GOOD, REFUSED):
        assert told(before, of("Unknown", "NotRead")) == []
        assert told(before, None) == []
