"""Several clients of one storage lock in simulated time, whatever the store loses or delays: two of
them never trust the lock at once."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hudi_table.errors import HudiError, ObjectExistsError, OutcomeUnknownError
from hudi_table.table.locks.storage import HeldStorageLock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.owned.versioned import Version, VersionedObjects, versioned_objects
from tests.support.lock_clients import SharedTime, SkewedClock
from tests.support.scale import scaled

CLIENTS = 4
VALIDITY = 10.0
FATES = ("done", "done", "done", "done, reply lost", "not done, reply lost", "later, reply lost")


@dataclass
class Store:
    """A store that decides what becomes of a write: `fates` are used up in order, then all is
    done."""

    inner: VersionedObjects
    fates: list[str] = field(default_factory=list)
    late: list[Callable[[], Version]] = field(default_factory=list)
    meanwhile: Callable[[], None] | None = None

    def get(self, path: str) -> tuple[bytes, Version]:
        found = self.inner.get(path)
        self._others_act()
        return found

    def create(self, path: str, data: bytes) -> Version:
        return self._write(lambda: self.inner.create(path, data))

    def replace(self, path: str, data: bytes, version: Version) -> Version:
        return self._write(lambda: self.inner.replace(path, data, version))

    def put(self, path: str, data: bytes) -> None:
        self.inner.put(path, data)

    def deliver(self) -> None:
        with contextlib.suppress(ObjectExistsError):
            self.late.pop(0)()

    def _write(self, write: Callable[[], Version]) -> Version:
        self._others_act()
        fate = self.fates.pop(0) if self.fates else "done"
        if fate == "done":
            return write()
        if fate.startswith("done"):
            write()
        elif fate.startswith("later"):
            self.late.append(write)
        raise OutcomeUnknownError("lost")

    def _others_act(self) -> None:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()


class Clients(RuleBasedStateMachine):
    @initialize(skews=st.lists(st.floats(-0.25, 0.25), min_size=CLIENTS, max_size=CLIENTS))
    def begin(self, skews: list[float]) -> None:
        self.time = SharedTime()
        self.store = Store(versioned_objects(open_storage(f"memory://{uuid.uuid4().hex}")))
        self.clocks = [SkewedClock(self.time, skew) for skew in skews]
        self.clients = [self.fresh(one) for one in range(CLIENTS)]

    def fresh(self, one: int) -> HeldStorageLock:
        return HeldStorageLock(self.store, self.clocks[one], VALIDITY)

    def quietly(self, step: Callable[[], object]) -> None:
        with contextlib.suppress(HudiError):
            step()

    @rule(seconds=st.one_of(st.floats(0, 1), st.sampled_from([2.0, 5.0, 9.5, 10.0, 10.3, 11.0])))
    def pass_time(self, seconds: float) -> None:
        self.time.seconds += seconds

    @rule(one=st.integers(0, CLIENTS - 1))
    def acquire(self, one: int) -> None:
        if not self.clients[one].valid():
            self.clients[one] = self.fresh(one)
            self.quietly(self.clients[one].attempt)

    @rule(one=st.integers(0, CLIENTS - 1))
    def acquire_further(self, one: int) -> None:
        """As one does that waits, with the owner that it has."""
        if not self.clients[one].valid():
            self.quietly(self.clients[one].attempt)

    @rule(one=st.integers(0, CLIENTS - 1))
    def renew(self, one: int) -> None:
        self.quietly(self.clients[one].renew)

    @rule(one=st.integers(0, CLIENTS - 1))
    def release(self, one: int) -> None:
        self.quietly(self.clients[one].release)
        self.clients[one] = self.fresh(one)

    @rule(fate=st.sampled_from(FATES))
    def decide(self, fate: str) -> None:
        self.store.fates.append(fate)

    @rule(one=st.integers(0, CLIENTS - 1), seconds=st.sampled_from([0.0, 0.4, 10.0, 10.6]), how=st.booleans())
    def act_within_the_next_request(self, one: int, seconds: float, how: bool) -> None:
        def act() -> None:
            self.time.seconds += seconds
            self.quietly(self.clients[one].renew if how else self.clients[one].attempt)

        self.store.meanwhile = act

    @precondition(lambda self: self.store.late)
    @rule()
    def deliver_a_late_request(self) -> None:
        self.store.deliver()

    @invariant()
    def one_at_most_trusts_the_lock(self) -> None:
        assert sum(client.valid() for client in self.clients) <= 1


Clients.TestCase.settings = settings(max_examples=scaled(60), stateful_step_count=40, deadline=None)
TestStorageLock = Clients.TestCase
