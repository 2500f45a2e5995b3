"""Another engine on one's table: it works on a copy, and what it leaves there is carried over
without its chain, as Hudi's would be."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Protocol

import pytest

from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.table.commit.foreign_writers import Neighbours
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Clock

OWN = ".hoodie/.txn/"


class Files(Protocol):
    """Where a table's files lie."""

    def put(self, path: str, data: bytes) -> None:
        """Create or replace."""
        ...

    def delete(self, path: str) -> None:
        """Delete what is there."""
        ...


def another_engine(
    table: HudiTable, act: Callable[[HudiTable], object], *, sees: Callable[[str], bool] = lambda _: True
) -> None:
    """Let another engine do something to the table as it is now, of which it `sees` some files."""
    store = table.context.storage
    before = {info.path: store.get(info.path) for info in store.list() if sees(info.path)}
    carry_over(before, on_a_copy(before, act), store)


def an_engine_without_our_chain(table: HudiTable, act: Callable[[HudiTable], object]) -> None:
    """The same by an engine to which what was decided and not published is not there."""
    another_engine(table, act, sees=lambda path: not (path.startswith(OWN) and path.endswith(".json")))


def on_a_copy(
    files: Mapping[str, bytes], act: Callable[[HudiTable], object], clock: Clock | None = None
) -> dict[str, bytes]:
    """The files of a table once somebody has done something with it."""
    copy = open_storage(f"memory://{uuid.uuid4().hex}/t")
    try:
        for path, data in files.items():
            copy.put(path, data)
        act(HudiTable(open_context(copy, clock)))
        return {info.path: copy.get(info.path) for info in copy.list()}
    finally:
        # The store lives as long as the process, and who draws its name again, from a seed, begins with nothing.
        copy.delete_all([info.path for info in copy.list()])


def carry_over(before: Mapping[str, bytes], after: Mapping[str, bytes], store: Files) -> None:
    """Put what is another one now into the store, but the chain."""
    for path in sorted(before.keys() - after.keys()):
        if not path.startswith(OWN):
            store.delete(path)
    # Data first, as whoever publishes does.
    for path in sorted(after, key=lambda path: path.startswith(".hoodie/")):
        if not path.startswith(OWN) and before.get(path) != after[path]:
            store.put(path, after[path])


def before_our_decision(patch: pytest.MonkeyPatch, table: HudiTable, act: Callable[[HudiTable], object]) -> None:
    """Let another engine do it once, right before the next attempt of ours at `table` lists what
    others did, to decide."""
    done = list[bool]()

    def late(base: str) -> None:
        if base == table.context.storage.base_path and not done:
            done.append(True)
            another_engine(table, act)

    before_last_listing(patch, late)


def before_last_listing(patch: pytest.MonkeyPatch, happen: Callable[[str], None]) -> None:
    """Let something happen right before attempts of ours list the timeline for the last time before
    they decide, each time; it is told the table's base path."""

    def before(name: str) -> None:
        listing = getattr(Neighbours, name)

        def late(self: Neighbours, *look: object) -> object:
            if self.listed is None and self.newest is None:
                happen(self.ctx.storage.base_path)
            return listing(self, *look)

        patch.setattr(Neighbours, name, late)

    before("relist")
    before("relist_ahead")
    before("relist_newest_ahead")


def seen_anew(table: HudiTable) -> HudiTable:
    """The table as another process opens it."""
    return HudiTable(open_context(table.context.storage))
