"""`Files`: each object below a folder is taken in once, the oldest first; the folder is listed, or
a queue tells what came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import pyarrow as pa

from hudi_table.model.job.checkpoint import Checkpoint, SourceFile, advance, waiting
from hudi_table.model.job.ranges import Range
from hudi_table.sources.base import Rows
from hudi_table.sources.files.notified import Notified
from hudi_table.sources.files.reading import Form, Told, read_files
from hudi_table.table.store.ports import ObjectInfo, Storage


def list_source(storage: Storage) -> tuple[SourceFile, ...]:
    """Every object of a source."""
    return tuple(map(_source_file, storage.list()))


def _source_file(info: ObjectInfo) -> SourceFile:
    """Its version is the store's etag, or the time of change where there is none."""
    return SourceFile(info.path, info.size, info.etag or info.modified.isoformat(), info.modified)


@dataclass(frozen=True, slots=True)
class FileBatch:
    """The files of one commit, and what the table holds once they are in it. `more`: whether others
    wait."""

    source: FilesSource
    files: tuple[SourceFile, ...]
    checkpoint: Checkpoint
    more: bool = False

    @property
    def name(self) -> str:
        """Of this set of files."""
        return self.checkpoint.batch

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(f.size for f in self.files)

    def read(self, known: pa.Schema | None, told: Told | None = None) -> Rows[Checkpoint]:
        """All their rows, with the union of their columns. `told`: see `read_files`."""
        source = self.source
        schema, batches = read_files(source.storage, self.files, source.form(known), told)
        return Rows(schema, batches, self.checkpoint)


@dataclass(frozen=True, slots=True)
class FilesSource:
    """The files of the ingest `ingest`, as its attempt `attempt` sees them. `notified`: the queue
    that tells of them, None where the folder is listed. `max_bytes`: size of the files of one
    batch, of which one may be larger; 0 for all that wait. `within`: those of a range alone.
    `whole`: see `Form`."""

    storage: Storage
    format: str
    ingest: str
    attempt: str
    csv: Mapping[str, object] = field(default_factory=dict)
    notified: Notified | None = None
    max_bytes: int = 0
    within: Range | None = None
    whole: bool = False

    def form(self, known: pa.Schema | None) -> Form:
        """How they are read, where the types of these columns are said."""
        return Form(self.format, self.csv, known, self.whole)

    def discover(self) -> tuple[SourceFile, ...]:
        """What lies there, or what the queue tells of that."""
        if self.notified is not None:
            return tuple(map(_source_file, self.notified.files()))
        found = list_source(self.storage)
        return self.within.files(found) if self.within is not None else found

    def plan(self, found: tuple[SourceFile, ...], before: Checkpoint | None) -> FileBatch | None:
        """All files that wait, or the oldest. Behind no checkpoint those too that came before there
        was a queue: all of them, for behind the first commit nobody lists them any more."""
        refused = self.notified.refused if self.notified is not None else frozenset[str]()
        first = self.notified is not None and before is None
        if first:
            found = list_source(self.storage)
        waits = tuple(each for each in waiting(found, before) if each.path not in refused)
        if not waits:
            return None
        files = waits if first else waits[: self._fitting(waits)]
        listing = self._listed() if self.notified is not None else found
        checkpoint = advance(before, self.ingest, self.attempt, files, listing)
        return FileBatch(self, files, checkpoint, len(files) < len(waits))

    def _fitting(self, files: tuple[SourceFile, ...]) -> int:
        """How many of the first fit into one batch, at least one."""
        sums = accumulate(each.size for each in files)
        return max(1, sum(size <= self.max_bytes for size in sums)) if self.max_bytes else len(files)

    def _listed(self) -> Iterator[SourceFile]:
        # Only who has to know whether files are gone lists them all.
        yield from list_source(self.storage)
