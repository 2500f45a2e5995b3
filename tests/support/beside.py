"""Another engine on one's table: it works on a copy, and what it leaves there is carried over without its chain, as Hudi's would be."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.table.commit.decision import Decider
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


def before_our_decision(patch: pytest.MonkeyPatch, table: HudiTable, act: Callable[[HudiTable], object]) -> None:
    """Let another engine do it once, when the next attempt of ours at `table` is about to decide."""
    decide, done = Decider.decide, list[bool]()

    def late(self: Decider, *given: object) -> object:
        if self.ctx.storage.base_path == table.context.storage.base_path and not done:
            done.append(True)
            another_engine(table, act)
        return decide(self, *given)  # type: ignore[arg-type]  # passed on as it came

    patch.setattr(Decider, "decide", late)


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
