"""The storage of a bootstrapped table: a skeleton opens with its source beside it, all else as it
is.

Every reader of base files opens them by `open_read`, so whatever reads or rewrites one sees whole
rows. Files of the source are opened for reading and for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hudi_table.codec.bootstrap.index import PARTITIONS, BootstrapFile, files_of
from hudi_table.codec.bootstrap.stitched import SideBySide
from hudi_table.codec.hfile.reader import HFile
from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.model.bounded import Bounded
from hudi_table.model.names import DEFAULT_PARTITION, is_skeleton, parse_base_file, unescape_partition_value
from hudi_table.model.table.config import PartitionType, TableConfig
from hudi_table.table.bootstrap.sources import bootstrap_base, open_beside, path_below
from hudi_table.table.store import threads
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.narrowed import StorageBelow
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import MetadataPort, TableContext
from hudi_table.table.timeline.schemas import table_schema

FILES_MAX = 200_000
"""Of so many files the sources are remembered."""


@dataclass(frozen=True, slots=True)
class _Reopen:
    outer: Callable[[], Storage]
    config: TableConfig
    metadata: MetadataPort = field(repr=False)

    def __call__(self) -> Storage:
        return WithSkeletons(self.outer(), "", _Table(self.config, self.metadata))


@dataclass(slots=True)
class _Table:
    """What is known of one table's sources."""

    config: TableConfig
    metadata: MetadataPort = field(repr=False)
    found: Bounded[str, dict[str, BootstrapFile]] = field(default_factory=lambda: Bounded(FILES_MAX, len))
    sources: Storage | None = None
    schema: pa.Schema | None = None
    lock: threads.Lock = field(default_factory=lambda: threads.lock(), repr=False)  # noqa: PLW0108 - looked up when it is called


@dataclass(frozen=True, slots=True)
class WithSkeletons(StorageBelow):
    """The table's storage, `outer`, of which `open_read` gives a skeleton as a `SideBySide`."""

    table: _Table

    @property
    def plain(self) -> Storage:
        """The storage that it stands before."""
        return self.outer

    @property
    def base_path(self) -> str:
        """The table's own location."""
        return self.outer.base_path

    def open_read(self, path: str) -> Any:
        """The file. Raises ObjectNotFoundError, CorruptTableError for a skeleton whose source is
        not known, is gone or has another size."""
        opened = self.outer.open_read(path)
        if not is_skeleton(path):
            return opened
        base = bootstrap_base(self.table.config)
        try:
            file = self._source_of(path)
            inner = path_below(base, file.uri)
        except BaseException:
            opened.close()
            raise
        return SideBySide(
            opened, lambda: self._open_source(path, file, inner), file.uri, lambda: self._constants(file.partition)
        )

    def reopen(self) -> Callable[[], Storage]:
        """A picklable function that opens the same storage elsewhere."""
        return _Reopen(self.outer.reopen(), self.table.config, self.table.metadata)

    def _source_of(self, path: str) -> BootstrapFile:
        partition, _, name = path.rpartition("/")
        parsed = parse_base_file(name)
        assert parsed is not None
        with self.table.lock:
            known = self.table.found.get(partition)
            if known is None:
                known = self.table.found[partition] = self._listed(partition)
        file = known.get(parsed.file_id)
        if file is None:
            raise CorruptTableError(
                f"{path} is the skeleton of a bootstrap, and {PARTITIONS} does not say which file holds its columns: "
                "restore the index from a copy",
                path=path,
            )
        return file

    def _listed(self, partition: str) -> dict[str, BootstrapFile]:
        try:
            with self.outer.open_read(PARTITIONS) as source:
                return files_of(HFile.open(source, path=PARTITIONS), partition)
        except ObjectNotFoundError:
            return {}

    def _open_source(self, path: str, file: BootstrapFile, inner: str) -> Any:
        with self.table.lock:
            if self.table.sources is None:
                self.table.sources = open_beside(self.outer, bootstrap_base(self.table.config))
            sources = self.table.sources
        try:
            source = sources.open_read(inner)
        except ObjectNotFoundError as error:
            raise CorruptTableError(
                f"{file.uri} holds the columns of {path} and is gone: bring it back, a bootstrapped table needs its sources",
                path=path,
            ) from error
        size = source.size()
        if size != file.size:
            source.close()
            raise CorruptTableError(
                f"{file.uri} holds the columns of {path}, and has {size} bytes, not the {file.size} of the bootstrap: "
                "bring back the file as it was",
                path=path,
            )
        return source

    def _constants(self, partition: str) -> Mapping[str, pa.Scalar]:
        """Columns whose values the folders of a partition tell, in the table's types."""
        config = self.table.config
        segments = partition.split("/") if partition else []
        if len(segments) != len(config.partition_by):
            return {}
        found: dict[str, pa.Scalar] = {}
        schema = self._schema()
        for item, segment in zip(config.partition_by, segments, strict=True):
            text = segment.removeprefix(f"{item.field}=") if config.hive_style else segment
            if item.type is not PartitionType.SIMPLE or item.field not in schema.names:
                continue
            text = unescape_partition_value(text) if config.url_encode else text
            value = None if text == DEFAULT_PARTITION else text
            try:
                found[item.field] = pa.scalar(value, pa.string()).cast(schema.field(item.field).type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise CorruptTableError(
                    f"the folder {partition!r} tells {item.field}, and {text!r} is no {schema.field(item.field).type}: move the partition",
                    path=partition,
                ) from error
        return found

    def _schema(self) -> pa.Schema:
        table = self.table
        if table.schema is None:
            ctx = TableContext(self.outer, table.config, SystemClock(), table.metadata)
            table.schema = table_schema(ctx, load_timeline(ctx)) or pa.schema([])
        return table.schema


def with_skeletons(ctx: TableContext) -> TableContext:
    """The table, which reads skeletons as whole base files if it has a bootstrap base path."""
    if bootstrap_base(ctx.config) and not isinstance(ctx.storage, WithSkeletons):
        ctx.storage = WithSkeletons(ctx.storage, "", _Table(ctx.config, ctx.metadata))
    return ctx
