"""Which HudiTables a set wants, topic by topic: their names, their documents, and why some topic
has none. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.api.fields.brokers import TOPIC_LENGTH_MAX
from hudi_operator.api.ingests.source import SourceType
from hudi_operator.api.locations import segments
from hudi_operator.api.names import API_VERSION, SET, TOPIC
from hudi_operator.api.options import described_errors, option_errors
from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import DesiredSet
from hudi_operator.api.schema import to_document
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.api.table_set import HudiTableSetSpec, OverrideSpec, SetDeletionPolicy
from hudi_operator.api.templates import KEY, filled, merged, object_name, values_of, with_key
from hudi_operator.errors import InvalidSpecError
from hudi_operator.plan.observed import Problem
from hudi_table.model.job.error_tables import error_locations

Document = Mapping[str, Any]
_OF_DEBEZIUM = frozenset({"transaction", "message"})
"""`prefix.transaction` and `prefix.message`: Debezium's own topics, which are of no table."""
_LEGAL = re.compile(rf"[A-Za-z0-9._-]{{1,{TOPIC_LENGTH_MAX}}}")
_OVERRIDDEN = OverrideSpec("")
COLLISION = "NameCollision"
UNREAD = Problem("KeyNotRead", "the key of the topic is not read yet", retryable=True)
Keys = Mapping[str, tuple[str, ...] | Problem]
"""Topic → the columns of its key, or why they are not known."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The HudiTable of a topic: what is there (`stored`), what is to be there, and why it cannot
    be."""

    topic: str
    name: str
    document: Document = field(default_factory=dict)
    stored: Document | None = None
    problem: Problem | None = None

    @property
    def is_right(self) -> bool:
        """Whether what is there is what is to be there."""
        return self.stored is not None and changed(self.stored, self.document) is None


def selected(spec: HudiTableSetSpec, topics: Sequence[str]) -> tuple[str, ...]:
    """Of topics that were listed those that have a table, sorted."""
    skipped = {each.topic for each in spec.overrides if each.skip}
    events = spec.follower.source.type is SourceType.DEBEZIUM
    found = (topic for topic in topics if topic not in skipped and not (events and _is_debeziums_own(topic)))
    return tuple(sorted(filter(_is_legal, found)))


def _is_legal(topic: str) -> bool:
    """Whether Kafka itself would make a topic of this name. It becomes part of places and names:
    whoever answers as a broker does not choose a folder elsewhere."""
    return _LEGAL.fullmatch(topic) is not None and topic not in (".", "..")


def _is_debeziums_own(topic: str) -> bool:
    _, *rest = topic.split(".")
    return len(rest) == 1 and rest[0] in _OF_DEBEZIUM


def topic_of(document: Document) -> str:
    """The topic that a HudiTable of a set follows; "" of one that nobody has given any."""
    return str((document["metadata"].get("annotations") or {}).get(TOPIC, ""))


def names_of(desired: DesiredSet, topics: Sequence[str], members: Sequence[Document]) -> dict[str, str]:
    """Topic → name of its HudiTable: that which it has, else what the template says."""
    spec, key = desired.spec, desired.identity.key
    if spec is None:
        return {}
    found = {topic_of(each): str(each["metadata"]["name"]) for each in members if topic_of(each)}
    overrides = {each.topic: each for each in spec.overrides}
    for topic in topics:
        if topic not in found:
            pattern = overrides.get(topic, _OVERRIDDEN).name or spec.template.name
            found[topic] = object_name(filled(pattern, values_of(topic, key.namespace, key.name)))
    return {topic: found[topic] for topic in topics}


def keyless(desired: DesiredSet, topics: Sequence[str], members: Sequence[Document]) -> tuple[str, ...]:
    """The topics whose HudiTable is to be made with the columns of the topic's key."""
    spec = desired.spec
    if spec is None:
        return ()
    stored = set(map(topic_of, members))
    overrides = {each.topic: each for each in spec.overrides}

    def asks(topic: str) -> bool:
        names = merged(desired.template, overrides.get(topic, _OVERRIDDEN).spec).get("recordKey")
        return isinstance(names, list) and KEY in names

    return tuple(topic for topic in _in_order(topics, stored)[: spec.max_tables] if topic not in stored and asks(topic))


def _in_order(topics: Sequence[str], stored: Container[str]) -> list[str]:
    """Those that have a table come first: what is new makes way for them."""
    return sorted(topics, key=lambda topic: (topic not in stored, topic))


def wanted_tables(
    desired: DesiredSet, topics: Sequence[str], members: Sequence[Document], strangers: frozenset[str], keys: Keys
) -> tuple[tuple[Wanted, ...], tuple[str, ...]]:
    """(the HudiTables of topics, the topics beyond `maxTables`). `strangers`: names of HudiTables
    that are not of the set; `keys`: those of topics without a table, as far as they were read."""
    spec = desired.spec
    if spec is None:
        return (), ()
    stored = {topic_of(each): each for each in members}
    labelled = {str(each["metadata"]["name"]): each for each in members if not topic_of(each)}
    order = _in_order(topics, stored)
    overrides = {each.topic: each for each in spec.overrides}
    names, taken, found = names_of(desired, order, members), _Taken(), []
    for topic in order[: spec.max_tables]:
        name = names[topic]
        there = stored.get(topic) or labelled.get(name)
        document = document_of(desired, topic, name, overrides.get(topic, _OVERRIDDEN), there)
        document, unknown = _keyed(document, there, keys.get(topic, UNREAD))
        problem = _unnamed(topic, name) or taken.problem(topic, name, document["spec"])
        if problem is None and there is None and name in strangers:
            problem = Problem(COLLISION, _not_ours(desired, topic, name))
        found.append(Wanted(topic, name, document, there, problem or unknown or _wrong(name, document, there)))
    return tuple(found), tuple(order[spec.max_tables :])


