"""The audit log of an API server: who asked for what, and what the answer was."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
"""Every request, without its body."""


class Right(NamedTuple):
    """A verb on a resource, as a rule grants it."""

    group: str
    resource: str
    verb: str


@dataclass
class AuditLog:
    """The log as the API server writes it; what was read of it once is kept."""

    path: Path
    _known: list[dict[str, Any]] = field(default_factory=list, repr=False)
    _read: int = 0

    def of(self, user: str) -> list[dict[str, Any]]:
        """What a user asked for, in the order of the answers."""
        return [event for event in self._events() if event["user"]["username"] == user]

    def refused(self, user: str) -> list[str]:
        """What a user was refused for want of rights."""
        return [
            f"{event['verb']} {event['requestURI']}: {event['responseStatus'].get('message')}"
            for event in self.of(user)
            if event.get("responseStatus", {}).get("code") == HTTPStatus.FORBIDDEN
        ]

    def used(self, user: str, namespace: str | None = None) -> set[Right]:
        """The rights that a user made use of, in one namespace or anywhere."""
        found = set()
        for event in self.of(user):
            to = event.get("objectRef", {})
            if "resource" in to and namespace in (None, to.get("namespace")):
                resource = "/".join(filter(None, (to["resource"], to.get("subresource"))))
                found.add(Right(to.get("apiGroup", ""), resource, event["verb"]))
        return found

    def _events(self) -> list[dict[str, Any]]:
        with self.path.open("rb") as log:
            log.seek(self._read)
            # Without the line that is being written.
            whole = log.read().rpartition(b"\n")[0]
        if whole:
            self._read += len(whole) + 1
            self._known += map(json.loads, whole.splitlines())
        return self._known


def granted(rules: list[dict[str, Any]]) -> set[Right]:
    """The rights of a Role's rules."""
    return {
        Right(group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
