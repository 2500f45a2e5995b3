"""The simple indexes: look the keys up in the key columns of the base files, and of logs.

Simple looks into the partition of the incoming row only, global simple everywhere. Files whose key range, from the footer,
meets no incoming key are not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_table.index.base import Keys, Lookup, Routed, Slot
from hudi_table.index.lookup import OpenBase, existing_groups, route_by_lookup, searched_slices
from hudi_table.index.wanted import Candidates, Wanted
from hudi_table.table.view import FileSlice


class RangesOfFooters:
    """Prunes by the range of keys in a file's footer."""

    def candidates(self, file: OpenBase, wanted: Wanted) -> Candidates:
        """The wanted keys within the file's range."""
        return wanted.between(wanted.span(file.footer.min_key, file.footer.max_key))


@dataclass(frozen=True, slots=True)
class SimpleIndex:
    """Looks keys up in base files; `is_global` decides whether in all partitions."""

    is_global: bool = False

    @property
    def reads_snapshot(self) -> bool:
        """True: the keys are in the files."""
        return True

    def groups(self, slices: Iterable[FileSlice]) -> dict[Slot, FileSlice]:
        """Slot of every group."""
        return existing_groups(list(slices))

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """Rows of known keys to their group, others to their partition."""
        slices = searched_slices(keys, lookup, is_global=self.is_global)
        assert lookup is not None
        return route_by_lookup(keys, lookup, slices, RangesOfFooters(), is_global=self.is_global)
