"""Turns: a write that has lost an attempt to others is let go first by those that began later.

Section 2.10 of `docs/explanation/commit-protocol.md`. Nothing is decided here: a turn only
delays, so whoever ignores one, or takes a live one for dead, breaks nothing. The listing before
each decision shows whether there is any turn at all, so who meets none asks nothing for it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from hudi_table.errors import HudiError, ObjectNotFoundError, WriteConflictError
from hudi_table.model.names import TURNS
from hudi_table.model.timeline.conflict_keys import TABLE, meet
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.commit.beside.heartbeat import BEAT_SECONDS_LEAST
from hudi_table.table.store import retry, threads
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.timeline import Timeline

_LOG = logging.getLogger("hudi_table.commit")
T = TypeVar("T")

WAIT_SECONDS_MAX = 6 * 3600.0
"""How long one attempt waits for others' turns, in all: also of a writer that hangs and yet shows
signs of life."""
LIFE_SECONDS_MAX = 30.0
"""How long a turn holds others up that shows no sign of life: shorter than a write is suspected,
for a turn is a courtesy, and nothing is taken from who sleeps longer but that."""
LOOK_SECONDS, LOOK_SECONDS_MAX = 0.5, 10.0
KEYS_MAX = 10_000
"""Conflict keys beyond which a turn is one for the whole table."""
_FOLDER = TURNS.rpartition("/")[2]


def life_seconds(ctx: TableContext) -> float:
    """How long a turn counts after its last sign of life."""
    return min(ctx.settings.suspect_after_seconds, LIFE_SECONDS_MAX)


class Behind(Exception):  # noqa: N818 - no error: it leaves the section in which nobody waits
    """Raised before a decision while somebody else is to go first."""


@dataclass(slots=True)
class Line:
    """One write's place among others, over all its attempts. `begun`: the instant of its first
    attempt; `tries`: whether it tries again when it loses one."""

    ctx: TableContext
    begun: str = ""
    tries: bool = False
    keys: set[str] = field(default_factory=set)
    _beats: tuple[threads.Event, threads.Started] | None = field(default=None, repr=False)

    @property
    def path(self) -> str:
        """The file of its turn."""
        return f"{TURNS}/{self.begun}"

    @property
    def is_announced(self) -> bool:
        """Whether it has a turn."""
        return self._beats is not None

    def announce(self, conflict_keys: tuple[str, ...]) -> None:
        """An attempt that touches these was lost: others see the turn from now on, and that its
        writer is alive. What the store refuses is left out: it is a courtesy of the others."""
        if not self.tries:
            return
        self.keys.update(conflict_keys)
        data = json.dumps({"touches": [TABLE] if len(self.keys) > KEYS_MAX else sorted(self.keys)}).encode()
        with suppress(HudiError):
            retry.put(self.ctx.storage, self.path, data)
        self._stop()
        pause, done = max(life_seconds(self.ctx) / 3, BEAT_SECONDS_LEAST), threads.event()

        def beat() -> None:
            while not done.wait(pause):
                with suppress(HudiError):
                    self.ctx.storage.put(self.path, data)

        self._beats = done, threads.start(beat, f"turn-{self.begun}")

    def end(self) -> None:
        """The write has ended. A turn that cannot be deleted expires."""
        if self._beats is not None:
            self._stop()
            with suppress(HudiError):
                retry.delete(self.ctx.storage, self.path)

    def _stop(self) -> None:
        if self._beats is not None:
            done, thread = self._beats
            self._beats = None
            done.set()
            thread.join()


@dataclass(frozen=True, slots=True)
class Turn:
    """A live turn: the instant at which its write began, and the conflict keys of the attempts that
    were lost."""

    begun: str
    touches: frozenset[str]


def live_turns(ctx: TableContext, listed: Timeline) -> tuple[Turn, ...]:
    """The turns of writes that show signs of life; none, and no request, where a listing of the
    timeline shows that there are none. Those of the dead are deleted, and what cannot be read is
    none."""
    found: list[Turn] = []
    if _FOLDER not in listed.folders:
        return ()
    with suppress(HudiError):
        infos = ctx.storage.list(TURNS)
        now = store_now(ctx) if infos else None
        for info in infos:
            if now is not None and now - info.modified >= timedelta(seconds=life_seconds(ctx)):
                retry.delete(ctx.storage, info.path)
            elif touches := _touches_in(ctx, info.path):
                found.append(Turn(info.path.rpartition("/")[2], frozenset(touches)))
    return tuple(found)


def _touches_in(ctx: TableContext, path: str) -> tuple[str, ...]:
    """What a turn's file says; nothing if it has just ended, or is no turn of ours."""
    try:
        return tuple(json.loads(ctx.storage.get(path))["touches"])
    except (ObjectNotFoundError, ValueError, KeyError, TypeError):
        return ()


