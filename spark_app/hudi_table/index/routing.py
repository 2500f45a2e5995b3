"""From pairs of a row and a slice that holds its key to what an index answers.

A key may be found more than once: inserts leave it in several files, and a log may delete a row
that a base file still holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.index.base import Keys, Lookup, Positions, Routed, Slot
from hudi_table.index.slice_keys import stored_ordering
from hudi_table.table.rows.merge import strictly_less
from hudi_table.table.view.file_system_view import FileSlice

Numbers = npt.NDArray[np.int64]


class Answer:
    """Pairs of rows and slices, put together to what an index answers."""

    def __init__(self, keys: Keys, lookup: Lookup, slices: Sequence[FileSlice]) -> None:
        self.keys, self.lookup, self.slices = keys, lookup, slices
        places = tuple(Slot(path) for path in keys.partition_paths)
        self.first = len(places)
        self.slots = places + tuple(Slot(item.partition, file_id=item.file_id) for item in slices)
        number = {path: code for code, path in enumerate(keys.partition_paths)}
        self.homes = np.array([number.setdefault(item.partition, len(number)) for item in slices], dtype=np.int64)

    def routed(self, rows: Numbers, codes: Numbers, *, everywhere: bool, moves: bool = True) -> Routed:
        """Pairs at home send a row to its group, further ones copy it there; where keys are unique
        `everywhere` the others delete.

        Home is the partition of the row; unless keys `moves` it is that of the first pair for a row
        which is found elsewhere alone.
        """
        order = np.lexsort((codes, rows))
        rows, codes = rows[order], codes[order]
        homes = self.keys.partitions[rows].astype(np.int64)
        if not moves:
            homes = self._kept(rows, codes, homes)
        home = self.homes[codes] == homes
        answer = self.keys.partitions.astype(np.int32).copy()
        _, firsts = np.unique(rows[home], return_index=True)
        chosen = np.flatnonzero(home)[firsts]
        answer[rows[chosen]] = codes[chosen] + self.first
        further = home.copy()
        further[chosen] = False
        leaving = ~home if everywhere else np.zeros(len(rows), dtype=bool)
        if moves and self.lookup.ordering_field is not None and self.keys.ordering is not None and leaving.any():
            leaving, ignored = self._by_event_time(rows, codes, leaving)
            answer[ignored] = -1
        slots = (codes + self.first).astype(np.int32)
        return Routed(self.slots, answer, rows[leaving], slots[leaving], rows[further], slots[further])

    def _kept(self, rows: Numbers, codes: Numbers, homes: Numbers) -> Numbers:
        """The home of each pair where a key stays in the partition in which it is found, if it is
        not found in the row's own."""
        if not len(rows):
            return homes
        begins = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
        at_home = np.logical_or.reduceat(self.homes[codes] == homes, begins)
        kept = np.where(at_home, homes[begins], self.homes[codes[begins]])
        return np.repeat(kept, np.diff(np.r_[begins, len(rows)]))

    def _by_event_time(
        self, rows: Numbers, codes: Numbers, leaving: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.bool_], Positions]:
        """(pairs that leave all the same, rows to ignore): a stored row that is newer stays where
        it is."""
        assert self.lookup.ordering_field is not None
        assert self.keys.ordering is not None
        kept = np.zeros(len(rows), dtype=bool)
        ignored = [np.empty(0, dtype=np.int64)]
        for code in np.unique(codes[leaving]).tolist():
            pairs = np.flatnonzero(leaving & (codes == code))
            wanted = self.keys.record_keys.take(pa.array(rows[pairs]))
            places, values = stored_ordering(self.lookup, self.slices[code], wanted, self.lookup.ordering_field)
            found = pairs[places.to_numpy(zero_copy_only=False).astype(np.int64)]
            older = strictly_less(self.keys.ordering.take(pa.array(rows[found])), values)
            ignored.append(rows[found[older]])
            kept[found[~older]] = True
        return kept, np.concatenate(ignored)


def no_pairs() -> tuple[Numbers, Numbers]:
    """Nothing found."""
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


def joined_pairs(pairs: Sequence[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Pairs from several searches, `pairs` not empty."""
    return np.concatenate([rows for rows, _ in pairs]), np.concatenate([codes for _, codes in pairs])
