"""The bloom indexes: ask a file's filter before its key column is read.

Of a base file's keys first the range says which incoming ones it may hold, then its bloom filter;
the key column is read only if some are left, to be sure (a filter errs, by default once in 10^9
keys, and more where it is too full). A file without a filter, such as one that a writer of another
index left, is read in full. Keys that are only in logs are looked for there.

Hudi's options: `hoodie.bloom.index.prune.by.ranges=false` asks every filter for every key;
`hoodie.bloom.index.use.treebased.filter` says by which search ranges are compared and changes no
result. Facts (measured on Hudi 0.15.0 and 1.1.1): their bloom index fails on a file without a
filter, and looks into no log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hudi_table.index.base import FileSearch, InTasks
from hudi_table.index.filters import FileFilter, FilterInFooter, Filters, OpenBase
from hudi_table.index.lookup import SearchingIndex
from hudi_table.index.sorted_keys import Candidates, Wanted
from hudi_table.index.stored_filters import FiltersOfMetadata
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.table.config import IndexSpec, TableConfig
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice


@dataclass(frozen=True, slots=True)
class BloomPruning:
    """Prunes by range (if asked to) and filter."""

    filter_of: Callable[[OpenBase], FileFilter]
    by_ranges: bool = True

    def candidates(self, file: OpenBase, wanted: Wanted) -> Candidates:
        """The wanted keys that the file's filter may contain."""
        known = self.filter_of(file)
        span = wanted.span(known.smallest, known.largest) if self.by_ranges else (0, len(wanted.rows))
        sought = wanted.between(span)
        if len(sought.rows) == 0:
            return sought
        bloom = known.bloom()
        if bloom is None:
            return sought
        found = (
            bloom.might_contain(sought.keys)
            if wanted.prepared is None
            else bloom.might_contain_prepared(wanted.prepared, *span)
        )
        return sought.take(np.flatnonzero(found))


@dataclass(frozen=True, slots=True)
class BloomIndex(SearchingIndex):
    """Looks keys up by bloom filters; `is_global` decides whether in all partitions. `by_metadata`:
    filters and ranges are those of the metadata table, where it has them."""

    prune_by_ranges: bool = True
    by_metadata: bool = False
    filters: Filters = field(default_factory=FilterInFooter)

    @classmethod
    def of(cls, config: TableConfig, spec: IndexSpec, options: Mapping[str, str]) -> BloomIndex:
        """The index of a table. Raises InvalidOptionError."""
        del config
        chosen = WriteOptions.parse(options)
        return cls(spec.type.is_global, chosen.bloom_by_ranges, chosen.bloom_by_metadata)

    @property
    def needs_filters(self) -> bool:
        """True: a file without one is read in full."""
        return True

    def as_of(self, ctx: TableContext, timeline: Timeline) -> BloomIndex:
        """With the filters of the metadata table, if it is to ask them and they are ready; else
        those of footers."""
        stored = FiltersOfMetadata.of(ctx, timeline) if self.by_metadata else None
        return self if stored is None else replace(self, filters=stored)

    def pruning(self, slices: Sequence[FileSlice]) -> BloomPruning:
        """The pruning of these slices' base files."""
        return BloomPruning(self.filters.filters_of(slices), self.prune_by_ranges)

    def in_tasks(self, partitions: Sequence[str]) -> InTasks:
        """Tasks ask the filters, and search the files that are left."""
        del partitions
        return InTasks(self, FileSearch(self.filters, self.prune_by_ranges))
