"""Rows on stdout or in a file: as a table for eyes, as JSON lines, as Parquet."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from hudi_table.cli.output import API_VERSION, Column, Document, note, styled
from hudi_table.codec.text.json_lines import json_lines, plain
from hudi_table.codec.text.nanoseconds import shown_rows
from hudi_table.errors import InvalidOptionError

TABLE_ROWS = 100
"""What `--format table` prints without `--limit`: a table is for eyes, and its widths need all rows
at hand."""
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


@dataclass(frozen=True, slots=True)
class Shown:
    """How rows are to be shown: `form` is `table`, `json`, `jsonl` or `parquet`, `to` a file,
    `limit` the most rows that were asked for."""

    form: str
    to: str | None = None
    limit: int | None = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> Shown:
        """From `--format`, `--to` and `--limit`. Raises InvalidOptionError for Parquet without a
        file."""
        if args.format == "parquet" and args.to is None:
            raise InvalidOptionError("--format parquet needs --to FILE: Parquet is not for a terminal")
        return cls(args.format, args.to, args.limit)

    @property
    def wanted(self) -> int | None:
        """The rows that are needed: of a table one more than is shown without a limit, so that it
        can say so."""
        return TABLE_ROWS + 1 if self.limit is None and self.form == "table" else self.limit

    def write(self, rows: pa.RecordBatchReader) -> None:
        """Print or write all of `rows`, of which there are at most `wanted`."""
        with _sink(self.to) as sink:
            if self.form == "table":
                _table(rows.read_all(), sink, cut=self.limit is None)
            elif self.form == "json":
                _json(rows, sink)
            elif self.form == "jsonl":
                for batch in rows:
                    sink.write(json_lines(batch))
            else:
                _parquet(rows, sink)


def _json(rows: pa.RecordBatchReader, sink: BinaryIO) -> None:
    """One document, as every verb prints it; the rows stream."""
    sink.write(f'{{"apiVersion": "{API_VERSION}", "kind": "RowList", "items": ['.encode())
    before = b"\n"
    for batch in rows:
        # Lines end where rows do: a newline inside a text is written as \\n.
        lines = json_lines(batch)
        if lines:
            sink.write(before + lines[:-1].replace(b"\n", b",\n"))
            before = b",\n"
    sink.write(b"\n]}\n")


def _table(rows: pa.Table, sink: BinaryIO, *, cut: bool) -> None:
    shown = rows.slice(0, TABLE_ROWS) if cut else rows
    columns = tuple(Column(f.name, f.name, _cell, right=any(is_a(f.type) for is_a in _NUMBERS)) for f in rows.schema)
    document = Document("RowList", columns, shown_rows(shown), data=True)
    seen = sink is sys.stdout.buffer and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if seen else None
    sink.write(document.render("table", bold=seen and styled(sys.stdout), width=width).encode())
    if not shown.num_rows:
        note("no row to show")
    if rows.num_rows > shown.num_rows:
        note(f"the first {TABLE_ROWS} rows; --limit N shows more, --format jsonl all")


def _cell(value: Any) -> str:
    """A value as people read it: null, texts as they are, nested values as JSON."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(plain(value), ensure_ascii=False)
    return str(value)


def _parquet(rows: pa.RecordBatchReader, sink: BinaryIO) -> None:
    import pyarrow.parquet as pq

    from hudi_table.codec.hidden_nulls import without_hidden_nulls

    with pq.ParquetWriter(sink, rows.schema, compression="zstd") as writer:
        for batch in rows:
            writer.write_batch(without_hidden_nulls(batch))


@contextmanager
def _sink(path: str | None) -> Iterator[BinaryIO]:
    """Stdout, or a file that appears when everything is in it."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
