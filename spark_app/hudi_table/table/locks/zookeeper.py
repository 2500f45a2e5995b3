"""The lock of Apache Hudi's `ZookeeperBasedLockProvider`: nodes as Curator's mutex makes them.

Curator orders them by what stands behind `lock-`, so the nodes of kazoo's own recipe, which have
another name, would not queue with Hudi's: the recipe is written here, kazoo is the client. Each
holding has a session of its own, so the server takes the lock back as soon as that ends.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from hudi_table.errors import AccessDeniedError, HudiError, InvalidRequestError, UnavailableError
from hudi_table.model.options.lock_settings import ZooKeeperLockSettings
from hudi_table.table.locks.lease import Lease, lost, wait
from hudi_table.table.store import threads
from hudi_table.table.store.ports import Clock

T = TypeVar("T")
_MARK = "lock-"
_DATA = b"application_id=hudi_table"
_LOOKS = 5.0
"""Seconds between two looks at the queue, if the server sends no word."""


def place(children: list[str], node: str) -> tuple[int, str | None]:
    """(how many are before a node, the one just before it), as Curator orders them."""
    ordered = sorted(children, key=lambda name: name.rpartition(_MARK)[2])
    at = ordered.index(node)
    return at, ordered[at - 1] if at else None


class ZooKeeperLock:
    """The lock at the path of the settings."""

    def __init__(self, clock: Clock, settings: ZooKeeperLockSettings, *, pause: float) -> None:
        self._clock = clock
        self._settings = settings
        self._pause = pause

    def acquire(self, patience: float) -> HeldZooKeeperLock:
        """Take it within so many seconds, also from a server that is away for a while."""
        end = self._clock.boot_seconds() + patience
        what = f"the lock {self._settings.path} of ZooKeeper"
        return wait(lambda: self._queued(end), self._clock, patience=patience, pause=self._pause, what=what)

    def _queued(self, end: float) -> HeldZooKeeperLock:
        client = _client(self._settings)
        held = HeldZooKeeperLock(client, self._clock, self._settings)
        try:
            _asked(lambda: client.start(timeout=self._settings.connection_timeout), self._settings)
            held.enter_queue()
            held.wait_in_queue(end)
        except BaseException:
            held.release()
            raise
        return held


class HeldZooKeeperLock:
    """A node of a session."""

    def __init__(self, client: Any, clock: Clock, settings: ZooKeeperLockSettings) -> None:
        self._client = client
        self._clock = clock
        self._settings = settings
        self._lease = Lease(clock, settings.session_timeout)
        self._name: str | None = None
        self._session = 0
        self._ended = False
        self._what = f"the lock {settings.path} of ZooKeeper"
        self._negotiate()
        client.add_listener(self._hear)

    def enter_queue(self) -> None:
        """Make the node. Its name has a token, by which it is found again if the reply is lost."""
        token = f"_c_{uuid.uuid4()}-{_MARK}"
        path = self._settings.path
        self._ask("ensure_path", path)
        try:
            made = self._ask("create", f"{path}/{token}", _DATA, ephemeral=True, sequence=True)
            self._name = made.rpartition("/")[2]
        except UnavailableError:
            found = [name for name in self._ask("get_children", path) if name.startswith(token)]
            if not found:
                raise
            self._name = found[0]
        self._session = self._client.client_id[0]

    def wait_in_queue(self, end: float) -> None:
        """Return when no node is before ours. Raises UnavailableError at the end."""
        while True:
            sent = self._lease.sending()
            children = self._ask("get_children", self._settings.path)
            if self._name is None or self._name not in children:
                raise UnavailableError(f"the session of ZooKeeper for {self._what} ended as we waited: try again")
            ahead, before = place(children, self._name)
            if before is None:
                self._lease.granted(sent)
                return
            left = end - self._clock.boot_seconds()
            if left <= 0:
                raise UnavailableError(f"{ahead} others are before us, the next is {before}")
            self._wait_for_the_end_of(before, min(left, _LOOKS))

    def _wait_for_the_end_of(self, name: str, seconds: float) -> None:
        gone = threads.event()
        if self._ask("exists", self._node(name), watch=lambda _: gone.set()) is not None:
            gone.wait(seconds)

    def valid(self) -> bool:
        """Whether the server cannot have ended the session yet, and has not said that it did."""
        return not self._ended and self._lease.lasts()

    def lease_seconds(self) -> float:
        """For how long a renewal lasts."""
        return self._lease.seconds

    def renew(self) -> None:
        """Ask the server for the node, which lengthens the session."""
        if self._ended or self._name is None:
            self._ended = True
            raise lost(self._what, "its session has ended")
        sent = self._lease.sending()
        found = self._ask("exists", self._node(self._name))
        if found is None or found.owner_session_id != self._session:
            self._ended = True
            raise lost(self._what, "the server has ended its session")
        self._lease.granted(sent)

    def release(self) -> None:
        """Delete the node and end the session."""
        self._ended = True
        self._lease.end()
        if self._name is not None and self._client.connected:
            with contextlib.suppress(HudiError):
                self._ask("delete", self._node(self._name))
        with contextlib.suppress(HudiError):
            _asked(self._client.stop, self._settings)
            _asked(self._client.close, self._settings)

    def _hear(self, state: str) -> None:
        """A lost session never comes back: kazoo begins another."""
        if state == "LOST":
            self._ended = True

    def _node(self, name: str) -> str:
        return f"{self._settings.path}/{name}"

    def _negotiate(self) -> None:
        """Note the session's time at each connection: a server gives no more than its own greatest,
        40 seconds if nobody set it, where Hudi asks for 60. kazoo keeps it to itself, but for the
        time for which it reads, two thirds of it."""
        connection = self._client._connection
        connect = connection._connect

        def noting(*args: Any, **options: Any) -> Any:
            found = connect(*args, **options)
            self._lease.seconds = found[0] / 2 * 3 / 1000
            return found

        connection._connect = noting

    def _ask(self, name: str, *args: Any, **options: Any) -> Any:
        """The reply to a request of kazoo's. By itself kazoo waits for one as long as it takes to
        be connected again."""
        request = getattr(self._client, f"{name}_async")
        seconds = self._settings.connection_timeout
        return _asked(lambda: request(*args, **options).get(timeout=seconds), self._settings)


def _client(settings: ZooKeeperLockSettings) -> Any:
    try:
        from kazoo.client import KazooClient
    except ImportError as error:
        raise InvalidRequestError(
            "a lock of ZooKeeper needs kazoo: pip install 'hudi-table[zookeeper]' brings it"
        ) from error
    return KazooClient(hosts=settings.hosts, timeout=settings.session_timeout)


def _asked(request: Callable[[], T], settings: ZooKeeperLockSettings) -> T:
    from kazoo.exceptions import AuthFailedError, KazooException, NoAuthError
    from kazoo.handlers.threading import KazooTimeoutError

    try:
        return request()
    except (NoAuthError, AuthFailedError) as error:
        raise AccessDeniedError(f"ZooKeeper at {settings.hosts} does not let us at {settings.path}") from error
    except (KazooException, KazooTimeoutError, OSError) as error:
        raise _unanswered(error, settings) from error


def _unanswered(error: Exception, settings: ZooKeeperLockSettings) -> HudiError:
    reason = str(error) or type(error).__name__
    return UnavailableError(f"ZooKeeper at {settings.hosts} does not answer: {reason}; check it and try again")
