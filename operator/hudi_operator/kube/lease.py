"""Which of several operators works: a Lease that its holder renews. Clocks of machines are never
compared.

A candidate takes the Lease over when it has not changed for its whole duration by the candidate's
own clock. Whoever could not renew for two thirds of the duration must stop before another may
begin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hudi_operator.kube.rest import Document, Rest
from hudi_table.errors import HudiError, ObjectExistsError, ObjectNotFoundError
from hudi_table.table.store.ports import Clock

DURATION_SECONDS = 12
RENEW_SHARE, GIVE_UP_SHARE, TRY_SHARE = 1 / 3, 2 / 3, 1 / 6


@dataclass
class Election:
    """One candidate. `attempt` is called every few seconds and says whether this candidate leads
    now.

    `attempted_at`, `answered_at`: when it last tried, and when the API server last answered, in
    seconds since boot.
    """

    rest: Rest
    clock: Clock
    namespace: str
    name: str
    identity: str
    duration: int = DURATION_SECONDS
    attempted_at: float | None = None
    answered_at: float | None = None
    _seen: str = ""
    _seen_at: float = 0.0
    _renewed_at: float | None = field(default=None)

    @property
    def pause_seconds(self) -> float:
        """How long to wait between two attempts: one that does not lead looks more often."""
        return self.duration * (TRY_SHARE if self._renewed_at is None else RENEW_SHARE)

    def attempt(self) -> bool:
        """Renew the Lease, or take it if it is free. Once this has been false for a leader, it must
        not work any more."""
        began = self.attempted_at = self.clock.boot_seconds()
        try:
            held = self._taken(began)
            self.answered_at = began
        except HudiError:
            # Nobody else can have taken it before its duration has passed.
            return self._renewed_at is not None and began - self._renewed_at < self.duration * GIVE_UP_SHARE
        self._renewed_at = began if held else None
        return held

    def release(self) -> None:
        """Let another one begin at once."""
        try:
            found = self.rest.get(self._path)
            if self._renewed_at is not None and found["spec"].get("holderIdentity") == self.identity:
                self.rest.replace(self._path, {**found, "spec": {**found["spec"], "holderIdentity": None}})
        except HudiError:
            return
        finally:
            self._renewed_at = None

    def _taken(self, now: float) -> bool:
        try:
            lease = self.rest.get(self._path)
        except ObjectNotFoundError:
            return self._wrote(lambda: self.rest.create(self._leases, self._body({}, 0)))
        spec = lease.get("spec", {})
        holder, version = spec.get("holderIdentity"), lease["metadata"]["resourceVersion"]
        if version != self._seen:
            self._seen, self._seen_at = version, now
        lasts = now - self._seen_at < (spec.get("leaseDurationSeconds") or self.duration)
        if holder and holder != self.identity and lasts:
            return False
        changes = int(spec.get("leaseTransitions") or 0) + (holder != self.identity)
        return self._wrote(lambda: self.rest.replace(self._path, self._body(lease["metadata"], changes, spec)))

    def _wrote(self, write: Callable[[], Document]) -> bool:
        try:
            self._seen = write()["metadata"]["resourceVersion"]
        except ObjectExistsError:
            return False
        self._seen_at = self.clock.boot_seconds()
        return True

    def _body(self, metadata: Document, changes: int, before: Document | None = None) -> dict[str, Any]:
        now = _micro(self.clock.now())
        mine = before is not None and before.get("holderIdentity") == self.identity
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, "name": self.name, "namespace": self.namespace},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": self.duration,
                "acquireTime": before.get("acquireTime", now) if mine and before is not None else now,
                "renewTime": now,
                "leaseTransitions": changes,
            },
        }

    @property
    def _leases(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    @property
    def _path(self) -> str:
        return f"{self._leases}/{self.name}"


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
