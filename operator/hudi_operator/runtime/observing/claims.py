"""Whose a place is, where HudiTables lie inside each other: one goes on, the others are refused.

Of those at one location, above or below it, of whatever namespaces they are, it is the one whose
table is there; of several, or of none, the oldest, by `creationTimestamp` and then uid. So a
manifest without a table keeps no other one from a table that exists, whatever location it claims
first, and has none made there itself.

Whether another one's table is there the store says, asked with the credentials of the table that is
judged. Where those do not reach, and at one and the same location, the other one's are tried. If
they fail, as with a token that has expired, a store that is away or a Secret that is made anew, the
other one is believed to have its table there exactly if the operator has seen that before: its
status says at which location. So a hiccup hands nobody's table to a stranger, who would serve it by
a retention of his own; and who never saw a table there keeps nobody from anything, whatever fails.
Nothing else of a status is believed, for it may tell of a place that the manifest named before.
What lies in `.hoodie` is part of a table, and none. A restart of the operator changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hudi_operator.api.locations import segments
from hudi_operator.api.resources import DesiredTable, Identity, Key, identity_of
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.errors import InvalidSpecError
from hudi_operator.plan.observed import Problem
from hudi_operator.runtime.masking import masked_problem
from hudi_operator.runtime.observing.problems import problem_of
from hudi_operator.runtime.observing.stores import storage_options
from hudi_operator.runtime.ports import Cluster
from hudi_table.errors import HudiError
from hudi_table.model.names import HOODIE, PROPERTIES, PROPERTIES_BACKUP
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import has_object

Credentials = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Claims:
    """Judges by what `cluster` knows. `secret`: the credentials of a table, and the table with what
    is wrong about them."""

    cluster: Cluster
    parse: Callable[[Mapping[str, Any]], DesiredTable]
    secret: Callable[[DesiredTable], tuple[Credentials, DesiredTable]]

    def sharers(self, key: Key) -> list[Identity]:
        """Other HudiTables that stay, and whose files lie where this one's do, above or below them;
        the oldest first."""
        found = [document for each in self.cluster.sharing(key) if (document := self.cluster.get(each)) is not None]
        stay = [identity_of(document) for document in found if "deletionTimestamp" not in document["metadata"]]
        return sorted(stay, key=_age)

    def refusal(self, desired: DesiredTable, sharers: Sequence[Identity], *, has_table: bool) -> Problem | None:
        """Why a manifest gives way to one of its `sharers`, or, retryable, why that cannot be told
        now; None if it goes on. `has_table`: its own table is there, or may be. The store is asked
        of no more sharers than that leaves open."""
        spec = desired.spec
        if spec is None:
            return None
        mine = has_table and not _is_part(spec.location)
        for each in sharers:
            older = _age(each) < _age(desired.identity)
            if older and not mine:
                return _yields(f"{each.key}, which is older, lies there, too")
            if older or not mine:
                secret, _ = self.secret(desired)
                try:
                    found = self._has_table(each.key, spec, secret)
                except HudiError as error:
                    return masked_problem(problem_of(error), secret)
                if found:
                    return _yields(f"{each.key} has its table there")
        return None

    def _has_table(self, other: Key, spec: HudiTableSpec, secret: Credentials) -> bool:
        document = self.cluster.get(other)
        if document is None or _is_part(location := document["spec"]["location"]):
            return False
        try:
            # At our own place our credentials see our table, whoever else may reach it.
            if segments(location) != segments(spec.location):
                return _is_there(location, spec, secret)
        except HudiError as error:
            if error.retryable:
                raise
        # Whatever comes of what another one says: what was seen before decides.
        with suppress(HudiError, OSError, ValueError, TypeError, LookupError):
            keys, found = self.secret(self.parse(document))
            if found.spec is not None and not found.errors:
                return _is_there(location, found.spec, keys)
        return _was_seen(document, location)


def _was_seen(document: Mapping[str, Any], location: str) -> bool:
    """Whether the operator has last seen a table of this manifest at that location."""
    said = (document.get("status") or {}).get("tableLocation")
    return isinstance(said, str) and segments(said) == segments(location)


def _is_there(location: str, spec: HudiTableSpec, secret: Credentials) -> bool:
    """Whether a table lies at a location of the store that `spec` names."""
    storage = open_storage(location, storage_options(spec, location, secret))
    return any(has_object(storage, path) for path in (PROPERTIES, PROPERTIES_BACKUP))


def _is_part(location: str) -> bool:
    """Whether a location lies in what belongs to a table, as its metadata table does."""
    return HOODIE in segments(location)


def _yields(said: str) -> Problem:
    remedy = "give another location, or delete one of the two"
    return Problem(InvalidSpecError.name(), f"spec.location: {said}, at it, above or below it; {remedy}")


def _age(identity: Identity) -> tuple[str, str]:
    return identity.created, identity.uid
