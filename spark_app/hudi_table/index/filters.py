"""What a base file tells of its keys before they are read: the range of them, and a bloom
filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, Self

import pyarrow.parquet as pq

from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.codec.parquet import BaseFileFooter, read_footer
from hudi_table.errors import CorruptTableError
from hudi_table.table.store.ports import Storage
from hudi_table.table.view.file_system_view import BaseFile, FileSlice


class OpenBase:
    """A base file that is opened when something of it is first needed, once."""

    def __init__(self, storage: Storage, base: BaseFile) -> None:
        self.base = base
        self.storage = storage
        self._source: Any = None
        self._footer: BaseFileFooter | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def source(self) -> Any:
        """The open file."""
        if self._source is None:
            self._source = self._stack.enter_context(self.storage.open_read(self.base.path))
        return self._source

    @property
    def metadata(self) -> pq.FileMetaData | None:
        """Parquet's own metadata, if the footer was read already."""
        return None if self._footer is None else self._footer.metadata

    @property
    def footer(self) -> BaseFileFooter:
        """The file's footer. Raises CorruptTableError."""
        if self._footer is None:
            self._footer = read_footer(self.source, path=self.base.path)
        return self._footer


@dataclass(frozen=True, slots=True)
class FileFilter:
    """What is known of the keys of one base file: their range, if any, and how to get the filter,
    None if there is none."""

    smallest: str | None
    largest: str | None
    bloom: Callable[[], BloomFilter | None]


class Filters(Protocol):
    """Where the filters of base files come from. Picklable: they travel to the tasks that ask
    them."""

    @property
    def at_once(self) -> int:
        """How many files one request tells of; 1 where each file tells of itself."""
        ...

    def filters_of(self, slices: Sequence[FileSlice]) -> Callable[[OpenBase], FileFilter]:
        """A function that tells a file's filter, for base files of these slices. What is fetched at
        once is fetched when the first file of it is asked for.

        The function is called on several threads, and opens the file only if it takes the filter
        from there. Raises CorruptTableError for a filter that cannot be parsed.
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
