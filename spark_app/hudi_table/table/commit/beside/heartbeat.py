"""Signs of life of an attempt: the file by which Apache Hudi's writers know that another is alive,
and ours too."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime

from hudi_table.errors import HudiError, ObjectExistsError, ObjectNotFoundError
from hudi_table.model.names import HEARTBEAT
from hudi_table.table.store import retry, threads
from hudi_table.table.timeline.context import TableContext

BEAT_SECONDS_LEAST = 1.0


def their_beat(ctx: TableContext, time: str) -> datetime | None:
    """When another engine showed a heartbeat of an instant last, None if it shows none: Hudi's are
    empty, and ours are not."""
    try:
        beat = ctx.storage.head(f"{HEARTBEAT}/{time}")
    except ObjectNotFoundError:
        return None
    return beat.modified if beat.size == 0 else None


@dataclass(slots=True)
class Heartbeat:
    """That of the attempt at the instant `time`. `shown`: there may be a file, which the end of the
    attempt deletes.

    Hudi's lazy cleaning takes a write for failed that has no heartbeat, or none for longer than it
    waits. It looks at the file's age alone, and its own are empty: what stands in ours tells whose
    it is.
    """

    ctx: TableContext
    time: str
    shown: bool = False
    _mark: bytes = field(init=False, repr=False)
    _beat_at: float = field(init=False, repr=False)
    _paused: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        self._beat_at = self.ctx.clock.boot_seconds()
        self._mark = f"ours {uuid.uuid4()}\n".encode()

    @property
    def path(self) -> str:
        """The file."""
        return f"{HEARTBEAT}/{self.time}"

    def begin(self) -> bool:
        """Show it from the first moment on where other engines share the table: they look at no age
        but its own, so it is there before the claim. False if another has one at this instant,
        which is his then."""
        if self.ctx.lock is None:
            return True
        self._beat_at = self.ctx.clock.boot_seconds()
        try:
            retry.until_confirmed(lambda: self.ctx.storage.put_if_absent(self.path, self._mark))
        except ObjectExistsError:
            # A repeated request may have met its own file.
            if not self._is_own():
                return False
        self.shown = True
        return True

    def end(self) -> None:
        """Delete it, if there is one and no other has begun at this instant since."""
        if self.shown and self._is_own():
            retry.delete(self.ctx.storage, self.path)

    def has_paused(self) -> bool:
        """Whether others may have taken the attempt for dead, at any time since it began: its signs
        of life have come too late once. Where nobody else looks it never has."""
        if self.ctx.lock is None:
            return False
        # Earlier by a beat than others would: their clocks may be ahead of the store's.
        limit = self.ctx.heartbeat.tolerance - self._pause()
        self._paused = self._paused or self.ctx.clock.boot_seconds() - self._beat_at > limit
        return self._paused

    @contextmanager
    def beats(self) -> Iterator[None]:
        """Renew it several times before others would take the attempt for dead, however long its
        work takes. Work shorter than that writes none, where nobody but us looks."""
        done = threads.event()
        pause = self._pause()
        if self.ctx.lock is not None and not self.shown:
            # An executor's, of which there may be several.
            retry.until_confirmed(self._put)

        def beat() -> None:
            while not done.wait(pause):
                # A beat that fails is made good by the next; a store that stays away ends the attempt elsewhere.
                with suppress(HudiError):
                    self._put()

        thread = threads.start(beat, f"heartbeat-{self.time}")
        try:
            yield
        finally:
            done.set()
            thread.join()

    def beats_if_shown(self) -> AbstractContextManager[None]:
        """The same for who has begun to show it, else nothing."""
        return self.beats() if self.shown else nullcontext()

    def _put(self) -> None:
        self.shown = True
        self.has_paused()
        sent = self.ctx.clock.boot_seconds()
        self.ctx.storage.put(self.path, self._mark)
        self._beat_at = sent

    def _pause(self) -> float:
        pause = self.ctx.settings.suspect_after_seconds / 3
        return max(pause if self.ctx.lock is None else min(pause, self.ctx.heartbeat.period), BEAT_SECONDS_LEAST)

    def _is_own(self) -> bool:
        try:
            return self.ctx.storage.get(self.path) == self._mark
        except ObjectNotFoundError:
            return False
