"""The bloom indexes: ask a file's filter before its key column is read.

Of a base file's keys first the range says which incoming ones it may hold, then its bloom filter; the key column is read only
if some are left, to be sure (a filter errs, by default once in 10^9 keys, and more where it is too full). A file without a
filter, such as one that a writer of another index left, is read in full. Keys that are only in logs are looked for there.

Hudi's options: `hoodie.bloom.index.prune.by.ranges=false` asks every filter for every key;
`hoodie.bloom.index.use.treebased.filter` says by which search ranges are compared and changes no result. Facts (measured on Hudi
0.15.0 and 1.1.1): their bloom index fails on a file without a filter, and looks into no log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.errors import CorruptTableError
from hudi_table.index.lookup import OpenBase, SearchingIndex
from hudi_table.index.sorted_keys import Candidates, Wanted
from hudi_table.table.view.file_system_view import FileSlice


@dataclass(frozen=True, slots=True)
class FileFilter:
    """What is known of the keys of one base file: their range, if any, and how to get the filter, None if there is none."""

    smallest: str | None
    largest: str | None
    bloom: Callable[[], BloomFilter | None]


class Filters(Protocol):
    """Where the filters of base files come from. Picklable: they travel to the tasks that ask them."""

    @property
    def at_once(self) -> int:
        """How many files one request tells of; 1 where each file tells of itself."""
        ...

    def filters_of(self, slices: Sequence[FileSlice]) -> Callable[[OpenBase], FileFilter]:
        """A function that tells a file's filter, for base files of these slices. What is fetched at once is fetched when the first file of it is asked for.

        The function is called on several threads, and opens the file only if it takes the filter from there. Raises
        CorruptTableError for a filter that cannot be parsed.
        """
        ...


class FilterInFooter:
    """Filters and ranges from the footers of the files themselves."""

    at_once = 1

    def filters_of(self, slices: Sequence[FileSlice]) -> Callable[[OpenBase], FileFilter]:
        """Each footer is read when its file is asked for."""
        del slices
        return _in_footer


def _in_footer(file: OpenBase) -> FileFilter:
    footer = file.footer

    def bloom() -> BloomFilter | None:
        try:
            return footer.bloom()
        except CorruptTableError as error:
            error.path = file.base.path
            raise

    return FileFilter(footer.min_key, footer.max_key, bloom)


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
    """Looks keys up by bloom filters; `is_global` decides whether in all partitions."""

    prune_by_ranges: bool = True
    filters: Filters = field(default_factory=FilterInFooter)
    asks_filters: ClassVar[bool] = True

    def pruning(self, slices: Sequence[FileSlice]) -> BloomPruning:
        """The pruning of these slices' base files."""
        return BloomPruning(self.filters.filters_of(slices), self.prune_by_ranges)
