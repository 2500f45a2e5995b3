"""The simple indexes: look the keys up in the key columns of the base files, and of logs.

Simple looks into the partition of the incoming row only, global simple everywhere. Files whose key
range, from the footer, meets no incoming key are not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudi_table.index.base import FileSearch, InTasks
from hudi_table.index.filters import OpenBase
from hudi_table.index.lookup import SearchingIndex
from hudi_table.index.sorted_keys import Candidates, Wanted
from hudi_table.model.table.config import IndexSpec, TableConfig
from hudi_table.table.view.file_system_view import FileSlice


class RangesOfFooters:
    """Prunes by the range of keys in a file's footer."""

    def candidates(self, file: OpenBase, wanted: Wanted) -> Candidates:
        """The wanted keys within the file's range."""
        return wanted.between(wanted.span(file.footer.min_key, file.footer.max_key))


@dataclass(frozen=True, slots=True)
class SimpleIndex(SearchingIndex):
    """Looks keys up in base files; `is_global` decides whether in all partitions."""

    @classmethod
    def of(cls, config: TableConfig, spec: IndexSpec, options: Mapping[str, str]) -> SimpleIndex:
        """The index of a table."""
        del config, options
        return cls(spec.type.is_global)

    def pruning(self, slices: Sequence[FileSlice]) -> RangesOfFooters:
        """The same for all slices."""
        del slices
        return RangesOfFooters()

    def in_tasks(self, partitions: Sequence[str]) -> InTasks:
        """Tasks search the files."""
        del partitions
        return InTasks(self, FileSearch())
