"""An engine of the mirror: how its processes are made, and tables that rounds begin with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.mirror.workload import KINDS, Write
from tests.mirror.writers import Answer, Came, Case, HudiWriter, OurWriter, Writer
from tests.support.s3 import S3Server

BEGUN_WITH = 2
"""Writes of the table that a round begins with."""


@dataclass
class Engine:
    """`make` starts a process. One is always started ahead and has written once, so that no round
    waits for Java. `store`: the folder of the server."""

    name: str
    make: Callable[[], Writer]
    bucket: str
    store: Path
    ours: bool
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _ahead: Future[Writer] | None = None
    _bases: dict[tuple[str, str], tuple[str, list[tuple[Write, Answer]]]] = field(default_factory=dict)
    _lengths: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self.current = self._started()

    def _started(self) -> Writer:
        writer = self.make()
        writer.process.ready()
        self._count += 1
        case = Case(f"{self.bucket}/{self.name}/warm-{self._count}/t", "CopyOnWrite", {})
        answer = writer.create(case, Write(1))
        assert answer.came is Came.DONE, f"{self.name} does not write: {answer.said}"
        return writer

    def ahead(self) -> None:
        """Begin to start the next process, if none is."""
        self._ahead = self._ahead or self._pool.submit(self._started)

    def other(self) -> Writer:
        """A second process, which becomes the current one when that is gone."""
        self.ahead()
        assert self._ahead is not None
        return self._ahead.result()

    def replace(self) -> Writer:
        """The next process takes the place of the current one."""
        self.current.process.end()
        self.current, self._ahead = self.other(), None
        return self.current

    def case(
        self, kind: str, number: int, options: Mapping[str, str], lock: Mapping[str, str]
    ) -> tuple[Case, list[tuple[Write, Answer]]]:
        """A new table with some writes in it, and those."""
        begun, told = self._begun(kind, options if self.ours else {})
        base = f"{self.bucket}/{self.name}/round-{number}/t"
        shutil.copytree(self.store / begun, self.store / base)
        return Case(base, kind, options, lock), list(told)

    def lengths(self, kind: str, changes: Callable[[str], int]) -> list[tuple[int, float]]:
        """Changing requests and seconds of the next two writes after the begun ones, without a
        fault; measured once. `changes`: how many requests there were to that table since it was
        last asked."""
        if kind not in self._lengths:
            case, _ = self.case(kind, 0, {}, {})
            self._lengths[kind] = []
            for number in range(BEGUN_WITH + 1, BEGUN_WITH + 3):
                changes(case.base)
                answer = self.current.upsert(case, Write(number))
                assert answer.came is Came.DONE, f"{self.name} does not write without a fault: {answer.said}"
                self._lengths[kind].append((changes(case.base), answer.ended - answer.asked))
            self.forget(case)
        return self._lengths[kind]

    def forget(self, case: Case) -> None:
        """The table of a round that was fine is gone."""
        shutil.rmtree((self.store / case.base).parent, ignore_errors=True)

    def close(self) -> None:
        """Its processes are gone."""
        self.current.process.end()
        if self._ahead is not None:
            self._ahead.result().process.end()
        self._pool.shutdown()

    def _begun(self, kind: str, options: Mapping[str, str]) -> tuple[str, list[tuple[Write, Answer]]]:
        key = (kind, repr(sorted(options.items())))
        if key not in self._bases:
            case = Case(f"{self.bucket}/{self.name}/begun-{len(self._bases)}/t", kind, options)
            told = []
            for number in range(1, BEGUN_WITH + 1):
                write = Write(number)
                answer = (self.current.create if number == 1 else self.current.upsert)(case, write)
                assert answer.came is Came.DONE, answer.said
                told.append((write, answer))
            self._bases[key] = case.base, told
        return self._bases[key]


def engine(name: str, server: S3Server, store: Path, folder: Path) -> Engine:
    """Ours by the name `ours`, else a release of Apache Hudi."""
    folder = folder / name
    folder.mkdir()
    if name == "ours":
        return Engine(name, lambda: OurWriter(server, folder), server.bucket, store, ours=True)
    return Engine(name, lambda: HudiWriter(name, server, folder), server.bucket, store, ours=False)


TABLE_KINDS = tuple(KINDS)