@dataclass(slots=True)
class _Taken:
    """Names that topics before have; places of their tables and error tables, and what lies above
    these places."""

    names: dict[str, str] = field(default_factory=dict)
    places: dict[tuple[str, ...], str] = field(default_factory=dict)
    above: dict[tuple[str, ...], str] = field(default_factory=dict)

    def problem(self, topic: str, name: str, spec: Document) -> Problem | None:
        """Why a topic cannot have them, else they are its own."""
        other = self.names.get(name)
        if other is not None:
            said = f"topics {other} and {topic} both give the name {name}"
            return Problem(COLLISION, f"{said}: name one of them in overrides, or change template.name")
        wanted = _places(topic, spec)
        for place, (whose, location) in wanted.items():
            parts = [place[:end] for end in range(1, len(place) + 1)]
            other = self.above.get(place) or next((self.places[part] for part in parts if part in self.places), None)
            if other is not None:
                said = f"{whose} gives the location {location}, which is that of {other}, or lies above or below it"
                return Problem(COLLISION, f"{said}: put {{topic}} into template.spec.location, or override one of them")
        self.names[name] = topic
        for place, (whose, _) in wanted.items():
            self.places[place] = whose
            self.above |= dict.fromkeys((place[:end] for end in range(1, len(place))), whose)
        return None


def _places(topic: str, spec: Document) -> dict[tuple[str, ...], tuple[str, str]]:
    """Of the table of a topic and of those that keep what its ingests refuse: by place whose it is,
    and its location."""
    location = spec.get("location", "")
    if not isinstance(location, str):
        return {(): (f"topic {topic}", str(location))}
    errors = {segments(each): (f"the error table of topic {topic}", each) for each in error_locations(spec)}
    return {segments(location): (f"topic {topic}", location), **errors}


def _unnamed(topic: str, name: str) -> Problem | None:
    return None if name else Problem(COLLISION, f"topic {topic} gives no name: name it in overrides")


def _not_ours(desired: DesiredSet, topic: str, name: str) -> str:
    label = f"{SET}={desired.identity.key.name}"
    return (
        f"topic {topic} gives the name {name}, and a HudiTable {name} is there that is not of this set: label it {label} to take it over, "
        "or name the topic in overrides"
    )


def document_of(desired: DesiredSet, topic: str, name: str, override: OverrideSpec, there: Document | None) -> Document:
    """The HudiTable of a topic as it is to be; what else stands in the metadata of the one that is
    there stays."""
    spec, identity = desired.spec, desired.identity
    assert spec is not None
    values = {**values_of(topic, identity.key.namespace, identity.key.name), "name": name}
    kept: dict[str, Any] = (
        dict(there["metadata"]) if there is not None else {"name": name, "namespace": identity.key.namespace}
    )
    labels = {**(kept.get("labels") or {}), **filled(spec.template.labels, values), SET: identity.key.name}
    annotations = {**(kept.get("annotations") or {}), **filled(spec.template.annotations, values), TOPIC: topic}
    owners = [each for each in kept.get("ownerReferences") or () if each.get("kind") != "HudiTableSet"]
    if spec.deletion_policy is SetDeletionPolicy.DELETE:
        owner = {"apiVersion": API_VERSION, "kind": "HudiTableSet", "name": identity.key.name, "uid": identity.uid}
        owners.append({**owner, "controller": True, "blockOwnerDeletion": False})
    metadata = {**kept, "labels": labels, "annotations": annotations, "ownerReferences": owners}
    wanted = filled(merged(desired.template, override.spec), values)
    return {"apiVersion": API_VERSION, "kind": "HudiTable", "metadata": metadata, "spec": wanted}


def _keyed(
    document: Document, there: Document | None, key: tuple[str, ...] | Problem
) -> tuple[Document, Problem | None]:
    """A document whose record key has the columns of the topic's, or why it has not. That of a
    HudiTable that is there stays: no table changes its key."""
    spec = document["spec"]
    names = spec.get("recordKey")
    if not isinstance(names, list) or KEY not in names:
        return document, None
    if there is not None:
        return {**document, "spec": {**spec, "recordKey": there["spec"].get("recordKey")}}, None
    if isinstance(key, Problem):
        return document, key
    return {**document, "spec": {**spec, "recordKey": with_key(names, key)}}, None


def changed(stored: Document, wanted: Document) -> str | None:
    """What of a HudiTable is not as it is to be; None if nothing is."""
    for name in ("labels", "annotations", "ownerReferences"):
        if (stored["metadata"].get(name) or type(wanted["metadata"][name])()) != wanted["metadata"][name]:
            return f"metadata.{name}"
    if stored["spec"] == wanted["spec"] or _whole(stored["spec"]) == _whole(wanted["spec"]):
        return None
    return "spec"


def _whole(spec: object) -> object:
    """A spec with its defaults; one with errors as it is."""
    found, errors = parse(HudiTableSpec, spec, "spec")
    return spec if errors or found is None else to_document(found)


def _wrong(name: str, document: Document, there: Document | None) -> Problem | None:
    """Why no API server would take a document; what is there as it is to be was taken."""
    if there is not None and there["spec"] == document["spec"]:
        return None
    found, errors = parse(HudiTableSpec, document["spec"], "spec")
    errors += option_errors(document)
    if found is not None:
        errors += described_errors(found, name)
    return Problem(InvalidSpecError.name(), "; ".join(map(str, errors))) if errors else None


def unused_overrides(spec: HudiTableSetSpec, listed: Sequence[str]) -> Iterator[str]:
    """Topics of overrides that are none of those that were listed."""
    known = set(listed)
    return (each.topic for each in spec.overrides if each.topic not in known)
