"""Commits that are decided in the chain and not published: their writer has died in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.decision import Decider
from hudi_table.table.commit.transaction import Transaction, begin
from hudi_table.table.store.ports import Storage
from tests.support.tables import finish, reopen, write_file


class Killed(Exception):  # noqa: N818 - no error
    """The process ends here."""


def begun(store: Storage) -> Transaction:
    """An attempt of a process of its own, up to its inflight file."""
    txn = begin(reopen(store), Action.COMMIT)
    txn.inflight()
    return txn


def decided_only(store: Storage, bucket: int, txn: Transaction | None = None) -> str:
    """Write to a bucket, by an attempt of before or a new one, and die behind the decision; the
    instant."""
    txn = txn or begun(store)
    with killed_before_publication(), suppress(Killed):
        finish(txn, [write_file(txn, bucket)], [bucket])
    return txn.time


@contextmanager
def killed_before_publication() -> Iterator[None]:
    """Whoever has decided dies."""

    def killed(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Decider, "publish", killed)
        yield
