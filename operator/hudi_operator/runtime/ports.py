"""The ports of the reconcile loop: `Cluster`, what it needs of an API server (the local runtime
keeps the same in a folder), and `Meter`, who counts what it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hudi_operator.api.resources import DesiredTable, Key
from hudi_operator.plan.effects import Emit, RequeueAfter
from hudi_operator.plan.observed import CallbackObservation


class Cluster(Protocol):
    """Resources as documents, their status, events and secrets."""

    def keys(self) -> list[Key]:
        """Every resource of our kinds, sorted."""
        ...

    def about(self, namespace: str, table: str) -> list[Key]:
        """The HudiTable of this name, if there is one, and the TableServices that refer to it,
        sorted."""
        ...

    def sharing(self, key: Key) -> list[Key]:
        """The other HudiTables that lie where this one does, or above or below it, sorted."""
        ...

    def followers(self, key: Key) -> list[Key]:
        """The HudiTables of the same namespace that take in what changes in this one, sorted."""
        ...

    def upstreams(self, key: Key) -> list[Key]:
        """The HudiTables of the same namespace of which this one takes in what changes, sorted."""
        ...

    def get(self, key: Key) -> Mapping[str, Any] | None:
        """The stored document with uid and generation, or None."""
        ...

    def set_status(self, key: Key, status: Mapping[str, Any]) -> None:
        """Write the status; nothing happens if it is the same, or if the resource is gone."""
        ...

    def hold(self, key: Key, *, held: bool) -> None:
        """Hold a resource back when it is deleted, or let go of it; nothing happens if it is so, or
        if the resource is gone."""
        ...

    def may_let_go(self) -> bool:
        """Whether we can let go of a resource whatever becomes of its namespace, the rights that we
        have there among it."""
        ...

    def emit(self, key: Key, event: Emit) -> None:
        """Record an event of the resource."""
        ...

    def secret(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """Decoded values of a Secret, or None if there is none."""
        ...


class TableCluster(Cluster, Protocol):
    """A cluster in which HudiTables are made."""

    def members(self, key: Key) -> list[Mapping[str, Any]]:
        """The HudiTables that bear the label of a set, sorted by name."""
        ...

    def make(self, document: Mapping[str, Any]) -> None:
        """Make a resource. Raises ObjectExistsError if its name is taken."""
        ...

    def change(self, document: Mapping[str, Any]) -> None:
        """Replace a resource, if it is as its `resourceVersion` says; else ObjectExistsError."""
        ...

    def remove(self, key: Key, uid: str) -> None:
        """Delete the resource of this uid; nothing happens if it is gone."""
        ...


class Sets(Protocol):
    """Who reconciles HudiTableSets."""

    def reconcile(self, document: Mapping[str, Any]) -> RequeueAfter | None:
        """Bring one nearer to what its manifest says; when to do it again."""
        ...

    def forget(self, key: Key) -> None:
        """One is gone."""
        ...


class NoSets:
    """Where there are none."""

    def reconcile(self, document: Mapping[str, Any]) -> None:
        """Nothing."""

    def forget(self, key: Key) -> None:
        """Nothing."""


class Meter(Protocol):
    """Counts what happens. Called by several threads at once."""

    def reconciled(self, key: Key, seconds: float, error: str | None) -> None:
        """A reconcile of a resource has ended, well or with the named error."""
        ...

    def reported(self, key: Key, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """The status of a resource was `before` and is `after` now."""
        ...


class Couriers(Protocol):
    """Who delivers the callbacks of tables."""

    def attend(self, desired: DesiredTable) -> tuple[CallbackObservation, ...] | None:
        """Deliver what the manifest asks for, and no more; how far each callback is. None if nobody
        delivers."""
        ...

    def forget(self, key: Key) -> None:
        """A table is gone, or going."""
        ...


class NoCouriers:
    """Where nobody delivers."""

    def attend(self, desired: DesiredTable) -> None:
        """Nothing."""

    def forget(self, key: Key) -> None:
        """Nothing."""


class NoMeter:
    """Where nobody counts."""

    def reconciled(self, key: Key, seconds: float, error: str | None) -> None:
        """Nothing."""

    def reported(self, key: Key, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Nothing."""
