"""Whether the process does its work (`alive`: if not, only a new process can), and whether it could
lead (`ready`).

A limit is passed only by what never ends by itself. An operator that is merely slow, or whose API
server or store does not answer, is not ended: a restart would make it slower. One that loses the
Lease ends by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hudi_operator.api.words import one_line
from hudi_operator.kube.lease import Election
from hudi_operator.runtime.operator import Operator
from hudi_operator.runtime.watch_check import Hearing
from hudi_table.table.store.ports import Clock

SAID_MAX, SAID_LENGTH_MAX = 20, 300


@dataclass(frozen=True, slots=True)
class Limits:
    """In seconds."""

    reconcile: float = 900.0
    queue: float = 900.0
    behind: float = 40.0
    election: float = 120.0
    answer: float = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    good: bool
    said: str


@dataclass
class Health:
    """Reads the parts of the process; keeps nothing but whether it leads."""

    operator: Operator
    election: Election
    hearing: Hearing
    clock: Clock
    limits: Limits = field(default_factory=Limits)
    leading: bool = False

    def alive(self) -> list[Check]:
        """For the liveness probe."""
        # Before the first attempt the process is young: that is no fault.
        tried = self._since(self.election.attempted_at, 0.0)
        lease = Check("lease", tried <= self.limits.election, f"the Lease was last asked for {tried:.0f} s ago")
        return [lease, *([self._workers(), self._queue(), self._watch()] if self.leading else [])]

    def ready(self) -> list[Check]:
        """For the readiness probe. One that waits for the Lease is ready when it could take it: a
        Deployment that is rolled out ends the old leader only when the new process is ready."""
        answered = self._since(self.election.answered_at, math.inf)
        role = "leads" if self.leading else "waits for the Lease"
        said = f"{role}; the API server answered {answered:.0f} s ago"
        found = [Check("lease", answered <= self.limits.answer, said)]
        if self.leading:
            found.append(Check("listed", self.hearing.listed, "all resources that were there at the start are known"))
            found.append(self._namespaces())
        else:
            found.append(Check("permitted", self.hearing.permitted, "the resources may be listed"))
        return found

    def _workers(self) -> Check:
        """One that ended is replaced, and one whose reconcile lasts too long is stood in for; only
        a new process helps when nobody is left."""
        working, wanted = self.operator.workers.working(self.limits.reconcile), self.operator.workers.wanted
        key, seconds = max(self.operator.workers.reconciles(), key=lambda pair: pair[1], default=(None, 0.0))
        pair = "" if key is None else f"; {key} is being reconciled for {seconds:.0f} s"
        return Check("workers", working > 0, f"{working} of {wanted} are free or at work{pair}")

    def _namespaces(self) -> Check:
        """One that is missing is somebody's affair, and no fault of this process."""
        missing = sorted(self.hearing.missing().items())
        unheard = [
            f"{place or 'any'} is not heard: {one_line(why, SAID_LENGTH_MAX)}" for place, why in missing[:SAID_MAX]
        ]
        more = [f"and {len(missing) - SAID_MAX} more"] if len(missing) > SAID_MAX else []
        return Check("namespaces", True, "; ".join([*unheard, *more]) or "all are heard")

    def _queue(self) -> Check:
        """A long queue that moves is load; one that does not is a fault."""
        depth, oldest = self.operator.queue.waiting()
        still = self.operator.queue.clock() - self.operator.workers.last_reconciled
        good = oldest <= self.limits.queue or still <= self.limits.queue
        return Check("queue", good, f"{depth} due, the first for {oldest:.0f} s; a reconcile ended {still:.0f} s ago")

    def _watch(self) -> Check:
        behind = self.hearing.behind_seconds()
        said = "brings what is there" if not behind else f"has not brought a change for {behind:.0f} s"
        return Check("watch", behind <= self.limits.behind, said)

    def _since(self, moment: float | None, never: float) -> float:
        return self.clock.boot_seconds() - moment if moment is not None else never
