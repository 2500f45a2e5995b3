"""What a HudiTableSet says of itself: counts, the first of what fails, conditions and events.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from hudi_operator.api.documents import condition_of, is_seen, is_true
from hudi_operator.api.resources import DesiredSet
from hudi_operator.api.table_set import (
    FAILING_MAX,
    SAID_LENGTH_MAX,
    VANISHED_MAX,
    FailingTable,
    HudiTableSetStatus,
    VanishedTopic,
)
from hudi_operator.api.words import one_line
from hudi_operator.plan.effects import Emit, EventType
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.status import events
from hudi_operator.plan.status.conditions import Finding, conditions_of
from hudi_operator.plan.table_sets.wanted import COLLISION, UNREAD, Wanted, unused_overrides
from hudi_table.errors import AccessDeniedError
from hudi_table.model.counts import counted

NAMED_MAX = 5
"""So many names stand in a message."""
_TOLD = ("NameCollision", "TooManyTopics", "TopicsVanished")
_OF_TABLES = frozenset({"NotReady"})


@dataclass(frozen=True, slots=True)
class Seen:
    """What the judgement has come to. `topics`: those selected, None where they could not be
    listed; `beyond`: those past `maxTables`; `writes`: how many HudiTables are being written, or
    will be once their keys are read."""

    invalid: Problem | None
    problem: Problem | None
    listed: tuple[str, ...] | None
    topics: tuple[str, ...] | None
    members: Sequence[Mapping[str, Any]]
    wanted: Sequence[Wanted]
    beyond: Sequence[str]
    vanished: tuple[VanishedTopic, ...]
    refused: Mapping[str, Problem] = field(default_factory=dict)
    writes: int = 0


def status_of(desired: DesiredSet, seen: Seen, now: datetime) -> HudiTableSetStatus:
    """The status, with at most so many names in it."""
    identity, before = desired.identity, desired.status
    failing = _failing(seen)
    found = [*_ready(desired, seen, failing), _listed(desired, seen), *_told(desired, seen)]
    return HudiTableSetStatus(
        observed_generation=identity.generation,
        conditions=conditions_of(found, before.conditions, identity.generation, now),
        topics=len(seen.topics) if seen.topics is not None else before.topics,
        tables=len(seen.members),
        ready_tables=sum(_fare(each) is _Fare.READY for each in seen.members),
        failing_tables=len(failing),
        vanished_topics=len(seen.vanished),
        failing=tuple(failing[:FAILING_MAX]),
        vanished=seen.vanished[:VANISHED_MAX],
    )


def news(before: HudiTableSetStatus, after: HudiTableSetStatus) -> list[Emit]:
    """Events: what fails newly by the set's own doing, and what there newly is to say."""
    known = {(each.topic, each.reason) for each in before.failing}
    found = [
        Emit(EventType.WARNING, each.reason, f"{each.topic}: {each.message}")
        for each in after.failing
        if (each.topic, each.reason) not in known and each.reason not in _OF_TABLES
    ]
    old = {each.type: each.message for each in before.conditions}
    found += [
        Emit(EventType.WARNING, each.reason, each.message)
        for each in after.conditions
        if each.type in _TOLD and each.type != COLLISION and old.get(each.type) != each.message
    ]
    return [*found, *events.changes({}, (), before.conditions, after.conditions)]


class _Fare(Enum):
    """How a HudiTable fares. One that waits for its first rows is as its topic is."""

    READY = "ready"
    BEGINS = "begins"
    FAILS = "fails"


def _fare(member: Mapping[str, Any]) -> _Fare:
    ready = condition_of(member, "Ready")
    if not ready or not is_seen(member):
        return _Fare.BEGINS
    if ready.get("status") == "True" or ready.get("reason") == "NoTable":
        return _Fare.READY
    at_work = is_true(member, "Reconciling") and not is_true(member, "Stalled")
    return _Fare.BEGINS if ready.get("status") == "False" and at_work else _Fare.FAILS


def _failing(seen: Seen) -> list[FailingTable]:
    """Topics without a table first, for they are the set's own affair."""
    found, tables = [], []
    for each in seen.wanted:
        problem = each.problem or seen.refused.get(each.topic)
        if problem is UNREAD:
            continue
        if problem is not None:
            said = one_line(problem.message, SAID_LENGTH_MAX)
            found.append(FailingTable(each.topic, each.name, problem.reason, said))
        elif each.stored is not None and _fare(each.stored) is _Fare.FAILS:
            ready = condition_of(each.stored, "Ready")
            said = one_line(f"{ready.get('reason')}: {ready.get('message')}", SAID_LENGTH_MAX)
            tables.append(FailingTable(each.topic, each.name, "NotReady", said))
    names = {each.topic: each.table for each in seen.vanished}
    for topic in seen.refused.keys() & names.keys():
        problem = seen.refused[topic]
        found.append(FailingTable(topic, names[topic], problem.reason, one_line(problem.message, SAID_LENGTH_MAX)))
    return [*found, *tables]


