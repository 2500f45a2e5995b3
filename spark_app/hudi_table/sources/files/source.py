"""`Files`: each object below a folder is taken in once, the oldest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_table.model.job.checkpoint import Checkpoint, SourceFile, advance, waiting
from hudi_table.sources.base import Rows
from hudi_table.sources.files.reading import read_files
from hudi_table.table.store.ports import Storage


def list_source(storage: Storage) -> tuple[SourceFile, ...]:
    """Every object of a source. Its version is the store's etag, or the time of change where there
    is none."""
    found = storage.list()
    return tuple(SourceFile(f.path, f.size, f.etag or f.modified.isoformat(), f.modified) for f in found)


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

    def read(self, known: pa.Schema | None) -> Rows[Checkpoint]:
        """All their rows, with the union of their columns."""
        source = self.source
        schema, batches = read_files(source.storage, self.files, source.format, source.csv, known)
        return Rows(schema, batches, self.checkpoint)


@dataclass(frozen=True, slots=True)
class FilesSource:
    """The files of the ingest `ingest`, as its attempt `attempt` sees them."""

    storage: Storage
    format: str
    ingest: str
    attempt: str
    csv: Mapping[str, object] = field(default_factory=dict)

    def discover(self) -> tuple[SourceFile, ...]:
        """What lies there."""
        return list_source(self.storage)

    def plan(self, found: tuple[SourceFile, ...], before: Checkpoint | None) -> FileBatch | None:
        """All files that wait."""
        files = waiting(found, before)
        if not files:
            return None
        return FileBatch(self, files, advance(before, self.ingest, self.attempt, files, found))
