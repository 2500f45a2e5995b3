"""Files that a queue tells of: received, found in the store, and, once they are in the table, told
to the queue.

A message is deleted after the commit that holds its files. One that comes again, as a queue may
send it twice and a run may end between the two, finds them in the checkpoint and is deleted.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from hudi_table.errors import HudiError, InvalidRequestError, ObjectNotFoundError, UnavailableError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import is_hidden
from hudi_table.sources.files.events import Created, created_objects
from hudi_table.sources.files.sqs import BATCH, Queue
from hudi_table.table.store import threads
from hudi_table.table.store.at_once import all_at_once
from hudi_table.table.store.ports import ObjectInfo, Storage

MESSAGES_MAX = 10_000
"""Of one commit; the queue holds the others."""
HIDDEN_SECONDS, ASIDE_SECONDS = 300, 11 * 3600
"""While it is worked on, renewed; and of what nothing can be made: SQS knows twelve hours behind
the receive at the most."""
RENEW_SECONDS, WAIT_SECONDS = 100, 1
REFUSED_MAX = 10
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
    _ended: threads.Event = field(default_factory=threads.event)

    def receive(self) -> None:
        """Receive what waits, and look for it. Raises UnavailableError, AccessDeniedError,
        InvalidRequestError."""
        self._receive()
        named = {path for each in self._told for path in each.paths}
        paths = sorted(path for path in named if not is_hidden(path) and not path.endswith("/"))
        found = all_at_once(self.storage, [partial(self._look, path) for path in paths])
        self._found = tuple(info for info in found if info is not None)

    def _receive(self) -> None:
        while len(self._told) + len(self._aside) < MESSAGES_MAX:
            messages = self.queue.receive(HIDDEN_SECONDS, WAIT_SECONDS)
            if not messages:
                return
            for message in messages:
                try:
                    paths = _paths(created_objects(message.body), self.storage.base_path)
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

    def taken(self) -> str:
        """All files but those that were left out are in the table, or were: delete their messages,
        and hide the others for long. A queue with a redrive policy gets those again sooner, so that
        they go where it says.

        Says for people what was set aside, "" if nothing was. Raises AccessDeniedError,
        InvalidRequestError. What else fails changes nothing: the messages come again.
        """
        refused = self.refused
        bad = [each.receipt for each in self._told if refused.intersection(each.paths)]
        good = [each.receipt for each in self._told if not refused.intersection(each.paths)]
        aside = [*self._aside, *bad]
        self._ended.set()
        try:
            self._each(self.queue.delete, good)
            if aside and not self.queue.depth().redrives:
                self._hide(aside, ASIDE_SECONDS)
        except UnavailableError as error:
            _LOG.warning("messages of files that are in the table were not deleted: %s", error)
        return self._words(len(aside))

    def _words(self, aside: int) -> str:
        if not aside:
            return ""
        reasons = [*self._aside.values(), *self._refused.values()]
        more = f" and {len(reasons) - _REASONS_MAX:,} more" if len(reasons) > _REASONS_MAX else ""
        return f"; set aside: {counted(aside, 'message')}: {', '.join(reasons[:_REASONS_MAX])}{more}"

    def keep_hidden(self) -> None:
        """Until the end, keep the messages from others; for a thread of its own."""
        while not self._ended.wait(RENEW_SECONDS):
            with contextlib.suppress(HudiError):
                self._hide(self._receipts(), HIDDEN_SECONDS)

    def release(self) -> None:
        """Nothing was done: the messages may come again at once."""
        if not self._ended.is_set():
            self._ended.set()
            with contextlib.suppress(HudiError):
                self._hide(self._receipts(), 0)

    def _receipts(self) -> list[str]:
        return [*(each.receipt for each in self._told), *self._aside]

    def _hide(self, receipts: Sequence[str], seconds: int) -> None:
        self._each(lambda some: self.queue.hide(some, seconds), receipts)

    def _each(self, request: Callable[[Sequence[str]], None], receipts: Sequence[str]) -> None:
        parts = [receipts[start : start + BATCH] for start in range(0, len(receipts), BATCH)]
        all_at_once(self.storage, [partial(request, part) for part in parts])


@contextlib.contextmanager
def notified(queue: Queue, storage: Storage) -> Iterator[Notified]:
    """What waits in the queue, received and kept from others within the context; given back where
    it ends without `taken`. Raises what `Notified.receive` does."""
    found = Notified(queue, storage)
    keeper = threads.start(found.keep_hidden, "notified")
    try:
        found.receive()
        yield found
    finally:
        found.release()
        keeper.join()


def _paths(made: Sequence[Created], base: str) -> tuple[str, ...]:
    """Of objects those below the source, relative to it. Raises ValueError if all are elsewhere."""
    place = urlsplit(base)
    prefix = place.path.strip("/")
    folder = f"{prefix}/" if prefix else ""
    ours = [each.key for each in made if each.bucket == place.netloc and each.key.startswith(folder)]
    if made and not ours:
        raise ValueError(f"names s3://{made[0].bucket}/{made[0].key}, which is not below {base}")
    return tuple(key.removeprefix(folder) for key in ours)
