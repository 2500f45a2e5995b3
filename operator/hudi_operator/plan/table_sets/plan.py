"""`plan_set(desired, observed, now)`: what is to be done about one HudiTableSet. Pure.

Order of judgement: the manifest, then whether the topics could be listed, then each topic. What is
wrong with one topic keeps no other from its table. Where topics cannot be listed the HudiTables
that are there go on, and follow the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hudi_operator.api.resources import DesiredSet
from hudi_operator.api.schema import to_document
from hudi_operator.api.table_set import VANISHED_MAX, HudiTableSetSpec, VanishedTopic
from hudi_operator.errors import InvalidSpecError
from hudi_operator.manifests.quantities import seconds_of
from hudi_operator.plan.effects import ChangeTable, Effect, MakeTable, RemoveTable, RequeueAfter, SetStatus, Write
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.plan.table_sets.status import Seen, news, status_of
from hudi_operator.plan.table_sets.wanted import UNREAD, Keys, Wanted, selected, topic_of, wanted_tables

LISTED_SECONDS, PRUNE_SECONDS_MIN = 60.0, 15.0
"""How often topics are listed: one that is made sends no word. One that is to be pruned is looked
at sooner, but no sooner than that."""

AGAIN_SECONDS = 1.0
"""What one reconcile leaves of keys to read and HudiTables to write the next one does."""


@dataclass(frozen=True, slots=True)
class ObservedSet:
    """`listed`: topics of the brokers that the selector's patterns leave, or None and the
    `problem`. `members`: the HudiTables that bear the set's label. `strangers`: names of others,
    among those that the set gives. `refused`: what the API server said just now, by topic. `keys`:
    those of topics that are to have a table, as far as they were read."""

    listed: tuple[str, ...] | None = None
    problem: Problem | None = None
    members: tuple[Mapping[str, Any], ...] = ()
    strangers: frozenset[str] = frozenset()
    refused: Mapping[str, Problem] = field(default_factory=dict)
    keys: Keys = field(default_factory=dict)


def problem_of(desired: DesiredSet) -> Problem | None:
    """What is wrong with the manifest, all its fields in one message; None if nothing is."""
    if desired.errors or desired.spec is None:
        return Problem(InvalidSpecError.name(), "; ".join(map(str, desired.errors)))
    return None


def topics_of(desired: DesiredSet, observed: ObservedSet) -> tuple[str, ...]:
    """The topics that have a table, as far as it is known: without a list, those that have one."""
    if desired.spec is None:
        return ()
    if observed.listed is None:
        return tuple(sorted(filter(None, map(topic_of, observed.members))))
    return selected(desired.spec, observed.listed)


def plan_set(desired: DesiredSet, observed: ObservedSet, now: datetime) -> list[Effect | Write]:
    """Effects in order: what is written, events, the status, and when to look again."""
    invalid, spec = problem_of(desired), desired.spec
    resting = invalid is not None or spec is None or spec.suspend
    topics = topics_of(desired, observed) if invalid is None else ()
    wanted, beyond = wanted_tables(desired, topics, observed.members, observed.strangers, observed.keys)
    vanished = _vanished(desired, observed, topics, now)
    unread = 0 if resting else sum(each.problem is UNREAD for each in wanted)
    writes = () if resting else (*_made_and_changed(wanted, observed), *_removed(desired, observed, vanished, now))
    seen = Seen(
        invalid=invalid,
        problem=observed.problem,
        listed=observed.listed,
        topics=topics if observed.listed is not None else None,
        members=observed.members,
        wanted=wanted,
        beyond=beyond,
        vanished=vanished,
        refused=observed.refused,
        writes=len(writes) + unread,
    )
    status = status_of(desired, seen, now)
    return [
        *writes,
        *news(desired.status, status),
        SetStatus(to_document(status)),
        RequeueAfter(AGAIN_SECONDS, "Keys") if unread else RequeueAfter(_wait(spec, vanished, now), "Topics"),
    ]


def _wait(spec: HudiTableSetSpec | None, vanished: Sequence[VanishedTopic], now: datetime) -> float:
    """Until topics are listed again, or one that is gone has been so for long enough."""
    if spec is None or not spec.prune:
        return LISTED_SECONDS
    gone = (
        seconds_of(spec.prune_after) - (now - datetime.fromisoformat(each.since)).total_seconds() for each in vanished
    )
    return min((LISTED_SECONDS, *(max(PRUNE_SECONDS_MIN, left) for left in gone)))


def _made_and_changed(wanted: Sequence[Wanted], observed: ObservedSet) -> list[Write]:
    found: list[Write] = []
    for each in wanted:
        if each.problem is not None or each.topic in observed.refused:
            continue
        if each.stored is None:
            found.append(MakeTable(each.topic, each.document))
        elif "deletionTimestamp" not in each.stored["metadata"] and not each.is_right:
            found.append(ChangeTable(each.topic, each.document))
    return found


def _vanished(
    desired: DesiredSet, observed: ObservedSet, topics: Sequence[str], now: datetime
) -> tuple[VanishedTopic, ...]:
    """Topics that are gone or selected no more, and have a table; those that were missed first come
    first. Without a list, those that were missed before."""
    known, here = {each.topic: each for each in desired.status.vanished}, set(topics)
    found = []
    for member in observed.members:
        topic = topic_of(member)
        if not topic or (topic in here if observed.listed is not None else topic not in known):
            continue
        before = known.get(topic)
        since = before.since if before is not None else rfc3339(now)
        found.append(VanishedTopic(topic, str(member["metadata"]["name"]), since))
    return tuple(sorted(found, key=lambda each: (each.since, each.topic)))


def _removed(
    desired: DesiredSet, observed: ObservedSet, vanished: Sequence[VanishedTopic], now: datetime
) -> list[RemoveTable]:
    """Those that have been gone for long enough. Where no topic at all is seen nothing is removed:
    brokers show an account that has lost its rights no topics, and no error."""
    spec = desired.spec
    if spec is None or not spec.prune or not observed.listed:
        return []
    limit = now - timedelta(seconds=seconds_of(spec.prune_after))
    uids = {str(each["metadata"]["name"]): each["metadata"] for each in observed.members}
    late = [each for each in vanished[:VANISHED_MAX] if datetime.fromisoformat(each.since) <= limit]
    return [
        RemoveTable(each.topic, each.table, str(uids[each.table]["uid"]))
        for each in late
        if "deletionTimestamp" not in uids[each.table] and each.topic not in observed.refused
    ]