_OWN: ContextVar[Line | None] = ContextVar("the line in which this thread's write stands", default=None)


@contextmanager
def in_line(ctx: TableContext) -> Iterator[Line]:
    """Attempts of one write, whose place stays theirs until the block ends."""
    line = Line(ctx)
    token = _OWN.set(line)
    try:
        yield line
    finally:
        _OWN.reset(token)
        line.end()


def has_turn() -> bool:
    """Whether the write of this thread has lost an attempt, and others let it go first."""
    line = _OWN.get()
    return line is not None and line.is_announced


@dataclass(slots=True)
class Place:
    """The place of the attempt at the instant `time`, which touches `conflict_keys`."""

    ctx: TableContext
    time: str
    conflict_keys: tuple[str, ...]
    line: Line = field(init=False)
    _left: float = field(default=0.0, init=False)
    _touches: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.line = _OWN.get() or Line(self.ctx)
        self.line.begun = self.line.begun or self.time
        self._left = WAIT_SECONDS_MAX

    def decide(self, step: Callable[[bool], T]) -> T:
        """What `step` returns, which is done again once those have gone first before whom it stops.
        It is told whether it is done again. A conflict in it is an attempt that was lost."""
        again = False
        while True:
            try:
                return step(again)
            except Behind:
                self._wait()
            except WriteConflictError:
                self.line.announce(self.conflict_keys)
                raise
            again = True

    def refuse_before_others(self, now: Timeline) -> None:
        """Raise Behind if a listing that was made right before the decision shows a turn to wait
        for."""
        if self._left > 0 and _FOLDER in now.folders and self._ahead():
            raise Behind

    def _wait(self) -> None:
        """Until all have gone first who are to, or the time for it is over."""
        clock = self.ctx.clock
        begun, pause = clock.boot_seconds(), LOOK_SECONDS
        end = begun + self._left
        while (ahead := self._ahead()) and clock.boot_seconds() < end:
            if pause == LOOK_SECONDS:
                _LOG.warning(
                    "%s: waits for the write of %s, which began earlier and has lost an attempt; no longer than %.0f s",
                    self.time, ahead, end - begun,
                )  # fmt: skip
            clock.sleep(min(pause, end - clock.boot_seconds()))
            pause = min(2 * pause, LOOK_SECONDS_MAX)
        waited = clock.boot_seconds() - begun
        self._left -= waited
        _LOG.warning("%s: has waited %.0f s for its turn", self.time, waited)

    def _ahead(self) -> str:
        """The oldest live turn of a write that began earlier and touches what this one does, or
        ''. Turns of the dead are deleted. What cannot be read is not waited for."""
        own = comparable_time(self.line.begun)
        now: datetime | None = None
        with suppress(HudiError):
            for info in self.ctx.storage.list(TURNS):
                begun = info.path.rpartition("/")[2]
                if comparable_time(begun) >= own or not self._meets(info.path):
                    continue
                now = now or store_now(self.ctx)
                if now - info.modified < timedelta(seconds=life_seconds(self.ctx)):
                    return begun
                retry.delete(self.ctx.storage, info.path)
        return ""

    def _meets(self, path: str) -> bool:
        if path not in self._touches:
            touches = _touches_in(self.ctx, path)
            if not touches:
                return False
            self._touches[path] = touches
        return meet(self.conflict_keys, self._touches[path])
