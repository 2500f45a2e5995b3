"""Files that a queue tells of: received, found in the store, and, once they are in the table, told
to the queue.

A message is deleted after the commit that holds its files. One that comes again, as a queue may
send it twice and a run may end between the two, finds them in the checkpoint and is deleted.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from hudi_table.errors import HudiError, InvalidRequestError, ObjectNotFoundError, UnavailableError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import is_hidden
from hudi_table.sources.files.events import Created, created_objects
from hudi_table.sources.files.sqs import Queue
from hudi_table.table.store.ports import ObjectInfo, Storage

MESSAGES_MAX = 10_000
"""Of one commit; the queue holds the others."""
HIDDEN_SECONDS, ASIDE_SECONDS = 300, 11 * 3600
"""While it is worked on, renewed; and of what nothing can be made: SQS knows twelve hours behind
the receive at the most."""
RENEW_SECONDS, WAIT_SECONDS = 100, 1
LOOKS_AT_ONCE, REFUSED_MAX = 16, 10
_REASONS_MAX = 3
_LOG = logging.getLogger("hudi_table.sources")


@dataclass(slots=True)
class _Told:
    """A message, and the files that it names."""

    receipt: str
    paths: tuple[str, ...] = ()


@dataclass(slots=True)
class Notified:
    """What a queue told of the files below `storage`, while a run is at it."""

    queue: Queue
    storage: Storage
    _told: list[_Told] = field(default_factory=list)
    _aside: dict[str, str] = field(default_factory=dict)
    """Receipts of messages of which nothing can be made, and why."""
    _refused: dict[str, str] = field(default_factory=dict)
    """Files that cannot be read, and why."""
    _found: tuple[ObjectInfo, ...] = ()
    _ended: threading.Event = field(default_factory=threading.Event)

    def receive(self) -> None:
        """Receive what waits, and look for it. Raises UnavailableError, AccessDeniedError,
        InvalidRequestError."""
        self._receive()
        paths = sorted(
            {path for each in self._told for path in each.paths if not is_hidden(path) and not path.endswith("/")}
        )
        with ThreadPoolExecutor(LOOKS_AT_ONCE, thread_name_prefix="head") as pool:
            self._found = tuple(info for info in pool.map(self._look, paths) if info is not None)

    def _receive(self) -> None:
        while len(self._told) + len(self._aside) < MESSAGES_MAX:
            messages = self.queue.receive(HIDDEN_SECONDS, WAIT_SECONDS)
            if not messages:
                return
            for message in messages:
                try:
                    paths = tuple(_path(each, self.storage.base_path) for each in created_objects(message.body))
                except ValueError as error:
                    self._aside[message.receipt] = f"a message {error}"
                    continue
                self._told.append(_Told(message.receipt, paths))

    def files(self) -> tuple[ObjectInfo, ...]:
        """Those that the messages name and that are there, as the store has them."""
        return self._found

    def _look(self, path: str) -> ObjectInfo | None:
        try:
            return self.storage.head(path)
        except ObjectNotFoundError:
            return None  # deleted since
        except InvalidRequestError as error:
            # A key that the port takes for no path.
            self._refused[path] = f"{path!r}: {error.message}"
            return None

    def set_aside(self, path: str, reason: str) -> bool:
        """Leave a file out that cannot be read, with the message that names it. False if no message
        does, or so many were left out that something else may be wrong."""
        if len(self._refused) >= REFUSED_MAX or not any(path in each.paths for each in self._told):
            return False
        self._refused[path] = reason
        return True

    @property
    def refused(self) -> frozenset[str]:
        """Files that were left out."""
        return frozenset(self._refused)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why messages were set aside."""
        return (*self._aside.values(), *self._refused.values())

    def taken(self) -> None:
        """All files but those that were left out are in the table, or were: delete their messages,
        and hide the others for long. A queue with a redrive policy gets those again sooner, so that
        they go where it says.

        Raises AccessDeniedError, InvalidRequestError. What else fails changes nothing: the messages
        come again.
        """
        bad = [each.receipt for each in self._told if self.refused.intersection(each.paths)]
        good = [each.receipt for each in self._told if not self.refused.intersection(each.paths)]
        self._ended.set()
        try:
            self.queue.delete(good)
            aside = [*self._aside, *bad]
            if aside and not self.queue.depth().redrives:
                self.queue.hide(aside, ASIDE_SECONDS)
        except UnavailableError as error:
            _LOG.warning("messages of files that are in the table were not deleted: %s", error)

    def words(self) -> str:
        """What was set aside, for people; "" if nothing was."""
        reasons = self.reasons
        if not reasons:
            return ""
        more = f" and {len(reasons) - _REASONS_MAX:,} more" if len(reasons) > _REASONS_MAX else ""
        return f"; set aside: {counted(len(reasons), 'message')}: {', '.join(reasons[:_REASONS_MAX])}{more}"

    def keep_hidden(self) -> None:
        """Until the end, keep the messages from others; for a thread of its own."""
        while not self._ended.wait(RENEW_SECONDS):
            with contextlib.suppress(HudiError):
                self.queue.hide(self._receipts(), HIDDEN_SECONDS)

    def release(self) -> None:
        """Nothing was done: the messages may come again at once."""
        if not self._ended.is_set():
            self._ended.set()
            with contextlib.suppress(HudiError):
                self.queue.hide(self._receipts(), 0)

    def _receipts(self) -> Sequence[str]:
        return [*(each.receipt for each in self._told), *self._aside]


@contextlib.contextmanager
def notified(queue: Queue, storage: Storage) -> Iterator[Notified]:
    """What waits in the queue, received and kept from others within the context; given back where
    it ends without `taken`. Raises what `Notified.receive` does."""
    found = Notified(queue, storage)
    keeper = threading.Thread(target=found.keep_hidden, name="notified", daemon=True)
    try:
        keeper.start()
        found.receive()
        yield found
    finally:
        found.release()
        keeper.join()


def _path(made: Created, base: str) -> str:
    """Relative to the source. Raises ValueError for an object elsewhere."""
    place = urlsplit(base)
    prefix = place.path.strip("/")
    folder = f"{prefix}/" if prefix else ""
    if made.bucket != place.netloc or not made.key.startswith(folder):
        raise ValueError(f"names s3://{made.bucket}/{made.key}, which is not below {base}")
    return made.key.removeprefix(folder)
