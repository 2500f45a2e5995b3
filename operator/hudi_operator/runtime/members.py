"""Which HudiTables bear the label of which HudiTableSet, and what of one is its set's affair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.api.documents import condition_of
from hudi_operator.api.names import SET
from hudi_operator.api.resources import Key, key_of


def set_of(document: Mapping[str, Any]) -> Key | None:
    """The set whose label a HudiTable bears, whether there is such a set or not."""
    name = (document["metadata"].get("labels") or {}).get(SET)
    key = key_of(document)
    return Key("HudiTableSet", key.namespace, str(name)) if key.kind == "HudiTable" and name else None


def looks_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two states of a HudiTable are the same to its set: a commit of a table is none of its
    affair."""

    def looked_at(document: Mapping[str, Any]) -> tuple[Any, ...]:
        ready = condition_of(document, "Ready")
        metadata = document["metadata"]
        return (
            metadata.get("generation"), metadata.get("labels"), metadata.get("annotations"), metadata.get("deletionTimestamp"),
            ready.get("status"), ready.get("reason"), ready.get("observedGeneration"),
        )  # fmt: skip

    return looked_at(one) == looked_at(other)


@dataclass(slots=True)
class Members:
    """HudiTables by set. Not for several threads at once."""

    _of: dict[Key, set[Key]] = field(default_factory=dict)

    def add(self, key: Key, document: Mapping[str, Any]) -> None:
        """A resource is there."""
        owner = set_of(document)
        if owner is not None:
            self._of.setdefault(owner, set()).add(key)

    def remove(self, key: Key, document: Mapping[str, Any]) -> None:
        """One that was known by this document is gone."""
        owner = set_of(document)
        if owner is not None:
            self._of[owner].discard(key)
            if not self._of[owner]:
                del self._of[owner]

    def of(self, owner: Key) -> list[Key]:
        """The HudiTables of a set, sorted."""
        return sorted(self._of.get(owner, ()))
