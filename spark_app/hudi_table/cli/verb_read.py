"""`hudictl read BASE`: the rows of a table, streamed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from hudi_table.cli import exits
from hudi_table.cli.json_lines import json_lines
from hudi_table.cli.opened import opened
from hudi_table.cli.output import Column, Document, note, styled
from hudi_table.errors import InvalidOptionError
from hudi_table.model.cdc import Images
from hudi_table.read.exports import ArrowResult

TABLE_ROWS = 100
"""What `--format table` prints without `--limit`: a table is for eyes, and its widths need all rows at hand."""
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


def run(args: argparse.Namespace) -> int:
    """Print or write the rows."""
    if args.format == "parquet" and args.to is None:
        raise InvalidOptionError("--format parquet needs --to FILE: Parquet is not for a terminal")
    columns = None if args.columns is None else [name.strip() for name in args.columns.split(",")]
    limit = args.limit
    if limit is None and args.format == "table":
        limit = TABLE_ROWS + 1
    scan = _asked(args, columns, limit)
    with _sink(args.to) as sink:
        if args.format == "table":
            _table(scan, sink, cut=args.limit is None)
        elif args.format == "jsonl":
            for batch in scan.to_batches():
                sink.write(json_lines(batch))
        else:
            _parquet(scan, sink)
    return exits.GOOD


def _asked(args: argparse.Namespace, columns: list[str] | None, limit: int | None) -> ArrowResult:
    table = opened(args)
    span = {"since": args.since, "until": args.until, "full_scan": args.full_scan}
    if args.query != "cdc":
        if args.images is not None:
            raise InvalidOptionError("--images belongs to --query cdc; leave it out")
        return table.scan(columns, args.filter, as_of=args.as_of, query=args.query, limit=limit, meta=args.meta, **span)
    for name, given in (("--filter", args.filter), ("--as-of", args.as_of), ("--meta", args.meta)):
        if given:
            raise InvalidOptionError(f"{name} does not go with --query cdc; leave it out")
    return table.changes(images=args.images or Images.DATA_BEFORE_AFTER, columns=columns, limit=limit, **span)


def _table(scan: ArrowResult, sink: BinaryIO, *, cut: bool) -> None:
    found = scan.to_arrow()
    shown = found.slice(0, TABLE_ROWS) if cut else found
    columns = tuple(Column(f.name, f.name, _cell, right=any(is_a(f.type) for is_a in _NUMBERS)) for f in found.schema)
    document = Document("RowList", columns, shown.to_pylist(), data=True)
    sink.write(document.render("table", bold=sink is sys.stdout.buffer and styled(sys.stdout)).encode())
    if not shown.num_rows:
        note("no row to show")
    if found.num_rows > shown.num_rows:
        note(f"the first {TABLE_ROWS} rows; --limit N shows more, --format jsonl all")


def _cell(value: Any) -> str:
    """A value on one line."""
    if value is None:
        return "-"
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _parquet(scan: ArrowResult, sink: BinaryIO) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(sink, scan.schema, compression="zstd") as writer:
        for batch in scan.to_batches():
            writer.write_batch(batch)


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
