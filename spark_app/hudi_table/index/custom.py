"""Indexes of other packages: found by the name of an entry point, checked wherever they answer.

A package offers an index in the entry-point group `hudi_table.indexes`: name = the table's
`hoodie.index.class`, value = a function of the table's config and of the settings that are stored
with the table, which returns a `KeyIndex`. A table stores names and texts, never code. The package
has to be installed where rows are written; readers need nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from hudi_table.errors import HudiError, InvalidOptionError, InvalidRequestError, InvariantError
from hudi_table.index.base import InTasks, Keys, Lookup, Routed, Slot
from hudi_table.index.lookup import LookedUp
from hudi_table.model.counts import counted
from hudi_table.model.table.config import IndexSpec, TableConfig
from hudi_table.table.view.file_system_view import FileSlice

GROUP = "hudi_table.indexes"
OURS = {"postgres": "hudi_table.index.keystore.external:postgres_index"}
"""Indexes of this library that are offered the same way: what they need is installed by an
extra."""

T = TypeVar("T")


class KeyIndex(Protocol):
    """What a package offers. It says where known keys are; new ones go where their partition has
    room.

    It may also have methods `learn(lookup: Lookup) -> None`, which is called after each commit of
    this library with what the table holds then, and `for_tasks() -> KeyIndex`, what travels to
    tasks of Spark in its place. So it is picklable, and opens connections when it is asked.
    """

    @property
    def is_global(self) -> bool:
        """Whether a key is unique across partitions."""
        ...

    def route(self, keys: Keys, lookup: Lookup) -> Routed:
        """The slot of every row: a file group of `lookup.slices` in the row's partition, or the
        partition alone; -1 ignores the row. A global index names in `deletes` the groups of other
        partitions that hold the key."""
        ...


def custom_index(config: TableConfig, spec: IndexSpec) -> CustomIndex:
    """The index that the spec names, for a table.

    Raises InvalidOptionError if no package, or more than one, offers the name, InvalidRequestError
    if it cannot be loaded or refuses the table.
    """
    name = spec.class_name
    entries = list({entry.value: entry for entry in _offered() if entry.name == name}.values())
    if not entries:
        known = sorted({entry.name for entry in _offered()})
        raise InvalidOptionError(
            f"no installed package offers an index {name!r} (hoodie.index.class); install the one that does"
            f", or use one of {', '.join(known)}"
        )
    if len(entries) > 1:
        offers = ", ".join(sorted(entry.value for entry in entries))
        raise InvalidOptionError(f"several packages offer an index {name!r}: {offers}; remove all but one")
    factory = _call_custom(name, "cannot be loaded", entries[0].load)
    inner = _call_custom(name, "does not take this table", lambda: factory(config, dict(spec.settings)))
    is_global = _call_custom(name, "does not say whether it is global", lambda: inner.is_global)
    return CustomIndex(name, inner, bool(is_global))


def _offered() -> list[metadata.EntryPoint]:
    ours = [metadata.EntryPoint(name, value, GROUP) for name, value in OURS.items()]
    return [*ours, *metadata.entry_points(group=GROUP)]


@dataclass(frozen=True, slots=True)
class CustomIndex(LookedUp):
    """An index of another package. What it answers is checked, and what it raises is reported as
    its own."""

    name: str
    inner: KeyIndex
    is_global: bool = False

    @classmethod
    def of(cls, config: TableConfig, spec: IndexSpec, options: Mapping[str, str]) -> CustomIndex:
        """The index that the spec names, for a table; raises as `custom_index` does."""
        del options
        return custom_index(config, spec)

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """What the package's index answers. Raises InvalidRequestError if that cannot be, and what
        it raises itself."""
        if lookup is None:
            raise InvariantError(f"the index {self.name!r} was asked to route without a snapshot")
        routed = _call_custom(self.name, "failed", lambda: self.inner.route(keys, lookup))
        fault = routed_fault(routed, keys, self.groups(lookup.slices))
        if fault:
            raise InvalidRequestError(f"the index {self.name!r} {fault}; nothing was written, mend its package")
        return routed

    def in_tasks(self, partitions: Sequence[str]) -> InTasks:
        """Tasks ask what it sends to them."""
        del partitions
        made: Callable[[], KeyIndex] | None = getattr(self.inner, "for_tasks", None)
        return InTasks(
            self if made is None else replace(self, inner=_call_custom(self.name, "cannot travel to tasks", made))
        )

    def learn(self, snapshot: Callable[[], Lookup]) -> None:
        """Tell it what the table holds after a commit, if it wants to know."""
        learn: Callable[[Lookup], None] | None = getattr(self.inner, "learn", None)
        if learn is not None:
            lookup = snapshot()
            _call_custom(self.name, "failed to take a commit in", lambda: learn(lookup))


def routed_fault(routed: Any, keys: Keys, groups: Mapping[Slot, FileSlice]) -> str:
    """What is wrong with an answer, '' for nothing: a row must stay in its partition, and a group
    must be there."""
    if not isinstance(routed, Routed):
        return f"returned {type(routed).__name__}, not Routed"
    rows, slots = len(keys.record_keys), routed.slots
    strange = [slot for slot in slots if slot.bucket is not None or (slot.file_id is not None and slot not in groups)]
    if strange:
        return f"names {strange[0]}, which is no file group of the snapshot"
    if len(routed.codes) != rows:
        return f"routed {counted(len(routed.codes), 'row')} of {rows}"
    pairs = ((routed.deletes, routed.delete_codes, "deletes"), (routed.copies, routed.copy_codes, "copies"))
    for places, codes, what in pairs:
        if len(places) != len(codes) or _beyond(places, rows, 0) or _beyond(codes, len(slots), 0):
            return f"has {what} of rows or slots that are not there"
    if _beyond(routed.codes, len(slots), -1):
        return f"has codes outside -1 to {len(slots) - 1}"
    kept = np.flatnonzero(routed.codes >= 0)
    moved = _strays(keys, slots, kept, routed.codes[kept]) or _strays(keys, slots, routed.copies, routed.copy_codes)
    if moved:
        return f"sends a row of partition {moved[0]!r} to partition {moved[1]!r}"
    lost = [slots[code] for code in np.unique(routed.delete_codes).tolist() if slots[code].file_id is None]
    return f"deletes in {lost[0]}, which is no file group" if lost else ""


def _strays(
    keys: Keys, slots: tuple[Slot, ...], rows: npt.NDArray[Any], codes: npt.NDArray[Any]
) -> tuple[str, str] | None:
    """(own partition, partition of the slot) of a row that would leave its partition."""
    pairs = np.unique(np.stack([keys.partitions[rows].astype(np.int64), codes.astype(np.int64)]), axis=1)
    for number, code in pairs.T.tolist():
        if keys.partition_paths[number] != slots[code].partition:
            return keys.partition_paths[number], slots[code].partition
    return None


def _beyond(values: npt.NDArray[Any], end: int, start: int) -> bool:
    return len(values) > 0 and (int(values.min()) < start or int(values.max()) >= end)


def _call_custom(name: str, what: str, call: Callable[[], T]) -> T:
    """What a stranger's code returns. Its errors of this library pass; everything else is an
    InvalidRequestError."""
    try:
        return call()
    except HudiError:
        raise
    except Exception as error:
        raise InvalidRequestError(
            f"the index {name!r} {what}: {type(error).__name__}: {error}; nothing was written, mend or replace its package"
        ) from error
