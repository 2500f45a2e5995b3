"""What tests of sets are made of: topics that are there, HudiTables that a plan has asked for, and
how they fare."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import DesiredSet, Key, desired_set, with_defaults
from hudi_operator.api.schema import to_document
from hudi_operator.api.table_set import HudiTableSetStatus
from hudi_operator.plan.effects import ChangeTable, Emit, MakeTable, RemoveTable, RequeueAfter, SetStatus
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.table_sets.plan import ObservedSet, plan_set
from tests.support.manifests import manifest, stored
from tests.support.plans import NOW
from tests.support.set_manifests import set_spec

NAME = "shop"
WRITES = (MakeTable, ChangeTable, RemoveTable)


def condition(status: str, reason: str, message: str = "so it is") -> dict[str, Any]:
    return {
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }  # fmt: skip


@dataclass
class Story:
    """A set from look to look: what it asks for is done, as an API server does it, but for what is
    `refused`."""

    spec: dict[str, Any] = field(default_factory=set_spec)
    listed: tuple[str, ...] | None = ()
    problem: Problem | None = None
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    strangers: frozenset[str] = frozenset()
    refused: Mapping[str, Problem] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...] | Problem] = field(default_factory=dict)
    generation: int = 1
    now: datetime = NOW
    status: HudiTableSetStatus = field(default_factory=HudiTableSetStatus)
    events: list[Emit] = field(default_factory=list)
    wait: float = 0.0

    @property
    def desired(self) -> DesiredSet:
        document = stored(manifest(NAME, "HudiTableSet", **self.spec), generation=self.generation)
        return replace(desired_set(document), status=self.status)

    def look(self) -> list[Any]:
        """One look: what it writes, which is done at once."""
        members = tuple(self.tables[name] for name in sorted(self.tables))
        seen = ObservedSet(self.listed, self.problem, members, self.strangers, self.refused, self.keys)
        effects = plan_set(self.desired, seen, self.now)
        (status,) = [effect.status for effect in effects if isinstance(effect, SetStatus)]
        found, errors = parse(HudiTableSetStatus, status, "status")
        assert not errors
        assert found is not None
        self.status = found
        self.events += [effect for effect in effects if isinstance(effect, Emit)]
        (again,) = [effect for effect in effects if isinstance(effect, RequeueAfter)]
        self.wait = again.seconds
        writes = [effect for effect in effects if isinstance(effect, WRITES)]
        for write in writes:
            self._done(write)
        return writes

    def settles(self, ready: str = "True") -> Story:
        """Look until nothing is written; every table is as ready as that."""
        for _ in range(4):
            if not self.look():
                break
            for name in self.tables:
                self.fares(name, ready)
        assert not self.look()
        return self

    def fares(self, name: str, ready: str, reason: str = "TableReadable", message: str = "so it is") -> None:
        """A table's own status."""
        status = {"observedGeneration": 99, "conditions": [condition(ready, reason, message)]}
        self.tables[name] = {**self.tables[name], "status": status}

    def passes(self, **time: float) -> None:
        """Time goes by."""
        self.now += timedelta(**time)

    def _done(self, write: MakeTable | ChangeTable | RemoveTable) -> None:
        if isinstance(write, RemoveTable):
            assert self.tables[write.name]["metadata"]["uid"] == write.uid
            del self.tables[write.name]
            return
        document = copy.deepcopy(dict(write.document))
        name = document["metadata"]["name"]
        assert (name in self.tables) == isinstance(write, ChangeTable)
        document["metadata"] = {"uid": f"uid-{name}", "generation": 1, **document["metadata"]}
        document["spec"] = with_defaults("HudiTable", document["spec"])
        before = self.tables.get(name, {})
        self.tables[name] = {**document, **({"status": before["status"]} if "status" in before else {})}

    def condition(self, kind: str) -> tuple[str, str]:
        return next(((c.status, c.reason) for c in self.status.conditions if c.type == kind), ("", ""))

    def message(self, kind: str) -> str:
        return next((c.message for c in self.status.conditions if c.type == kind), "")

    def locations(self) -> dict[str, str]:
        return {name: table["spec"]["location"] for name, table in self.tables.items()}

    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]


def story(topics: Sequence[str], table: dict[str, Any] | None = None, /, **changes: Any) -> Story:
    """A set of such topics."""
    return Story(set_spec(table, **changes), tuple(topics))


def written(found: Story) -> Any:
    """The status as it is stored."""
    return to_document(found.status)


KEY = Key("HudiTableSet", "default", NAME)