def _ready(desired: DesiredSet, seen: Seen, failing: Sequence[FailingTable]) -> list[Finding]:
    if seen.invalid is not None:
        return _stalled(seen.invalid)
    if desired.spec is not None and desired.spec.suspend:
        return [Finding("Ready", "True", "Suspended", "topics are not looked for; the tables that are there go on")]
    if seen.problem is not None:
        if seen.problem.retryable:
            again = Finding("Reconciling", "True", "Retrying", "topics are listed again")
            return [Finding("Ready", "False", seen.problem.reason, seen.problem.message), again]
        return _stalled(seen.problem)
    if seen.beyond:
        return _stalled(Problem("TooManyTopics", _beyond(desired, seen)))
    own = [each for each in failing if each.reason not in _OF_TABLES]
    if own:
        reasons = {each.reason for each in own}
        told = [AccessDeniedError.name(), *([COLLISION] if reasons == {COLLISION} else [])]
        reason = next((each for each in told if each in reasons), "TopicsRefused")
        many = f"{counted(len(own), 'topic')} of {len(seen.topics or ())} cannot have what the template says: {_named(own)}"
        return _stalled(Problem(reason, many))
    return _of_tables(seen, failing)


def _of_tables(seen: Seen, failing: Sequence[FailingTable]) -> list[Finding]:
    total = len(seen.wanted)
    if seen.writes:
        return _working("WritingTables", f"{counted(seen.writes, 'HudiTable')} of {total} to be written")
    if failing:
        return [
            Finding(
                "Ready", "False", "TablesNotReady", f"{len(failing)} of {counted(total, 'table')}: {_named(failing)}"
            )
        ]
    starting = [each.name for each in seen.wanted if each.stored is not None and _fare(each.stored) is _Fare.BEGINS]
    if starting:
        message = f"{counted(len(starting), 'HudiTable')} new, or at its first run: {', '.join(starting[:NAMED_MAX])}"
        return _working("TablesStarting", message)
    if not total:
        return [
            Finding(
                "Ready", "True", "NoTopics", "the brokers have no topic that is selected; one that comes has a table"
            )
        ]
    return [Finding("Ready", "True", "TablesReady", f"{counted(total, 'topic')} with a table each, all of them ready")]


def _working(reason: str, message: str) -> list[Finding]:
    return [Finding("Ready", "False", reason, message), Finding("Reconciling", "True", reason, message)]


def _stalled(problem: Problem) -> list[Finding]:
    return [
        Finding("Ready", "False", problem.reason, problem.message),
        Finding("Stalled", "True", problem.reason, problem.message),
    ]


def _named(failing: Sequence[FailingTable]) -> str:
    """The first of them, each with what is wrong."""
    first = "; ".join(f"{each.topic}: {each.message}" for each in failing[:NAMED_MAX])
    return f"{first}{_more(len(failing) - NAMED_MAX)}"


def _more(number: int) -> str:
    return f" and {number} more" if number > 0 else ""


def _listed(desired: DesiredSet, seen: Seen) -> Finding:
    if seen.problem is not None:
        return Finding("TopicsListed", "False", seen.problem.reason, seen.problem.message)
    if seen.listed is None or desired.spec is None:
        return Finding("TopicsListed", "Unknown", "NotListed", "topics are not looked for")
    unused = list(unused_overrides(desired.spec, seen.listed))
    rest = f"; overrides name topics that are none of them: {_first(unused)}" if unused else ""
    message = f"{counted(len(seen.listed), 'topic')} of the pattern, {len(seen.topics or ())} of them selected{rest}"
    return Finding("TopicsListed", "True", "TopicsListed", message)


def _first(names: Sequence[str]) -> str:
    return f"{', '.join(names[:NAMED_MAX])}{_more(len(names) - NAMED_MAX)}"


def _beyond(desired: DesiredSet, seen: Seen) -> str:
    most = desired.spec.max_tables if desired.spec is not None else 0
    return (
        f"{len(seen.wanted) + len(seen.beyond)} topics are selected, and maxTables is {most}: no table for {_first(seen.beyond)}; "
        "narrow the pattern, or raise maxTables"
    )


def _told(desired: DesiredSet, seen: Seen) -> Iterable[Finding]:
    """What there may be to say beside whether the set is ready."""
    collided = [
        each.problem.message for each in seen.wanted if each.problem is not None and each.problem.reason == COLLISION
    ]
    if collided:
        message = f"{'; '.join(collided[:NAMED_MAX])}{_more(len(collided) - NAMED_MAX)}"
        yield Finding("NameCollision", "True", "NameCollision", message)
    if seen.beyond:
        yield Finding("TooManyTopics", "True", "TooManyTopics", _beyond(desired, seen))
    if seen.vanished:
        todo = "left as they are: delete them, or set prune"
        if desired.spec is not None and desired.spec.prune:
            todo = f"deleted after {desired.spec.prune_after}"
        names = _first([f"{each.topic} ({each.table})" for each in seen.vanished])
        message = (
            f"{counted(len(seen.vanished), 'topic')} gone or selected no more; their HudiTables are {todo}: {names}"
        )
        yield Finding("TopicsVanished", "True", "TopicsVanished", message)
