"""A writer under a lock that sleeps, for however long, between its look at the lock and the create
of its completed file."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import WriteConflictError
from hudi_table.table.commit.decision import Decider
from hudi_table.table.store import retry


class Killed(BaseException):
    """The process has ended: nothing of ours cleans up."""


def after_the_quarantine(table: HudiTable) -> HudiTable:
    ctx = table.context
    return HudiTable(replace(ctx, settings=replace(ctx.settings, quarantine_seconds=0.0)))


def asleep_before_the_create(
    act: Callable[[], object], base: Path, meanwhile: Callable[[], None], *, dies: bool
) -> None:
    """A write of which the completed file is asked for behind what happens meanwhile, which takes
    it back."""
    monkeypatch = pytest.MonkeyPatch()
    once, decide = retry.until_confirmed, Decider.decide

    def late(request: Callable[[], object]) -> None:
        if threading.current_thread() is not threading.main_thread():
            # A sign of life, perhaps.
            once(request)
            return
        monkeypatch.undo()
        (base / ".hoodie" / "lock").unlink()
        meanwhile()
        try:
            once(request)
        finally:
            if dies:
                raise Killed

    def decided(*args: Any, **more: Any) -> object:
        found = decide(*args, **more)
        monkeypatch.setattr(retry, "until_confirmed", late)
        return found

    monkeypatch.setattr(Decider, "decide", decided)
    with pytest.raises(Killed) if dies else pytest.raises(WriteConflictError, match="the lock was lost"):
        act()
