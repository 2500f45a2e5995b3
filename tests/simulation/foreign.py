"""A writer of another engine, under the lock that it shares with ours: it knows nothing of the
decision chain, and sees what is published.

It is the library itself on a copy of the table without the chain, and what it leaves there is
carried over at one moment. So it meets no fault, and takes no time between its look and its commit,
as one does whose clock is right and whose lease is long: of Hudi's clients that is assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

import pyarrow as pa

from hudi_table.api import HudiTable
from hudi_table.model.names import TURNS
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.table.store.ports import Clock
from hudi_table.table.store.remote import ObjectStorage
from tests.simulation.checker import Step, tells_place, with_removals
from tests.simulation.store import SimStore
from tests.support.beside import OWN, carry_over, on_a_copy


def at_once(store: SimStore, clock: Clock, act: Callable[[HudiTable], object]) -> None:
    """Let it do something with the table as it is now: it lets nobody go first. Its files are
    opened whole: of ranges Arrow reads in a thread that is none of the simulated ones."""
    before = {path: data for path, data in store.objects.items() if not path.startswith((OWN, TURNS))}
    with mock.patch.object(ObjectStorage, "open_read", lambda copy, path: pa.BufferReader(copy.get(path))):
        after = on_a_copy(before, act, clock)
    carry_over(before, after, store)


def published_steps(
    published: list[tuple[float, str]],
    removed: list[tuple[float, str]],
    decided: list[tuple[float, int, bytes]],
    foreign: dict[str, str],
) -> list[Step]:
    """The steps of a table with such writers, in the order in which they were published: what was
    decided and overtaken is none. `foreign`: their writes by their instants."""
    entries = [ChainEntry.from_json(data) for _, _, data in decided]
    ours = {entry.instant: entry for entry in entries if entry.kind is Kind.COMMIT}
    aborted = {entry.instant for entry in entries if entry.kind is Kind.ABORT}
    steps: dict[str, Step] = {}
    for moment, time in published:
        entry = ours.get(time)
        write = foreign.get(time, "") if entry is None else entry.batch
        tells = entry is not None and tells_place(entry.conflict_keys)
        steps.setdefault(time, Step(moment, time, write, tells_place=tells))
    return with_removals(steps.values(), removed, aborted)
