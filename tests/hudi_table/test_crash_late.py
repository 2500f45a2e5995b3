"""A request that is lost and arrives later, and a store that refuses whatever comes behind it.

Matrix: {insert, upsert} × {base files, logs} × each call that changes the store × {nothing else
fails, every change behind it is refused, every request is}; and credentials that expire at each
call. What reported a failure without a doubt is not there, nor does it come: not when the lost
request arrives, nor behind the next write.

Omitted: streams that are lost as they end, which arrive at no other moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TypeVar

import pytest

from hudi_table.errors import AccessDeniedError, HudiError, OutcomeUnknownError, UnavailableError
from hudi_table.table.store.ports import Storage
from tests.support.crashes import LATER_LOGS, LAYOUTS, OPERATIONS, Layout, copied, opened, prepared, read, rows
from tests.support.fault_points import SUSPECTS, attempt, check_outcome, on_table
from tests.support.faults import WRITES, Call, FaultPlan, FaultyStorage
from tests.support.scale import scale

T = TypeVar("T")
NEXT = ("next", "x", 100)
STREAMS = frozenset({"open_write", "close_write"})


class Late(FaultyStorage):
    """The request number `at` is lost; behind it those are refused that `refused` says."""

    def __init__(self, inner: Storage, at: int, refused: Callable[[Call], bool]) -> None:
        super().__init__(inner, FaultPlan())
        self.at, self.refused = at, refused
        self.lost: Callable[[], object] = int

    def _call(
        self,
        method: str,
        path: str,
        action: Callable[[], T],
        *,
        torn: Callable[[], object] | None = None,
        foreign: Callable[[], object] | None = None,
    ) -> T:
        super()._call(method, path, lambda: None)
        call = self.plan.calls[-1]
        if call.number == self.at:
            self.lost = action
            raise OutcomeUnknownError(f"the reply to {method} {path} is lost", path=path)
        if call.number > self.at and self.refused(call):
            raise UnavailableError(f"{method} {path} is refused", path=path)
        return action()

    def arrives(self) -> None:
        """What was lost is done now, as far as it still can be."""
        with suppress(HudiError):
            self.lost()


class Expires(Late):
    """From the request number `at` on all are denied."""

    def _call(self, method: str, path: str, action: Callable[[], T], **more: object) -> T:
        FaultyStorage._call(self, method, path, lambda: None)
        if len(self.plan.calls) >= self.at:
            raise AccessDeniedError(f"{method} {path}: the token has expired", path=path)
        return action()


REFUSALS: dict[str, Callable[[Call], bool]] = {
    "nothing else": lambda call: False,
    "changes": lambda call: call.writes,
    "everything": lambda call: True,
}


def calls_of(start: Storage, operate: Callable[[Storage], object]) -> Iterator[Call]:
    counted = FaultPlan()
    operate(FaultyStorage(copied(start), counted))
    yield from counted.calls


@pytest.mark.parametrize("refused", REFUSALS)
@pytest.mark.parametrize("name", ["insert", "upsert"])
@pytest.mark.parametrize("layout", [LAYOUTS[0], LATER_LOGS], ids=str)
def test_what_failed_without_a_doubt_does_not_come_with_a_request_that_was_lost(layout, name, refused, figure):
    start, operate = prepared(layout), on_table(OPERATIONS[name][0])
    lost = [call for call in calls_of(start, operate) if call.method in WRITES - STREAMS]
    for call in lost if scale() > 1 else lost[len(refused) % 2 :: 2]:
        store = Late(copied(start), call.number, REFUSALS[refused])
        outcome = attempt(partial(operate, store))
        check(store, layout, name, outcome, f"{call} lost, then {refused} refused, {outcome}")
    figure(len(lost), "late requests")


@pytest.mark.parametrize("name", ["insert", "upsert"])
@pytest.mark.parametrize("layout", [LAYOUTS[0], LATER_LOGS], ids=str)
def test_credentials_that_expire_at_any_call_leave_the_old_table_unless_the_write_says_otherwise(layout, name, figure):
    start, operate = prepared(layout), on_table(OPERATIONS[name][0])
    found = list(calls_of(start, operate))
    for call in found if scale() > 1 else found[len(name) % 2 :: 2]:
        store = Expires(copied(start), call.number, REFUSALS["nothing else"])
        outcome = attempt(partial(operate, store))
        check(store, layout, name, outcome, f"denied from {call} on, {outcome}")
    figure(len(found), "expiries")


def check(store: Late, layout: Layout, name: str, outcome: str, where: str) -> None:
    """What was lost arrives before the next write, or behind it."""
    left, old, new = store.inner, read(prepared(layout)), frozenset(OPERATIONS[name][1](layout))
    check_outcome(read(left), old, new, outcome, where)
    for suspect in SUSPECTS if scale() > 1 else (SUSPECTS[store.at % 2],):
        for is_first in (True, False):
            store.inner = copied(left)
            for step in (store.arrives, partial(write_next, store.inner, suspect))[:: 1 if is_first else -1]:
                step()
            found = read(store.inner)
            told = {"succeeded": [new], "failed": [old]}.get(outcome, [old, new])
            assert found in [each | {NEXT} for each in told], f"{where}: {'before' if is_first else 'behind'} the next"


def write_next(store: Storage, suspect: float) -> None:
    opened(store, suspect=suspect).write(rows(NEXT), operation="upsert")
