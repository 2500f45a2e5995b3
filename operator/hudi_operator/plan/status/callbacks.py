"""What a HudiTable says of its callbacks: how far each is, and whether its receiver takes what it
is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.status import CallbackStatus, Condition
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.api.words import one_line
from hudi_operator.plan.effects import Emit, EventType
from hudi_operator.plan.observed import CallbackObservation, Observed
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.plan.status.conditions import CALLBACKS_DELIVERED, Finding
from hudi_operator.plan.status.report import human_duration
from hudi_table.model.counts import counted

ERROR_LENGTH_MAX = 1024
HOST_NOT_ALLOWED, RECEIVER_FAILS, NO_KEY, NOT_READ = (
    "HostNotAllowed",
    "ReceiverFails",
    "SigningKeyMissing",
    "TimelineNotRead",
)


def findings(spec: HudiTableSpec | None, observed: Observed) -> tuple[Finding, ...]:
    """Nothing of a table without callbacks."""
    if spec is None or not spec.callbacks:
        return ()
    if observed.callbacks is None:
        return (
            Finding(
                CALLBACKS_DELIVERED,
                "Unknown",
                "NoCouriers",
                "the operator of a cluster delivers callbacks; here nobody does",
            ),
        )
    bad = [each for each in observed.callbacks if each.problem is not None]
    if bad:
        return (_failure(bad),)
    behind = [each.name for each in observed.callbacks if each.oldest is not None]
    if behind:
        return (Finding(CALLBACKS_DELIVERED, "True", "Delivering", f"{', '.join(behind)}: commits are on their way"),)
    return (
        Finding(
            CALLBACKS_DELIVERED,
            "True",
            "Delivered",
            f"every commit is delivered to {counted(len(spec.callbacks), 'receiver')}",
        ),
    )


def _failure(bad: Sequence[CallbackObservation]) -> Finding:
    said = "; ".join(f"{each.name}: {each.problem.message}" for each in bad if each.problem is not None)
    reason = bad[0].problem.reason if bad[0].problem is not None else RECEIVER_FAILS
    if reason == HOST_NOT_ALLOWED:
        return Finding(CALLBACKS_DELIVERED, "False", "HostNotAllowed", said)
    if reason == NO_KEY:
        return Finding(CALLBACKS_DELIVERED, "False", "SigningKeyMissing", said)
    if reason == NOT_READ:
        return Finding(CALLBACKS_DELIVERED, "False", "TimelineNotRead", said)
    return Finding(CALLBACKS_DELIVERED, "False", "ReceiverFails", said)


def statuses(desired: DesiredTable, observed: Observed, now: datetime) -> tuple[CallbackStatus, ...]:
    """How far each callback of the manifest is. What its courier does not know yet stays as it was,
    and all of it where the manifest is wrong: a position is never lost."""
    known = {each.name: each for each in desired.status.callbacks}
    seen = {each.name: each for each in observed.callbacks or ()}
    wrong = desired.spec is None or desired.errors
    names = known if wrong else [each.name for each in desired.spec.callbacks] if desired.spec is not None else []
    return tuple(
        _status(seen[name], known.get(name) or CallbackStatus(name), now) if name in seen else known[name]
        for name in names
        if name in seen or name in known
    )


def _status(seen: CallbackObservation, before: CallbackStatus, now: datetime) -> CallbackStatus:
    return CallbackStatus(
        name=seen.name,
        position=seen.position or before.position,
        last_delivered=seen.last_delivered or before.last_delivered,
        last_time=rfc3339(seen.last_time) if seen.last_time is not None else before.last_time,
        lag=human_duration(now - seen.oldest if seen.oldest is not None else timedelta(0)),
        last_error=one_line(seen.problem.message, ERROR_LENGTH_MAX) if seen.problem is not None else None,
    )


def news(before: Iterable[Condition], after: Iterable[Condition]) -> list[Emit]:
    """An event when a receiver begins to fail or fails for a new reason, and when all receive
    commits again."""
    old = next((each for each in before if each.type == CALLBACKS_DELIVERED), None)
    new = next((each for each in after if each.type == CALLBACKS_DELIVERED), None)
    if new is None:
        return []
    if new.status == "False" and (old is None or (old.status, old.reason) != (new.status, new.reason)):
        return [Emit(EventType.WARNING, new.reason, new.message)]
    if new.status == "True" and old is not None and old.status == "False":
        return [Emit(EventType.NORMAL, "CallbacksResumed", new.message)]
    return []
