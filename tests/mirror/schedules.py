"""The faults, and what each engine is told while they happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

STOP_SECONDS = 45.0
"""Past the time-outs that both engines are given where a process is stopped."""
LATE_SECONDS = (1.0, 3.0, 8.0)
BURST = 15
PROVIDER = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"


class How(StrEnum):
    """What a round does."""

    AT_REQUEST = "at a request"
    AT_A_TIME = "at a time"
    FULL = "full"
    STOPPED = "stopped"
    TWO = "two"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kind of fault. `faults`: those of the proxy, of which a round draws one. `ours`, `hudi`:
    options beside the defaults. `documented`: what Apache Hudi's documentation says of it."""

    name: str
    what: str
    how: How
    faults: tuple[str, ...] = ()
    locked: bool = False
    ours: Mapping[str, str] = field(default_factory=dict)
    hudi: Mapping[str, str] = field(default_factory=dict)
    documented: str = ""

    @property
    def needs_another(self) -> bool:
        """Whether a round needs a second process, or one in the place of one that is killed."""
        return self.how in (How.AT_A_TIME, How.STOPPED, How.TWO) or "kill before" in self.faults


MANY = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
"""What Apache Hudi asks of each writer that has others beside it, with a lock."""
BEATS = {"hoodie.client.heartbeat.interval_in_ms": "5000", "hoodie.client.heartbeat.tolerable.misses": "2"}
TIMES = {"hoodie.lakeops.txn.suspect.seconds": "30", "hoodie.lakeops.txn.quarantine.seconds": "60"}

SCHEDULES = (
    Schedule("killed at a time", "SIGKILL at a random time of a write and the services after it", How.AT_A_TIME),
    Schedule(
        "killed at a request",
        "SIGKILL at a random request that changes something, before the store gets it or behind its answer",
        How.AT_REQUEST,
        ("kill before", "kill after"),
    ),
    Schedule(
        "answer lost",
        "the request is carried out, and the connection ends without an answer",
        How.AT_REQUEST,
        ("lost answer",),
    ),
    Schedule(
        "late",
        "the connection ends, and the request reaches the store 1, 3 or 8 seconds later, behind its repetition",
        How.AT_REQUEST,
        ("late",),
    ),
    Schedule(
        "doubled",
        "the request reaches the store twice, and the second answer comes back",
        How.AT_REQUEST,
        ("doubled",),
    ),
    Schedule("refusals", f"{BURST} requests in a row are answered with 503 SlowDown", How.AT_REQUEST, ("burst",)),
    Schedule("reset", "the connection is reset before the store gets the request", How.AT_REQUEST, ("reset",)),
    Schedule("store full", "the store has no room, or nearly none, for one write; then it has again", How.FULL),
    Schedule(
        "stopped",
        f"SIGSTOP at a random request for {STOP_SECONDS:.0f} seconds, past every time-out, while another writes; then SIGCONT. Both under one lock",
        How.STOPPED,
        ("stop",),
        locked=True,
        ours=TIMES,
        hudi=MANY | BEATS,
    ),
    Schedule(
        "two at once, no lock",
        "two writers update the same keys at once, and nobody is told of the other",
        How.TWO,
        documented="Hudi [documents](https://hudi.apache.org/docs/concurrency_control) that writers beside each other need a concurrency mode and a lock: this is outside of what it promises",
    ),
    Schedule(
        "two at once, one lock",
        "two writers update the same keys at once under the lock of one ZooKeeper",
        How.TWO,
        locked=True,
        hudi=MANY,
    ),
)


def lock_of(address: str, key: str) -> dict[str, str]:
    """The lock of one table, for both engines."""
    return {
        "hoodie.write.lock.provider": PROVIDER,
        "hoodie.write.lock.zookeeper.url": address,
        "hoodie.write.lock.zookeeper.base_path": "/mirror",
        "hoodie.write.lock.zookeeper.lock_key": key,
        "hoodie.write.lock.zookeeper.session_timeout_ms": "10000",
        "hoodie.write.lock.wait_time_ms": "60000",
    }
