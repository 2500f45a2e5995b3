"""Reconciling HudiTableSets: topics are listed, HudiTables are made, changed and removed, and the
set says what came of it.

Topics are listed by the operator itself, as those of an ingest are: one question of a client that
lets go of the interpreter and is bounded in time, with the credentials of the set's own Secret. A
pod for it would cost seconds of a node each minute, and would need an account that reports names.
Of one namespace no more reconciles run at once than of any other, and who waits for brokers is
stood in for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_operator.api.parsing import FieldError
from hudi_operator.api.resources import DesiredSet, Key, desired_set, key_of
from hudi_operator.api.table_set import HudiTableSetSpec
from hudi_operator.manifests.jobs import CREDENTIAL_VARIABLES
from hudi_operator.plan.effects import (
    ChangeTable,
    Effect,
    Emit,
    EventType,
    MakeTable,
    RemoveTable,
    RequeueAfter,
    SetStatus,
    Write,
)  # fmt: skip
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.table_sets.plan import AGAIN_SECONDS, LISTED_SECONDS, ObservedSet, plan_set, topics_of
from hudi_operator.plan.table_sets.wanted import keyless, names_of
from hudi_operator.runtime.masking import masked_problem
from hudi_operator.runtime.observing.problems import problem_of
from hudi_operator.runtime.parse_cache import Parsed
from hudi_operator.runtime.ports import TableCluster
from hudi_operator.runtime.sets.keys import SetKeys
from hudi_table.errors import AccessDeniedError, HudiError, InvalidRequestError, ObjectExistsError, ObjectNotFoundError
from hudi_table.model.bounded import Bounded
from hudi_table.table.store.ports import Clock

FRESH_SECONDS = 15.0
"""How long a list of topics holds: a set is looked at whenever one of its tables changes."""
WRITES_MAX = 20
"""So many HudiTables are written at one reconcile; the next one follows soon."""
LISTED_MAX = 10_000
"""A pattern that leaves more topics is refused: nobody has so many tables of one set."""
NAMES_MAX = 200_000
"""Names of topics that are remembered, of all sets together."""
Listing = tuple[str, ...] | Problem
Lister = Callable[[HudiTableSetSpec, Mapping[str, str]], tuple[str, ...]]
"""The topics of the brokers that the patterns of a set leave. Raises HudiError."""


def list_topics(spec: HudiTableSetSpec, secret: Mapping[str, str]) -> tuple[str, ...]:
    """As the brokers have them now. Raises HudiError."""
    # The client is loaded by who has such a set.
    from hudi_table.sources.kafka.brokers import Brokers
    from hudi_table.sources.kafka.settings import KafkaSettings, checked_pattern

    kafka = spec.follower.source.kafka
    assert kafka is not None
    security = kafka.security
    settings = KafkaSettings(
        kafka.brokers,
        pattern=spec.selector.pattern,
        protocol=security.protocol.value,
        mechanism=security.mechanism.value,
    )
    checked_pattern(spec.selector.pattern)
    exclude = spec.selector.exclude_pattern
    if exclude is not None:
        checked_pattern(exclude)
    excluded = replace(settings, pattern=exclude)
    found = Brokers(settings, secret).topics()
    left = tuple(topic for topic in found if not excluded.matches(topic))
    if len(left) > LISTED_MAX:
        raise InvalidRequestError(
            f"the patterns of selector leave {len(left)} topics; narrow them to {LISTED_MAX} or less"
        )
    return left


@dataclass
class SetReconciler:
    """Reconciles HudiTableSets of an API server. For several threads at once. `written` is told of
    each HudiTable that was written: what the watch brings of our own writes is no news."""

    cluster: TableCluster
    clock: Clock
    written: Callable[[Key], object]
    lister: Lister = list_topics
    fresh_seconds: float = FRESH_SECONDS
    keys: SetKeys = field(init=False)
    _parsed: Parsed[DesiredSet] = field(default_factory=lambda: Parsed(desired_set))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _listings: Bounded[Key, tuple[object, float, Listing]] = field(
        default_factory=lambda: Bounded(NAMES_MAX, lambda kept: len(kept[2]) + 1 if isinstance(kept[2], tuple) else 1)
    )

    def __post_init__(self) -> None:
        self.keys = SetKeys(self.clock)

    def reconcile(self, document: Mapping[str, Any]) -> RequeueAfter | None:
        """Bring one set nearer to what its manifest says."""
        if "deletionTimestamp" in document["metadata"]:
            return None  # its HudiTables go with it by their owner, or stay
        secret, desired = self._secret(self._parsed(document))
        listing = self._listed(desired, secret)
        observed = self._observed(desired, listing, {}, secret)
        effects = plan_set(desired, observed, self.clock.now())
        done = self._written(desired, effects)
        if done.tried:
            observed = self._observed(desired, listing, done.refused, secret)
            effects = plan_set(desired, observed, self.clock.now())
        again = self._said(desired.identity.key, [*done.said, *effects])
        left = {(type(each), each.topic) for each in _writes(effects)} - done.tried
        return RequeueAfter(AGAIN_SECONDS, "Writing") if left or done.overtaken else again

    def forget(self, key: Key) -> None:
        """A set is gone."""
        self.keys.forget(key)
        with self._lock:
            self._listings.pop(key, None)

    def _secret(self, desired: DesiredSet) -> tuple[Mapping[str, str], DesiredSet]:
        """Credentials of the template's Secret. One that is missing is an error of the template."""
        ref = desired.spec.template.spec.storage.credentials_secret_ref if desired.spec is not None else None
        if ref is None or desired.errors:
            return {}, desired
        namespace = desired.identity.key.namespace
        found = self.cluster.secret(namespace, ref.name)
        if found is None:
            path = "spec.template.spec.storage.credentialsSecretRef.name"
            message = f"there is no Secret {ref.name!r} in namespace {namespace}; create it"
            return {}, replace(desired, errors=(FieldError(path, message),))
        return {name: value for name, value in found.items() if name in CREDENTIAL_VARIABLES}, desired

    def _listed(self, desired: DesiredSet, secret: Mapping[str, str]) -> Listing | None:
        """The topics, or why they cannot be listed; None where they are not looked for."""
        spec, key = desired.spec, desired.identity.key
        if spec is None or desired.errors or spec.suspend:
            return None
        kafka = spec.follower.source.kafka
        asked = (desired.identity.uid, kafka, spec.selector, hash(tuple(sorted(secret.items()))))
        now = self.clock.boot_seconds()
        with self._lock:
            kept = self._listings.get(key)
        if kept is not None and kept[0] == asked and now - kept[1] < self.fresh_seconds:
            return kept[2]
        found: Listing
        try:
            found = self.lister(spec, secret)
        except HudiError as error:
            found = masked_problem(problem_of(error), secret)
        with self._lock:
            self._listings[key] = (asked, self.clock.boot_seconds(), found)
        return found

    def _observed(
        self, desired: DesiredSet, listing: Listing | None, refused: Mapping[str, Problem], secret: Mapping[str, str]
    ) -> ObservedSet:
        key, members = desired.identity.key, tuple(self.cluster.members(desired.identity.key))
        seen = ObservedSet(
            listed=listing if isinstance(listing, tuple) else None,
            problem=listing if isinstance(listing, Problem) else None,
            members=members,
            refused=refused,
        )
        if desired.errors or desired.spec is None:
            return seen
        own, topics = {str(each["metadata"]["name"]) for each in members}, topics_of(desired, seen)
        names = set(names_of(desired, topics, members).values()) - own - {""}
        there = (name for name in names if self.cluster.get(Key("HudiTable", key.namespace, name)) is not None)
        read = {} if desired.spec.suspend else self.keys.of(desired, secret, keyless(desired, topics, members))
        return replace(seen, strangers=frozenset(there), keys=read)

    def _written(self, desired: DesiredSet, effects: Sequence[Effect | Write]) -> _Done:
        """Write as many HudiTables as one reconcile may. What the API server refuses of one is said
        of it; without the right to write none is tried further."""
        done = _Done()
        for write in _writes(effects)[:WRITES_MAX]:
            done.tried.add((type(write), write.topic))
            try:
                done.said.append(self._write(desired, write))
            except (ObjectExistsError, ObjectNotFoundError) as error:
                if isinstance(write, MakeTable):
                    done.refused[write.topic] = problem_of(error)
                else:
                    done.overtaken = True
            except HudiError as error:
                if error.retryable:
                    raise
                done.refused[write.topic] = problem_of(error)
                if isinstance(error, AccessDeniedError):
                    break
        return done

    def _write(self, desired: DesiredSet, write: Write) -> Emit:
        match write:
            case MakeTable():
                self.cluster.make(write.document)
                self.written(key_of(write.document))
                said = f"HudiTable {write.document['metadata']['name']} for topic {write.topic}"
                return Emit(EventType.NORMAL, "TableMade", said)
            case ChangeTable():
                self.cluster.change(write.document)
                self.written(key_of(write.document))
                said = f"HudiTable {write.document['metadata']['name']} of topic {write.topic} follows the template"
                return Emit(EventType.NORMAL, "TableChanged", said)
            case RemoveTable():
                self.cluster.remove(Key("HudiTable", desired.identity.key.namespace, write.name), write.uid)
                said = f"HudiTable {write.name}: topic {write.topic} is gone, or selected no more"
                return Emit(EventType.NORMAL, "TablePruned", said)

    def _said(self, key: Key, effects: Sequence[Effect | Write]) -> RequeueAfter | None:
        again = None
        for effect in effects:
            match effect:
                case SetStatus():
                    self.cluster.set_status(key, effect.status)
                case Emit():
                    self.cluster.emit(key, effect)
                case RequeueAfter():
                    again = effect
        return again


@dataclass(slots=True)
class _Done:
    """What came of writing. `overtaken`: somebody else has changed a HudiTable meanwhile."""

    tried: set[tuple[type, str]] = field(default_factory=set)
    refused: dict[str, Problem] = field(default_factory=dict)
    said: list[Emit] = field(default_factory=list)
    overtaken: bool = False


def _writes(effects: Sequence[Effect | Write]) -> list[Write]:
    return [each for each in effects if isinstance(each, MakeTable | ChangeTable | RemoveTable)]


assert FRESH_SECONDS < LISTED_SECONDS  # a look that comes by itself sees what is new
