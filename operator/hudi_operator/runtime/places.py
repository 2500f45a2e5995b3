"""Where tables lie: which HudiTables have the same location, or one above or below another's, and
which take in what changes in another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.api.locations import scheme_of, segments, server_of
from hudi_operator.api.resources import Key, key_of

Place = tuple[str, ...]


def place_of(document: Mapping[str, Any]) -> Place | None:
    """The place of a stored HudiTable, None of what is none. The same URL at another endpoint is
    another place, and so is a file of another namespace, which has volumes of its own."""
    spec = document.get("spec")
    location = spec.get("location") if isinstance(spec, Mapping) else None
    if document["kind"] != "HudiTable" or not isinstance(spec, Mapping) or not isinstance(location, str):
        return None
    return _place(document, spec, location)


def followed_by(document: Mapping[str, Any]) -> set[Place]:
    """The places of the tables whose changes a stored HudiTable takes in."""
    spec = document["spec"]
    ingests = spec.get("ingest")
    sources = [each.get("source") for each in ingests if isinstance(each, Mapping)] if isinstance(ingests, list) else []
    uppers = [each.get("hudi") for each in sources if isinstance(each, Mapping)]
    locations = [each.get("location") for each in uppers if isinstance(each, Mapping)]
    return {_place(document, spec, each) for each in locations if isinstance(each, str)}


def _place(document: Mapping[str, Any], spec: Mapping[str, Any], location: str) -> Place:
    storage = spec.get("storage")
    endpoint = storage.get("endpoint") if isinstance(storage, Mapping) else None
    store = key_of(document).namespace if scheme_of(location) == "file" else server_of(str(endpoint or ""))
    return (store, *segments(location))


@dataclass(slots=True)
class Places:
    """Tables by place. A lookup costs as many steps as a location has folders. Not for several
    threads at once."""

    _of: dict[Key, Place] = field(default_factory=dict)
    _at: dict[Place, set[Key]] = field(default_factory=dict)
    _below: dict[Place, set[Key]] = field(default_factory=dict)
    _follows: dict[Key, set[Place]] = field(default_factory=dict)
    _followed: dict[Place, set[Key]] = field(default_factory=dict)

    def add(self, key: Key, document: Mapping[str, Any]) -> None:
        """A resource is there."""
        place = place_of(document)
        if place is None:
            return
        self._of[key] = place
        self._at.setdefault(place, set()).add(key)
        for end in range(1, len(place) + 1):
            self._below.setdefault(place[:end], set()).add(key)
        self._follows[key] = followed_by(document)
        for each in self._follows[key]:
            self._followed.setdefault(each, set()).add(key)

    def remove(self, key: Key) -> None:
        """It is gone."""
        place = self._of.pop(key, None)
        if place is None:
            return
        _discard(self._at, place, key)
        for end in range(1, len(place) + 1):
            _discard(self._below, place[:end], key)
        for each in self._follows.pop(key):
            _discard(self._followed, each, key)

    def sharing(self, key: Key) -> list[Key]:
        """The others whose place is that of a table, or above or below it."""
        place = self._of.get(key)
        if place is None:
            return []
        above = (each for end in range(1, len(place)) for each in self._at.get(place[:end], ()))
        return sorted({*self._below[place], *above} - {key})

    def followers(self, key: Key) -> list[Key]:
        """The tables of the same namespace that take in what changes in a table."""
        place = self._of.get(key)
        found = self._followed.get(place, set()) if place is not None else set()
        return sorted(each for each in found if each.namespace == key.namespace)

    def upstreams(self, key: Key) -> list[Key]:
        """The tables of the same namespace of which one takes in what changes."""
        found = {each for place in self._follows.get(key, ()) for each in self._at.get(place, ())}
        return sorted(each for each in found if each.namespace == key.namespace)


def _discard(index: dict[Place, set[Key]], place: Place, key: Key) -> None:
    index[place].discard(key)
    if not index[place]:
        del index[place]
