"""The Cluster port: what the reconcile loop needs of an API server. The local runtime keeps the same in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hudi_operator.api.resources import Key
from hudi_operator.plan.effects import Emit


class Cluster(Protocol):
    """Resources as documents, their status, events and secrets."""

    def keys(self) -> list[Key]:
        """Every resource of our kinds, sorted."""
        ...

    def get(self, key: Key) -> Mapping[str, Any] | None:
        """The stored document with uid and generation, or None."""
        ...

    def set_status(self, key: Key, status: Mapping[str, Any]) -> None:
        """Write the status; nothing happens if it is the same, or if the resource is gone."""
        ...

    def emit(self, key: Key, event: Emit) -> None:
        """Record an event of the resource."""
        ...

    def secret(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """Decoded values of a Secret, or None if there is none."""
        ...
