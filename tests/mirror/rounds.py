"""One round: a table, a fault while it is written, its recovery by the next writes, and what a
reader saw from the beginning to the end."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.mirror.engines import BEGUN_WITH, Engine
from tests.mirror.history import History, Read
from tests.mirror.proxy import Fault, FaultyStore
from tests.mirror.reader import Reader
from tests.mirror.schedules import BURST, LATE_SECONDS, STOP_SECONDS, How, Schedule, lock_of
from tests.mirror.workload import Write
from tests.mirror.writers import Answer, Came, Writer
from tests.support.small_volume import filled

WRITABLE_SECONDS_MAX = 240.0
AGAIN_SECONDS = 1.0
SAID_MAX = 300
AT_ONCE = 3
"""Writes of each of two writers."""
PAGE_BYTES, FREE_PAGES_MAX = 4096, 40
FINE, WRONG, UNREADABLE, REPAIR = "fine", "wrong rows", "unreadable", "needs repair"


@dataclass
class Bench:
    """What rounds need beside an engine."""

    store: FaultyStore
    reader: Reader
    folder: Path
    """Of the volume that the server has for its own, where one can be full."""
    zookeeper: str
    chance: random.Random


@dataclass
class Round:
    """One engine under one schedule."""

    bench: Bench
    engine: Engine
    schedule: Schedule
    kind: str
    number: int
    history: History = field(default_factory=History)
    next: int = BEGUN_WITH + 1
    fired: str = ""
    came: list[Answer] = field(default_factory=list)
    late_until: float = 0.0

    def run(self) -> dict[str, Any]:
        """What came of it, for the report."""
        lock = lock_of(self.bench.zookeeper, f"{self.engine.name}-{self.number}") if self.schedule.locked else {}
        options = self.schedule.ours if self.engine.ours else self.schedule.hudi
        self.case, self.history.told = self.engine.case(self.kind, self.number, options, lock)
        if self.schedule.needs_another:
            self.engine.ahead()
        self.bench.reader.begin(self.case.base)
        act: Callable[[], None] = {
            How.AT_REQUEST: self._at_request, How.AT_A_TIME: self._at_a_time, How.FULL: self._full,
            How.STOPPED: self._stopped, How.TWO: self._two,
        }[self.schedule.how]  # fmt: skip
        act()
        tries, seconds = self._recovered()
        writable = seconds is not None
        if writable:
            self._write(self.engine.current)
        time.sleep(max(0.0, self.late_until - time.monotonic()))
        return self._judged(self.bench.reader.end(), tries, seconds)

    def _write(self, writer: Writer, number: int = 0) -> Answer:
        """The next write, and what came of it, in the history."""
        write = Write(number or self._drawn())
        begun = time.monotonic()
        place = len(self.history.told)
        self.history.told.append((write, Answer(Came.HUNG, "", begun, float("inf"))))
        answer = writer.upsert(self.case, write)
        self.history.told[place] = (write, answer)
        return answer

    def _drawn(self) -> int:
        self.next += 1
        return self.next - 1

    def _place(self) -> tuple[int, float]:
        """Of the write that is to meet the fault: how many changing requests it takes without one,
        and how many seconds. Every second write compacts, so one may come before it."""
        lengths = self.engine.lengths(self.kind, self._changes)
        before = self.bench.chance.randrange(len(lengths))
        for _ in range(before):
            self._write(self.engine.current)
        return lengths[before]

    def _changes(self, base: str) -> int:
        return self.bench.store.arm(Fault("none", 0, under=_keys(base))).changes

    def _fault(self) -> Fault:
        chance = self.bench.chance
        at = chance.randint(1, self._place()[0])
        kind = chance.choice(self.schedule.faults)
        return Fault(
            kind, at, self.engine.current.process.pid, chance.choice(LATE_SECONDS), BURST, _keys(self.case.base)
        )

    def _at_request(self) -> None:
        fault = self._fault()
        self.bench.store.arm(fault)
        self.came.append(self._write(self.engine.current))
        told = self.bench.store.arm(None).fired
        self.fired = told and f"{fault.kind}, request {fault.at}: {told}"
        if fault.kind == "late":
            self.late_until = time.monotonic() + fault.seconds

    def _at_a_time(self) -> None:
        after = self.bench.chance.uniform(0, self._place()[1])
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(self._write, self.engine.current)
            time.sleep(after)
            self.engine.current.process.signal(signal.SIGKILL)
            answer = writing.result()
        if answer.came is Came.DIED:
            self.fired = f"after {after:.2f} s"
        # Who was quicker than the kill died idle.
        self.came.append(replace(answer, came=Came.DIED))

    def _full(self) -> None:
        self._place()
        free = self.bench.chance.randrange(FREE_PAGES_MAX) * PAGE_BYTES
        with filled(self.bench.folder, free):
            self.came.append(self._write(self.engine.current))
        self.fired = f"{free} bytes free"

    def _stopped(self) -> None:
        fault = self._fault()
        first, other = self.engine.current, self.engine.other()
        self.bench.store.arm(fault)
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(self._write, first)
            while not writing.done() and not self._has_fired():
                time.sleep(0.05)
            until = time.monotonic() + STOP_SECONDS
            while self.fired and time.monotonic() < until:
                self._write(other)
                time.sleep(AGAIN_SECONDS)
            first.process.signal(signal.SIGCONT)
            self.came.append(writing.result())
        self.bench.store.arm(None)

    def _has_fired(self) -> bool:
        self.fired = self.fired or self.bench.store.look().fired
        return bool(self.fired)

    def _two(self) -> None:
        first, other = self.engine.current, self.engine.other()
        numbers = {id(writer): [self._drawn() for _ in range(AT_ONCE)] for writer in (first, other)}

        def repeated(writer: Writer) -> list[Answer]:
            return [self._write(writer, number) for number in numbers[id(writer)]]

        with ThreadPoolExecutor(2) as pool:
            for answers in [pool.submit(repeated, writer) for writer in (first, other)]:
                self.came += answers.result()
        self.fired = "two writers"

    def _recovered(self) -> tuple[int, float | None]:
        """How many writes were tried until one was acknowledged, and after how many seconds; None
        if none was."""
        if self.came[-1].came in (Came.DIED, Came.HUNG):
            self.engine.replace()
        begun, tries, fresh = time.monotonic(), 0, False
        while time.monotonic() - begun < WRITABLE_SECONDS_MAX:
            tries += 1
            answer = self._write(self.engine.current)
            if answer.came is Came.DONE:
                return tries, round(answer.ended - begun, 2)
            self.came.append(answer)
            if not fresh and (tries == 3 or answer.came is not Came.REFUSED):
                # What a process keeps in memory may be what is wrong: another one is what anybody would try.
                self.engine.replace()
                fresh = True
            time.sleep(AGAIN_SECONDS)
        return tries, None

    def _judged(self, reads: list[Read], tries: int, seconds: float | None) -> dict[str, Any]:
        own = Read(time.monotonic(), time.monotonic(), self.engine.current.rows(self.case))
        own_wrong = [] if isinstance(own.found, str) else self.history.wrong(own)
        failed = [read for read in reads if isinstance(read.found, str)]
        wrong = [said for read in reads if not isinstance(read.found, str) and (said := self.history.wrong(read))]
        last = reads[-1].found
        verdict = (
            REPAIR if seconds is None else UNREADABLE if isinstance(own.found, str) else WRONG if own_wrong else FINE
        )
        if verdict == FINE and not failed and not wrong:
            self.engine.forget(self.case)
        return {
            "engine": self.engine.name, "schedule": self.schedule.name, "kind": self.kind, "fired": self.fired,
            "came": [answer.came.value for answer in self.came],
            "said": [_head_and_cause(answer.said) for answer in self.came if answer.said],
            "verdict": verdict, "wrong": own_wrong, "tries": tries, "seconds": seconds,
            "own": own.found[:SAID_MAX] if isinstance(own.found, str) else "",
            "reads": len(reads), "reads failed": len(failed), "reads wrong": len(wrong),
            "read": [*(str(read.found) for read in failed[:1]), *wrong[:1]],
            "last": last if isinstance(last, str) else self.history.wrong(reads[-1]),
        }  # fmt: skip


def _head_and_cause(said: str) -> str:
    """How an error begins, and the last of its causes, which Java tells at the end."""
    causes = [line for line in said.splitlines() if line.startswith("Caused by: ")]
    return " … ".join(part[:SAID_MAX] for part in (said, *causes[-1:]))


def _keys(base: str) -> str:
    """What the keys of a table begin with: its base without the bucket."""
    return base.partition("/")[2]
