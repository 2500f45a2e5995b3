"""Every fault at every storage call of an operation, what the operation said of it, and what is
common to check afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hudi_table.api import HudiTable
from hudi_table.errors import (
    CommitStateUnknownError,
    HudiError,
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
)
from hudi_table.table.store.ports import Storage
from tests.support import hudi_rs
from tests.support.crashes import SCHEMA, Rows, copied, dump, opened, read, rows, shape_of
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.scale import scale

FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.TORN, Fault.LOST_REPLY)


CHANGES = frozenset({"put", "put_if_absent", "delete", "close_write"})
"""The calls that change what a store holds. A stream that was begun and not ended leaves
nothing."""
SIGNALS = (ObjectExistsError, ObjectNotFoundError, OutcomeUnknownError)
"""What the storage tells the library, and the library nobody."""
SUSPECTS = (900.0, 0.0)
"""After how many seconds whoever comes next takes a write for dead: this one not, or at once."""


@dataclass(frozen=True, slots=True)
class Faulted:
    """What one fault left. `outcome`: crashed, unknown, failed or succeeded; `where` tells a reader
    of a failure all of it."""

    number: int
    store: Storage
    outcome: str
    where: str

    @property
    def suspects(self) -> tuple[float, ...]:
        """Who comes next: all of `SUSPECTS` in `test-full`, in `make test` one of them, which
        changes for each kind of fault in turn."""
        return SUSPECTS if scale() > 1 else (SUSPECTS[self.number // len(FAULTS) % 2],)


def after_each_fault(
    start: Storage,
    operate: Callable[[Storage], object],
    *,
    stride: int = 2,
    alone: bool = True,
    part: tuple[int, int] = (0, 1),
) -> Iterator[Faulted]:
    """Run `operate` on a copy of `start` with every fault at its storage calls; in a quick run
    every `stride`-th death and lost reply.

    A process that dies leaves what it had changed: in a quick run, of all deaths between two
    changes one is tried. `alone` is False where the operation changes something besides the
    storage, so that each of its deaths is another. Another table makes other numbers of calls, so
    it meets other points. `part`: of so many parts of the points that one.
    """
    counting = FaultPlan()
    operate(FaultyStorage(copied(start), counting))
    found = list(points(len(counting.calls)))
    if alone and scale() == 1:
        found = list(dict.fromkeys(first_alike(counting, *point) for point in found))
    if scale() == 1:
        found = some_of(found, stride)
    which, parts = part
    for number, fault in found[which::parts]:
        store, plan = copied(start), FaultPlan(at=number, fault=fault)
        outcome = attempt(partial(operate, FaultyStorage(store, plan)))
        where = f"{fault} at call {number} ({plan.fired[0] if plan.fired else 'not reached'}), {outcome}"
        yield Faulted(number, store, outcome, where)


def some_of(found: list[tuple[int, Fault]], stride: int) -> list[tuple[int, Fault]]:
    """Every `stride`-th point of either kind, at least one; where it begins depends on how many
    there are."""
    lost = [point for point in found if point[1] is Fault.LOST_REPLY]
    deaths = [point for point in found if point[1] is not Fault.LOST_REPLY]
    return sorted(point for kind in (lost, deaths) for point in kind[(len(kind) - 1) % stride :: stride])


def first_alike(counting: FaultPlan, number: int, fault: Fault) -> tuple[int, Fault]:
    """The first death that leaves the objects that this one leaves; another fault is like none but
    itself."""
    calls = counting.calls
    met = calls[number - 1]
    if fault is Fault.LOST_REPLY or (fault is Fault.TORN and met.method == "put" and counting.tearable(met.path)):
        return number, fault
    last = number if fault is Fault.CRASH_AFTER else number - 1
    while last and calls[last - 1].method not in CHANGES:
        last -= 1
    return (last + 1, Fault.CRASH_BEFORE) if last < len(calls) else (last, Fault.CRASH_AFTER)


def on_table(operate: Callable[[HudiTable], object], *, suspect: float = 900.0) -> Callable[[Storage], object]:
    """The operation by a process that knows nothing. `suspect`: after how many seconds without a
    sign of life it takes another write for dead."""
    return lambda store: operate(opened(store, suspect=suspect))


def points(count: int) -> Iterator[tuple[int, Fault]]:
    """All points in `test-full`; in `make test` every call once, with the faults in turn."""
    if scale() > 1:
        yield from itertools.product(range(1, count + 1), FAULTS)
    else:
        for number in range(1, count + 1):
            yield number, FAULTS[number % len(FAULTS)]


def attempt(operate: Callable[[], object]) -> str:
    """Run the operation to its end or its fault; says how it ended."""
    try:
        operate()
    except Crash:
        return "crashed"
    except CommitStateUnknownError:
        return "unknown"
    except SIGNALS as signal:
        raise AssertionError("a signal of the storage left the library") from signal
    except HudiError:
        return "failed"
    return "succeeded"


def check_outcome(found: Rows, old: Rows, new: Rows, outcome: str, where: str) -> None:
    """An operation that reported success is there; one that reported failure without a doubt is
    not."""
    assert found in (old, new), f"{where}: neither old nor new but {sorted(found)}"
    if outcome == "succeeded":
        assert found == new, f"{where}: reported and not there"
    if outcome == "failed":
        assert found == old, f"{where}: reported as failed and there"


def check_next_write(store: Storage, old: Rows, new: Rows, suspect: float, where: str) -> None:
    """The next writer needs no repair: its row is there beside the old or the new ones."""
    extra = ("next", "x", 100)
    opened(store, suspect=suspect).write(rows(extra), operation="upsert")
    found = read(store)
    assert found in (old | {extra}, new | {extra}), f"{where}: the next write left {sorted(found)}"


class ForeignReader:
    """hudi-rs, which reads each distinct layout of files once. `len`: how many there were."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shapes: set[tuple[str, ...]] = set()

    def __len__(self) -> int:
        return len(self.shapes)

    def read(self, store: Storage) -> Rows | None:
        """Its rows, each of them once; None for a layout that it has read."""
        shape = shape_of(store)
        if shape in self.shapes:
            return None
        self.shapes.add(shape)
        found = hudi_rs.read(dump(store, self.folder / str(len(self)))).select(SCHEMA.names).to_pylist()
        rows_of = frozenset(tuple(row.values()) for row in found)
        assert len(rows_of) == len(found), f"hudi-rs reads {found}"
        return rows_of

    def check(self, store: Storage, expected: Rows, where: str) -> None:
        """It reads the expected rows."""
        found = self.read(store)
        assert found in (None, expected), f"{where}: hudi-rs reads {sorted(found or ())}"
