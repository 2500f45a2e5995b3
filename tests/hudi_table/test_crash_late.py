"""A request that is lost and arrives later, and a store that refuses whatever comes behind it.

Matrix: {insert, upsert} × {base files, logs} × each call that changes the store × {nothing else
fails, every change behind it is refused, every request is}; and credentials that expire at each
call. What reported a failure without a doubt is not there, nor does it come: not when the lost
request arrives, nor behind the next write.

Omitted: streams that are lost as they end, which arrive at no other moment.
"""

from __future__ import annotations

from collections.abc import Callable
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
    """Calls end with the error that `meets` gives them. What ends in an unknown outcome can arrive
    later."""

    def __init__(self, inner: Storage, meets: Callable[[Call], HudiError | None]) -> None:
        super().__init__(inner, FaultPlan())
        self.meets = meets
        self.lost: Callable[[], object] | None = None

    def _call(self, method: str, path: str, action: Callable[[], T], **unused: object) -> T:
        super()._call(method, path, lambda: None)
        error = self.meets(self.plan.calls[-1])
        if isinstance(error, OutcomeUnknownError):
            self.lost = action
        if error is not None:
            raise error
        return action()

    def arrives(self) -> None:
        """What was lost is done now, as far as it still can be."""
        if self.lost is not None:
            with suppress(HudiError):
                self.lost()


REFUSALS: dict[str, Callable[[Call], bool]] = {
    "nothing else": lambda call: False,
    "changes": lambda call: call.writes,
    "everything": lambda call: True,
}


def lost(at: Call, refused: str, call: Call) -> HudiError | None:
    """The call `at` is lost, and behind it what `REFUSALS` says is refused."""
    if call.number == at.number:
        return OutcomeUnknownError(f"the reply to {call} is lost")
    behind = call.number > at.number and REFUSALS[refused](call)
    return UnavailableError(f"{call} is refused") if behind else None


def denied(since: Call, call: Call) -> HudiError | None:
    """That call and all behind it are denied."""
    return AccessDeniedError(f"{call}: the token has expired") if call.number >= since.number else None


def calls_of(start: Storage, operate: Callable[[Storage], object]) -> list[Call]:
    counted = FaultPlan()
    operate(FaultyStorage(copied(start), counted))
    return counted.calls


@pytest.mark.parametrize("refused", REFUSALS)
@pytest.mark.parametrize("name", ["insert", "upsert"])
@pytest.mark.parametrize("layout", [LAYOUTS[0], LATER_LOGS], ids=str)
def test_what_failed_without_a_doubt_does_not_come_with_a_request_that_was_lost(layout, name, refused, figure):
    start, operate = prepared(layout), on_table(OPERATIONS[name][0])
    calls = [call for call in calls_of(start, operate) if call.method in WRITES - STREAMS]
    for call in calls:
        store = Late(copied(start), partial(lost, call, refused))
        outcome = attempt(partial(operate, store))
        check(store, call, layout, name, outcome, f"{call} lost, then {refused} refused, {outcome}")
    figure(len(calls), "late requests")


@pytest.mark.parametrize("name", ["insert", "upsert"])
@pytest.mark.parametrize("layout", [LAYOUTS[0], LATER_LOGS], ids=str)
def test_credentials_that_expire_at_any_call_leave_the_old_table_unless_the_write_says_otherwise(layout, name, figure):
    start, operate = prepared(layout), on_table(OPERATIONS[name][0])
    calls = calls_of(start, operate)
    for call in calls:
        store = Late(copied(start), partial(denied, call))
        outcome = attempt(partial(operate, store))
        check(store, call, layout, name, outcome, f"denied from {call} on, {outcome}")
    figure(len(calls), "expiries")


def check(store: Late, call: Call, layout: Layout, name: str, outcome: str, where: str) -> None:
    """What was lost arrives before the next write, or behind it."""
    left, old, new = store.inner, read(prepared(layout)), frozenset(OPERATIONS[name][1](layout))
    check_outcome(read(left), old, new, outcome, where)
    for suspect in SUSPECTS if scale() > 1 else (SUSPECTS[call.number % 2],):
        for is_first in (True, False) if store.lost is not None else (True,):
            store.inner = copied(left)
            for step in (store.arrives, partial(write_next, store.inner, suspect))[:: 1 if is_first else -1]:
                step()
            found = read(store.inner)
            told = {"succeeded": [new], "failed": [old]}.get(outcome, [old, new])
            assert found in [each | {NEXT} for each in told], f"{where}: {'before' if is_first else 'behind'} the next"


def write_next(store: Storage, suspect: float) -> None:
    opened(store, suspect=suspect).write(rows(NEXT), operation="upsert")
