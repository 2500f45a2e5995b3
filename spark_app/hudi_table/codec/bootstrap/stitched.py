"""A skeleton and its source as one base file: their rows side by side, by position.

Facts (measured on Hudi 0.15.0): a skeleton holds the five meta columns of the source's rows, in
their order, and the filter and range of keys in its footer. A column that only folders name is in
neither: Hudi reads it from the partition path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from hudi_table.codec.parquet import Asked, BaseFileFooter, Stitched, read_batches, read_footer
from hudi_table.errors import CorruptTableError
from hudi_table.model.names import ALL_META_COLUMNS


@dataclass(slots=True)
class SideBySide(Stitched):
    """A skeleton, open, and the file that `open_source` opens when a column of it is asked for.

    `constants`: columns of the table that are the same in every row, where the source lacks them.
    A projection of the meta columns alone never opens the source, and one of the source's columns
    reads no page of the skeleton. `row_groups` are those of the source. `source_name` is for
    messages.
    """

    skeleton: Any
    open_source: Callable[[], Any]
    source_name: str
    constants: Callable[[], Mapping[str, pa.Scalar]] = field(default=dict)
    _source: Any = None
    _footers: tuple[BaseFileFooter, BaseFileFooter] | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close both files."""
        for file in (self.skeleton, self._source):
            if file is not None:
                file.close()

    def footer(self, path: str) -> BaseFileFooter:
        """Keys and filter of the skeleton, columns of both; row groups and statistics are those of
        the source. Raises CorruptTableError if they have not as many rows."""
        skeleton, source = self._both(path)
        own = [each for each in source.schema if each.name not in skeleton.schema.names]
        names = {each.name for each in own}
        more = [pa.field(name, value.type) for name, value in self.constants().items() if name not in names]
        return replace(
            skeleton,
            schema=pa.schema([*skeleton.schema, *own, *more]),
            row_groups=source.row_groups,
            metadata=source.metadata,
            avro_schema=None,
        )

    def batches(self, asked: Asked) -> Iterator[pa.RecordBatch]:
        """See `read_batches`."""
        if asked.row_groups is None and asked.columns and set(asked.columns) <= set(ALL_META_COLUMNS):
            yield from _read(self.skeleton, replace(asked, metadata=None))
            return
        skeleton, source = self._both(asked.path)
        meta = set(skeleton.schema.names)
        constants = self.constants()
        have = [*skeleton.schema.names, *(name for name in source.schema.names if name not in meta)]
        have += [name for name in constants if name not in have]
        wanted = have if asked.columns is None else [name for name in asked.columns if name in have]
        left = [name for name in wanted if name in meta]
        right = [name for name in wanted if name not in meta and name in source.schema.names]
        for batch in self._pasted(asked, left, right):
            columns = [
                batch.column(name) if name in batch.schema.names else pa.repeat(constants[name], len(batch))
                for name in wanted
            ]
            yield pa.RecordBatch.from_arrays(columns, wanted) if wanted else batch.select([])

    def _pasted(self, asked: Asked, left: list[str], right: list[str]) -> Iterator[pa.RecordBatch]:
        _, source = self._both(asked.path)
        groups = range(len(source.row_groups)) if asked.row_groups is None else asked.row_groups
        starts = [0]
        for group in source.row_groups:
            starts.append(starts[-1] + group.rows)
        spans = [(starts[group], starts[group + 1]) for group in groups]
        if left and not right:
            yield from self._meta(asked, left, spans)
            return
        of_source = replace(asked, columns=right, path=self.source_name, metadata=source.metadata)
        rows = _read(self._opened(), of_source)
        yield from rows if not left else _beside(self._meta(asked, left, spans), rows)

    def _meta(self, asked: Asked, names: list[str], spans: Sequence[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        """The skeleton's columns of some rows: from row to row, in this order."""
        skeleton, _ = self._both(asked.path)
        starts = [0]
        for group in skeleton.row_groups:
            starts.append(starts[-1] + group.rows)
        for first, stop in _joined(spans):
            for number, group in enumerate(skeleton.row_groups):
                at = starts[number]
                if at >= stop or at + group.rows <= first:
                    continue
                of_group = replace(asked, columns=names, row_groups=[number], metadata=skeleton.metadata)
                for batch in _read(self.skeleton, of_group):
                    low, high = max(first, at), min(stop, at + len(batch))
                    if low < high:
                        yield batch.slice(low - at, high - low)
                    at += len(batch)
                    if at >= stop:
                        break

    def _both(self, path: str) -> tuple[BaseFileFooter, BaseFileFooter]:
        if self._footers is None:
            skeleton = read_footer(self.skeleton, path=path)
            source = read_footer(self._opened(), path=self.source_name)
            if skeleton.rows != source.rows:
                raise CorruptTableError(
                    f"{path} is the skeleton of {skeleton.rows} rows, and its source {self.source_name} holds {source.rows}: "
                    "the source was changed since the table was bootstrapped; bring it back from a copy",
                    path=path,
                )
            self._footers = skeleton, source
        return self._footers

    def _opened(self) -> Any:
        if self._source is None:
            self._source = self.open_source()
        return self._source


def _read(source: Any, asked: Asked) -> Iterator[pa.RecordBatch]:
    return read_batches(
        source,
        asked.columns,
        path=asked.path,
        batch_rows=asked.batch_rows,
        batch_bytes=asked.batch_bytes,
        row_groups=asked.row_groups,
        dictionary_columns=asked.dictionary_columns,
        metadata=asked.metadata,
    )


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbours as one."""
    found: list[tuple[int, int]] = []
    for first, stop in spans:
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((first, stop))
    return found


def _beside(left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The columns of both, row by row; both have as many rows."""
    mine = next(left, None)
    for other in right:
        at = 0
        while at < len(other):
            if mine is None or not len(mine):
                mine = next(left)
                continue
            rows = min(len(mine), len(other) - at)
            pair = [*mine.slice(0, rows).columns, *other.slice(at, rows).columns]
            yield pa.RecordBatch.from_arrays(pair, [*mine.schema.names, *other.schema.names])
            mine, at = mine.slice(rows), at + rows
