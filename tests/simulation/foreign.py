"""A writer of another engine, under the lock that it shares with ours: it knows nothing of the
decision chain, and sees what is published.

It is the library itself on a copy of the table without the chain, and what it leaves there is
carried over at one moment. So it meets no fault, and takes no time between its look and its commit,
as one does whose clock is right and whose lease is long: of Hudi's clients that is assumed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.model.names import CHAIN
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Clock
from tests.simulation.checker import Step, tells_place
from tests.simulation.store import SimStore


def at_once(store: SimStore, clock: Clock, act: Callable[[HudiTable], str]) -> str:
    """Let it do something with the table as it is now. Returns what it returns."""
    copy = open_storage(f"memory://{uuid.uuid4().hex}/table")
    before = {path: data for path, data in store.objects.items() if not path.startswith(CHAIN)}
    for path, data in before.items():
        copy.put(path, data)
    found = act(HudiTable(open_context(copy, clock)))
    after = {info.path: copy.get(info.path) for info in copy.list() if not info.path.startswith(CHAIN)}
    for path in before.keys() - after.keys():
        store.delete(path)
    # Data first, as whoever publishes does.
    for path in sorted(after, key=lambda path: path.startswith(".hoodie/")):
        if before.get(path) != after[path]:
            store.put(path, after[path])
    return found


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
    gone = [Step(moment, time, is_removal=True) for moment, time in removed if time in aborted and time in steps]
    return sorted([*steps.values(), *gone], key=lambda step: step.moment)
