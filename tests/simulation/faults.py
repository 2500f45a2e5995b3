"""What becomes of the requests of a simulated process: how long each takes, and which of them meets
a fault.

A script names the faults of a process by the numbers of its requests, from 1. How long a request
takes follows from the script's seed, the process and that number alone, so a fault or an operation
less leaves the rest as it was, as far as that can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from hudi_table.errors import HudiError, OutcomeUnknownError, UnavailableError
from tests.simulation.scheduler import Scheduler, SimProcess

T = TypeVar("T")
KINDS = (
    "crash before",
    "crash after",
    "crash sent",
    "pause before",
    "pause after",
    "lost request",
    "lost reply",
    "late request",
    "throttling",
    "full store",
)
"""What may happen to a request. The figure beside it: seconds of a pause, of lateness or of an
outage."""
CRASHES = ("crash before", "crash after", "crash sent")
LATER_KINDS = ("slow reply", "torn request")
"""More of the kind, drawn apart: so the rest of a seed's script stays as it was before them. A slow
reply tells what was there seconds ago; the next request of several deletions is torn after half of
them."""
WORLD = (
    "listing in pages",
    "clock jump",
    "clock skew",
    "long pause",
    "pinned read",
    "conflict",
    "restart",
    "torn",
    "upgrade",
    "downgrade",
    "refused beside a change",
    "resumed change",
    "earlier version",
)
"""What else a run may meet, counted as it happens."""
TIMEOUT_SECONDS = 30.0
_MASK = (1 << 64) - 1


class Reply:
    """What a request will answer."""

    __slots__ = ("error", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.error: HudiError | None = None


class World(Protocol):
    """What the requests of all processes share."""

    scheduler: Scheduler
    full_until: float
    resting_until: float

    def trace(self, line: str) -> None: ...


@dataclass
class Requests:
    """The requests of one process, which outlive its restarts: their numbers go on."""

    world: World
    name: str
    seed: int
    faults: dict[int, tuple[str, float]]
    spread: float
    counts: Counter[str]
    process: SimProcess | None = None
    number: int = 0
    met: int = 0
    tears: bool = False
    lost: set[str] = field(default_factory=set)

    def fired(self, kind: str) -> None:
        """A fault has happened to this process."""
        self.counts[kind] += 1
        self.met += 1

    def read(self, method: str, path: str, look: Callable[[], T]) -> T:
        """A request that changes nothing: lost, it was not answered."""
        value: T = self._request(method, path, look, look, UnavailableError)
        return value

    def write(
        self, method: str, path: str, change: Callable[[], object], *, part: Callable[[], object] | None = None
    ) -> None:
        """A request that changes something: lost, nobody knows whether it did. `part` of one that
        changes several things is what a torn one has done."""
        if part is not None and self.tears:
            self.tears = False
            self.counts["torn"] += 1
            self.met += 1
            self._request(method, path, part, part, OutcomeUnknownError)
            raise OutcomeUnknownError(f"torn: {method} {path}", path=path)
        self._request(method, path, change, part or change, OutcomeUnknownError)

    def _request(
        self, method: str, path: str, effect: Callable[[], T], partly: Callable[[], T], lost: type[HudiError]
    ) -> T:
        scheduler = self.world.scheduler
        self.number += 1
        kind, figure = self.faults.get(self.number, ("", 0.0))
        sent, answered = self._times(self.number)
        if kind == "slow reply":
            # The process goes on, in its other threads; what it hears is old by then.
            answered += figure
        if kind:
            self.fired(kind)
            self.world.trace(f"{scheduler.now:.6f} {self.name} {self.number} {method} {path}: {kind} {figure:g}\n")
            self._before(kind, figure)
        now = scheduler.now
        reply = Reply()

        def arrive(what: Callable[[], T] = effect) -> None:
            self._arrive(reply, what, method, path)

        if kind in ("crash sent", "late request"):
            delay = figure if lost is OutcomeUnknownError else sent
            scheduler.at(now + delay, lambda: arrive(partly))
            if kind == "crash sent":
                self._die()
            scheduler.sleep(min(TIMEOUT_SECONDS, figure))
            raise lost(f"{kind}: {method} {path}", path=path)
        if kind == "lost request":
            scheduler.sleep(TIMEOUT_SECONDS)
            raise lost(f"{kind}: {method} {path}", path=path)
        if self.world.resting_until > now + sent:
            self.counts["throttled"] += 1
            self.met += 1
            scheduler.sleep(sent)
            raise UnavailableError(f"503: {method} {path}", path=path)
        scheduler.at(now + sent, lambda: arrive(partly if kind in ("lost reply", "crash after") else effect))
        scheduler.sleep(sent + answered)
        self._after(kind, figure)
        if kind == "lost reply":
            raise lost(f"{kind}: {method} {path}", path=path)
        if reply.error is not None:
            raise reply.error
        value: T = reply.value
        return value

    def _arrive(self, reply: Reply, effect: Callable[[], Any], method: str, path: str) -> None:
        try:
            reply.value = effect()
            said = "done"
        except HudiError as error:
            reply.error = error
            said = error.name()
        self.world.trace(f"{self.world.scheduler.now:.6f} {self.name} {method} {path}: {said}\n")

    def _before(self, kind: str, figure: float) -> None:
        scheduler = self.world.scheduler
        if kind == "crash before":
            self._die()
        if kind == "pause before":
            self._pause(figure)
        if kind == "torn request":
            # The next one that can be.
            self.tears = True
        if kind == "throttling":
            self.world.resting_until = max(self.world.resting_until, scheduler.now + figure)
        if kind == "full store":
            self.world.full_until = max(self.world.full_until, scheduler.now + figure)

    def _after(self, kind: str, figure: float) -> None:
        if kind == "crash after":
            self._die()
        if kind == "pause after":
            self._pause(figure)

    def _pause(self, seconds: float) -> None:
        assert self.process is not None
        if seconds > LONG_SECONDS:
            self.counts["long pause"] += 1
        self.process.pause(seconds)
        self.world.scheduler.sleep(0.0)

    def _die(self) -> None:
        assert self.process is not None
        self.process.kill()

    def _times(self, number: int) -> tuple[float, float]:
        """Seconds until it takes effect, and from then to the reply: mostly short, now and then
        long."""
        bits = mixed(self.seed, number)
        sent, answered = (bits & 0xFFFF) / 0xFFFF, (bits >> 16 & 0xFFFF) / 0xFFFF
        if not bits >> 32 & 0x3F:
            sent *= 100.0
        return 0.001 + self.spread * sent, 0.001 + self.spread * answered


LONG_SECONDS = 3_600.0


def mixed(seed: int, number: int) -> int:
    """64 bits that follow from two numbers."""
    bits = (seed * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
    return bits ^ (bits >> 31)
