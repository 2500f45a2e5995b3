"""Signs of life of an attempt: the file by which Apache Hudi's writers know that another is alive,
and ours too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from hudi_table.errors import HudiError
from hudi_table.model.names import HEARTBEAT
from hudi_table.table.store import retry, threads
from hudi_table.table.timeline.context import TableContext

BEAT_SECONDS_LEAST = 1.0
BESIDE_OTHERS_SECONDS, FOREIGN_SECONDS_MAX = 30.0, 120.0
"""Hudi's lazy cleaning takes a write for failed whose heartbeat is older than two minutes, or that
has none."""
OURS = b"ours\n"
"""What tells a beat of ours from one of Hudi's, which is empty. Hudi looks at its age alone."""


@dataclass(slots=True)
class Heartbeat:
    """That of the attempt at the instant `time`. `shown`: there may be a file, which the end of the
    attempt deletes."""

    ctx: TableContext
    time: str
    shown: bool = False

    @property
    def path(self) -> str:
        """The file."""
        return f"{HEARTBEAT}/{self.time}"

    def begin(self) -> None:
        """Show it from the first moment on where other engines share the table: they look at no age
        but its own, so it is there before the claim."""
        if self.ctx.lock is not None:
            self.shown = True
            retry.put(self.ctx.storage, self.path, OURS)

    def end(self) -> None:
        """Delete it, if there is one."""
        if self.shown:
            retry.delete(self.ctx.storage, self.path)

    @contextmanager
    def beats(self) -> Iterator[None]:
        """Renew it three times before others would take the attempt for dead, however long its work
        takes. Work shorter than that writes none, where nobody but us looks."""
        done = threads.event()
        pause = max(self.ctx.settings.suspect_after_seconds / 3, BEAT_SECONDS_LEAST)
        if self.ctx.lock is not None:
            pause = min(pause, BESIDE_OTHERS_SECONDS)
            if not self.shown:
                self.begin()

        def beat() -> None:
            while not done.wait(pause):
                self.shown = True
                # A beat that fails is made good by the next; a store that stays away ends the attempt elsewhere.
                with suppress(HudiError):
                    self.ctx.storage.put(self.path, OURS)

        thread = threads.start(beat, f"heartbeat-{self.time}")
        try:
            yield
        finally:
            done.set()
            thread.join()
