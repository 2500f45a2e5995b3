"""The record-level indexes: keys are looked up in the partition `record_index` of the metadata
table, and no data file is opened.

One is global. A key that is found in another partition than its new row's stays there, with the new
row (`hoodie.record.index.update.partition.path=false`, as Hudi has it by default), or moves, as
keys of the other global indexes do. The other one, of Hudi 1.1, is by partition: it looks a key up
in its row's partition alone, and the same key may be in others too.

What the index tells is believed only of file groups that the snapshot has. An entry of any other
group is of a commit that the snapshot does not hold yet, or was left behind by another engine: then
the files are asked, as they are for every key where the index is not ready (there Hudi does as a
global simple index, read in public source). A commit that the snapshot does not hold and that the
index tells of already excludes this write where they meet: it wrote to the group that its entries
name.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hudi_table.errors import InvalidOptionError
from hudi_table.index.base import FileSearch, InTasks, Keys, Lookup, Routed
from hudi_table.index.lookup import LookedUp, search_slice, searched_slices
from hudi_table.index.routing import Answer, Numbers, joined_pairs
from hudi_table.index.simple import RangesOfFooters
from hudi_table.index.sorted_keys import Wanted
from hudi_table.metadata.record_index.lookup import RecordShards
from hudi_table.model.metadata_table import PARTITIONED_RECORD_INDEX, MetadataPartition
from hudi_table.model.options.values import boolean
from hudi_table.model.options.write_options import PARTITIONED_RECORD_INDEX_ENABLE, RECORD_INDEX_ENABLE
from hudi_table.model.table.config import IndexSpec, TableConfig
from hudi_table.model.table.index_properties import RECORD_INDEX_MOVES
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice


class RecordIndexWarning(UserWarning):
    """Keys are looked up in the files: no record index is ready. Building one mends it."""


@dataclass(frozen=True, slots=True)
class RecordIndex(LookedUp):
    """Looks keys up in `shards`, and where it has none in the files. `is_global`: whether in all
    partitions; `moves`: whether keys of a global one change their partition."""

    moves: bool = False
    is_global: bool = True
    shards: RecordShards | None = None

    @classmethod
    def of(cls, config: TableConfig, spec: IndexSpec, options: Mapping[str, str]) -> RecordIndex:
        """The index of a table. Raises InvalidOptionError for options that contradict it."""
        moves = spec.type.may_keep_partition and _moves(options, config.extra)
        return cls(moves, spec.type.is_global)

    def as_of(self, ctx: TableContext, timeline: Timeline) -> RecordIndex:
        """With the shards of the snapshot `timeline`; warns where there are none."""
        shards = RecordShards.load(ctx, timeline)
        if shards is None or shards.by_partition == self.is_global:
            self._warn(ctx, shards)
            shards = None
        return replace(self, shards=shards)

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """Rows of known keys to their group, others to their partition."""
        slices = searched_slices(keys, lookup, is_global=self.is_global)
        assert lookup is not None
        found, left = _looked_up(keys, lookup, slices, self.shards)
        pairs = joined_pairs([found, *self._in_files(keys, lookup, slices, left)])
        return Answer(keys, lookup, slices).routed(
            *pairs, everywhere=self.is_global, moves=self.moves or not self.is_global
        )

    def in_tasks(self, partitions: Sequence[str]) -> InTasks:
        """Tasks ask the shards. Without any they search the files, unless a key stays where it is
        found: that is for the index to say."""
        del partitions
        by_shards = self.shards is not None or (self.is_global and not self.moves)
        return InTasks(self, None if by_shards else FileSearch(), self.shards)

    def _warn(self, ctx: TableContext, shards: RecordShards | None) -> None:
        simple, enable, name = (
            ("global simple", RECORD_INDEX_ENABLE, MetadataPartition.RECORD_INDEX)
            if self.is_global
            else ("simple", PARTITIONED_RECORD_INDEX_ENABLE, PARTITIONED_RECORD_INDEX)
        )
        other = "" if shards is None else f", but one that is {'by partition' if shards.by_partition else 'global'}"
        warnings.warn(
            f"{ctx.base_path} has no {'global' if self.is_global else 'partitioned'} record index that is ready{other}: keys are looked up in the "
            f"files, as a {simple} index does; build one with {enable}=true or `hudictl metadata BASE --build --yes --index {name}`",
            RecordIndexWarning,
            stacklevel=3,
        )

    def _in_files(
        self, keys: Keys, lookup: Lookup, slices: list[FileSlice], rows: Numbers
    ) -> list[tuple[Numbers, Numbers]]:
        """The same of these rows, by the key columns of the slices that may hold them."""
        if not len(rows):
            return []
        wanted = _wanted(keys, rows, is_global=self.is_global)
        pruning = RangesOfFooters()

        def search(code: int) -> tuple[Numbers, Numbers]:
            mine = wanted["" if self.is_global else slices[code].partition]
            found = np.unique(search_slice(lookup, slices[code], mine, pruning, None).rows)
            return found, np.full(len(found), code, dtype=np.int64)

        codes = [code for code, item in enumerate(slices) if self.is_global or item.partition in wanted]
        return list(lookup.engine.imap(search, codes))


def _wanted(keys: Keys, rows: Numbers, *, is_global: bool) -> dict[str, Wanted]:
    """What is looked for, by the partition in which it is, or under '' everywhere."""
    if is_global:
        return {"": Wanted.of(keys.record_keys, rows)}
    homes = keys.partitions[rows]
    return {
        keys.partition_paths[code]: Wanted.of(keys.record_keys, rows[homes == code])
        for code in np.unique(homes).tolist()
    }


def _moves(options: Mapping[str, str], stored: Mapping[str, str]) -> bool:
    have, want = (
        boolean(RECORD_INDEX_MOVES, properties[RECORD_INDEX_MOVES])
        if properties.get(RECORD_INDEX_MOVES, "").strip()
        else None
        for properties in (stored, options)
    )
    if have is not None and want is not None and have != want:
        raise InvalidOptionError(
            f"option {RECORD_INDEX_MOVES}={str(want).lower()} contradicts the table, which stores {str(have).lower()}; remove the option"
        )
    return bool(have if want is None else want)


def _looked_up(
    keys: Keys, lookup: Lookup, slices: list[FileSlice], shards: RecordShards | None
) -> tuple[tuple[Numbers, Numbers], Numbers]:
    """((rows, positions of slices) of the keys that the index knows, rows that are to be looked for
    in the files)."""
    every = np.arange(len(keys.record_keys), dtype=np.int64)
    if shards is None:
        return (every[:0], every[:0]), every
    partitions = pa.DictionaryArray.from_arrays(pa.array(keys.partitions), pa.array(keys.partition_paths, pa.string()))
    located = shards.find(lookup.storage, keys.record_keys, partitions)
    codes = located.among(slices)
    known = np.asarray(codes.is_valid())
    # Of a data partition without shards the index tells nothing.
    shardless = every[shards.numbers(keys.record_keys, partitions) < 0]
    left = np.concatenate([located.rows[~known], shardless])
    return (located.rows[known], codes.drop_null().to_numpy().astype(np.int64)), left
