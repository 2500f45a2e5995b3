"""Another engine on one's table: it works on a copy, and what it leaves there is carried over
without its chain, as Hudi's would be."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.table.commit.foreign_writers import Neighbours
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage

OWN = ".hoodie/.txn/"


def another_engine(table: HudiTable, act: Callable[[HudiTable], object]) -> None:
    """Let another engine do something to the table as it is now."""
    store = table.context.storage
    copy = open_storage(f"memory://{uuid.uuid4().hex}/t")
    for info in store.list():
        copy.put(info.path, store.get(info.path))
    act(HudiTable(open_context(copy)))
    _carry_over(copy, store)


def an_engine_without_our_chain(table: HudiTable, act: Callable[[HudiTable], object]) -> None:
    """The same by an engine to which what was decided and not published is not there."""

    def alone(other: HudiTable) -> None:
        store = other.context.storage
        for info in store.list(OWN.rstrip("/")):
            if info.path.endswith(".json"):
                store.delete(info.path)
        act(seen_anew(other))

    another_engine(table, alone)


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


def _carry_over(copy: Storage, store: Storage) -> None:
    theirs = {info.path for info in copy.list()}
    for info in store.list():
        if info.path not in theirs and not info.path.startswith(OWN):
            store.delete(info.path)
    # Data first, as whoever publishes does.
    for path in sorted(theirs, key=lambda path: path.startswith(".hoodie/")):
        if not path.startswith(OWN):
            store.put(path, copy.get(path))
