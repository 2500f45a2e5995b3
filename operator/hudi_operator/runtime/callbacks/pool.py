"""All couriers of an operator: a few threads give each its turn when it is due.

A receiver that does not answer costs a thread some seconds, and waits longer after each failure. So
many that fail leave threads for those that do not.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hudi_operator.api.resources import DesiredTable, Key
from hudi_operator.plan.observed import CallbackObservation, Problem
from hudi_operator.plan.status.callbacks import RECEIVER_FAILS
from hudi_operator.runtime.callbacks.courier import BACKOFF_MAX_SECONDS, Courier, Tools
from hudi_operator.runtime.ports import Cluster
from hudi_table.callbacks.receivers import Allowed
from hudi_table.errors import InvariantError
from hudi_table.table.store.ports import Clock

THREADS = 8
JITTER = 0.2
IDLE_SECONDS = 5.0
_log = logging.getLogger(__name__)
Name = tuple[Key, str]


@dataclass
class CourierPool:
    """`Couriers` by threads, which begin with the first callback."""

    cluster: Cluster
    clock: Clock
    allowed: Allowed
    wake: Callable[[Key], None]
    threads: int = THREADS
    _couriers: dict[Name, Courier] = field(default_factory=dict)
    _due: dict[Name, float] = field(default_factory=dict)
    _started: int = 0
    _stopped: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def attend(self, desired: DesiredTable) -> tuple[CallbackObservation, ...] | None:
        """Deliver what the manifest asks for; of one that is wrong what the one before did goes
        on."""
        key, spec = desired.identity.key, desired.spec
        with self._changed:
            if spec is None or desired.errors or desired.identity.deleted:
                return tuple(each.seen for (table, _), each in self._couriers.items() if table == key)
            wanted = {(key, each.name): each for each in spec.callbacks}
            self._drop(name for name in [*self._couriers] if name[0] == key and name not in wanted)
            for name, callback in wanted.items():
                known = self._couriers.get(name)
                if known is not None and known.desired.identity.uid == desired.identity.uid and known.spec == callback:
                    known.desired = desired
                    continue
                self._drop([name])
                self._couriers[name] = Courier(
                    Tools(self.cluster, self.clock, self.allowed, self.wake), desired, callback
                )
                self._due[name] = self.clock.boot_seconds()
            self._changed.notify_all()
            self._begin()
            return tuple(self._couriers[name].seen for name in wanted)

    def forget(self, key: Key) -> None:
        """A table is gone, or going: what is under way ends with the event that is being sent."""
        with self._changed:
            self._drop(name for name in [*self._couriers] if name[0] == key)

    def stop(self) -> None:
        """Begin no more turn."""
        with self._changed:
            self._stopped = True
            for courier in self._couriers.values():
                courier.ended = True
            self._changed.notify_all()

    def _drop(self, names: Iterable[Name]) -> None:
        for name in names:
            courier = self._couriers.pop(name, None)
            self._due.pop(name, None)
            if courier is not None:
                courier.ended = True

    def _begin(self) -> None:
        while self._started < min(self.threads, len(self._couriers)):
            self._started += 1
            threading.Thread(target=self._work, name=f"courier-{self._started}", daemon=True).start()

    def _work(self) -> None:
        while True:
            taken = self._take()
            if taken is None:
                return
            name, courier = taken
            wait = self._turn(courier)
            with self._changed:
                if self._couriers.get(name) is courier:
                    self._due[name] = self.clock.boot_seconds() + wait * (1 + JITTER * random.random())  # noqa: S311 - spreads moments
                    self._changed.notify()

    def _take(self) -> tuple[Name, Courier] | None:
        """The courier that has been due for longest, which nobody else has then; None at the
        end."""
        with self._changed:
            while not self._stopped:
                now = self.clock.boot_seconds()
                name = min(self._due, key=self._due.__getitem__, default=None)
                if name is not None and self._due[name] <= now:
                    del self._due[name]
                    return name, self._couriers[name]
                self._changed.wait(IDLE_SECONDS if name is None else min(IDLE_SECONDS, self._due[name] - now))
            return None

    def _turn(self, courier: Courier) -> float:
        try:
            return courier.turn()
        except BaseException as error:  # noqa: BLE001 - a fault in one turn, a panic below it too, must not end the thread of all others
            # What it says may hold a value of a Secret.
            _log.error("callback %s of %s: %s", courier.spec.name, courier.desired.identity.key, type(error).__name__)
            said = f"its turn ended in {type(error).__name__}: a fault of the operator, {InvariantError.name()}"
            courier.seen = CallbackObservation(
                courier.spec.name, courier.seen.position, problem=Problem(RECEIVER_FAILS, said)
            )
            return BACKOFF_MAX_SECONDS
