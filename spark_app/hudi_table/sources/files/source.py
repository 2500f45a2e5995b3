"""`Files`: each object below a folder is taken in once, the oldest first; the folder is listed, or
a queue tells what came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_table.model.job.checkpoint import Checkpoint, SourceFile, advance, waiting
from hudi_table.sources.base import Rows
from hudi_table.sources.files.notified import Notified
from hudi_table.sources.files.reading import Told, read_files
from hudi_table.table.store.ports import ObjectInfo, Storage


def list_source(storage: Storage) -> tuple[SourceFile, ...]:
    """Every object of a source."""
    return tuple(map(_source_file, storage.list()))


def _source_file(info: ObjectInfo) -> SourceFile:
    """Its version is the store's etag, or the time of change where there is none."""
    return SourceFile(info.path, info.size, info.etag or info.modified.isoformat(), info.modified)


@dataclass(frozen=True, slots=True)
class FileBatch:
    """The files of one commit, and what the table holds once they are in it."""

    source: FilesSource
    files: tuple[SourceFile, ...]
    checkpoint: Checkpoint

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
        schema, batches = read_files(source.storage, self.files, source.format, source.csv, known, told)
        return Rows(schema, batches, self.checkpoint)


@dataclass(frozen=True, slots=True)
class FilesSource:
    """The files of the ingest `ingest`, as its attempt `attempt` sees them. `notified`: the queue
    that tells of them, None where the folder is listed."""

    storage: Storage
    format: str
    ingest: str
    attempt: str
    csv: Mapping[str, object] = field(default_factory=dict)
    notified: Notified | None = None

    def discover(self) -> tuple[SourceFile, ...]:
        """What lies there, or what the queue tells of that."""
        if self.notified is not None:
            return tuple(map(_source_file, self.notified.files()))
        return list_source(self.storage)

    def plan(self, found: tuple[SourceFile, ...], before: Checkpoint | None) -> FileBatch | None:
        """All files that wait. Behind no checkpoint those too that came before there was a
        queue."""
        refused = self.notified.refused if self.notified is not None else frozenset[str]()
        if self.notified is not None and before is None:
            found = list_source(self.storage)
        files = tuple(each for each in waiting(found, before) if each.path not in refused)
        if not files:
            return None
        listing = self._listed() if self.notified is not None else found
        return FileBatch(self, files, advance(before, self.ingest, self.attempt, files, listing))

    def _listed(self) -> Iterator[SourceFile]:
        # Only who has to know whether files are gone lists them all.
        yield from list_source(self.storage)
