"""CSV and JSON lines of a source file as Arrow.

Facts (pyarrow 26): what reads a CSV takes a null by the same words in all columns, refuses a moment
without a zone where one is asked for, and rounds numbers of doubles. So values come as text, and
become what their column holds here. What reads JSON as a stream keeps to the fields of its first
block. So blocks are cut here, where a line ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.model.names import ALL_META_COLUMNS
from hudi_table.sources.formats.json import (
    MIXED,
    WHOLE,
    exceeds,
    from_text,
    is_text,
    moments,
    read_lines,
)
from hudi_table.sources.formats.unions import united

HEAD_BYTES = 1 << 20
"""Of a CSV, from which the types are inferred that nobody has said."""
BLOCK_BYTES = 4 << 20
_ROW = re.compile(r" in row (\d+)$")
_IS_WHOLE, _IS_LONG = r"^\s*[-+]?\d+\s*$", r"^\s*[-+]?\d{16,}\s*$"
_MOMENT = pa.timestamp("us", tz="UTC")
Csv = Mapping[str, object]


def csv_schema(source: Any, csv: Csv, known: pa.Schema) -> pa.Schema:
    """The columns of a CSV. Raises ValueError, as pa.ArrowInvalid is one."""
    import pyarrow.csv as reading

    head = next(_blocks(source, HEAD_BYTES), b"")

    def read(texts: list[str], only: list[str] | None = None) -> pa.Table:
        options = reading.ConvertOptions(
            column_types=dict.fromkeys(texts, pa.string()),
            include_columns=only,
            null_values=[""],
            strings_can_be_null=True,
        )
        return reading.read_csv(pa.BufferReader(head), *_options(csv), options)

    found = read(known.names)
    doubles = [f.name for f in found.schema if f.name not in known.names and pt.is_floating(f.type)]
    texts = read(doubles, doubles) if doubles else found.select([])
    whole = {name for name in doubles if _all(texts.column(name), _IS_WHOLE)}
    said_of = {field.name: field.type for field in known}
    return pa.schema([(f.name, said_of.get(f.name) or _inferred(f, whole)) for f in found.schema])


def _inferred(field: pa.Field, whole: set[str]) -> pa.DataType:
    if pt.is_timestamp(field.type):
        return _MOMENT  # without a zone it is UTC
    return WHOLE if field.name in whole else field.type


def csv_batches(source: Any, csv: Csv, types: pa.Schema, known: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in these types, of which those of `known` are said and the others inferred. Raises
    ValueError."""
    import pyarrow.csv as reading

    texts = {f.name: f.type if pt.is_binary(f.type) else pa.string() for f in types}
    options = reading.ConvertOptions(
        column_types={**dict.fromkeys(ALL_META_COLUMNS, pa.string()), **texts},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    reader = reading.open_csv(source, *_options(csv), options)
    with reader:
        for batch in reader:
            fields = [types.field(name) for name in batch.schema.names if name in texts]
            columns = [_read(batch.column(each.name), each, inferred=each.name not in known.names) for each in fields]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _options(csv: Csv) -> tuple[Any, Any]:
    import pyarrow.csv as reading

    header = bool(csv.get("header", True))
    return (
        reading.ReadOptions(autogenerate_column_names=not header),
        reading.ParseOptions(delimiter=str(csv.get("delimiter", ","))),
    )


def _read(texts: pa.Array, field: pa.Field, *, inferred: bool) -> pa.Array:
    """The values of one column. Raises ValueError that names it."""
    try:
        return _values(texts, field.type, inferred=inferred)
    except pa.ArrowInvalid as error:
        step = f"; its first rows are {field.type}: say its type in source.columns" if inferred else ""
        raise ValueError(f"column {field.name}: {error}{step}") from error
    except ValueError as error:
        raise ValueError(f"column {field.name}: {error}") from error


def _values(texts: pa.Array, kind: pa.DataType, *, inferred: bool) -> pa.Array:
    if texts.type == kind or pt.is_large_string(kind) or pt.is_string_view(kind):
        return texts.cast(kind)
    try:
        values = _cast(texts, kind)
    except pa.ArrowInvalid:
        # Blanks around a value are none of it, and in quotes an empty text is a value of texts alone.
        texts = pc.utf8_trim_whitespace(texts)
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
        values = _cast(texts, kind)
    if inferred and pt.is_float64(kind) and pc.any(exceeds(values)).as_py():
        long = pc.match_substring_regex(texts, _IS_LONG)
        if pc.any(pc.and_(long, exceeds(values))).as_py():
            raise ValueError(MIXED)
    return values


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if pt.is_timestamp(kind):
        return moments(texts).cast(kind, safe=False)
    if pt.is_time(kind):
        return from_text(texts, kind, is_text)
    if not pt.is_null(kind):
        return texts.cast(kind)
    if texts.null_count < len(texts):
        raise pa.ArrowInvalid(f"it holds {texts.drop_null()[0].as_py()[:80]!r}")
    return pa.nulls(len(texts))


def _all(texts: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def json_schema(source: Any, known: pa.Schema | None, *, whole: bool) -> pa.Schema:
    """The columns of JSON lines: as the first block has them, or all. Raises ValueError."""
    return united((rows.schema for rows in _json(source, known, known, whole=whole)), lambda _: False)


def json_batches(source: Any, types: pa.Schema, known: pa.Schema | None) -> Iterator[pa.RecordBatch]:
    """The rows in these types, of which those of `known` are said and the others inferred. Raises
    ValueError, also for a field that is not among them."""
    for rows in _json(source, types, known, whole=True):
        more = _beyond([field for field in rows.schema if field.name not in ALL_META_COLUMNS], types)
        if more:
            raise ValueError(
                f"field {more} comes behind the first {BLOCK_BYTES >> 20} MiB: say its type in source.columns"
            )
        yield from rows.to_batches()


def _json(source: Any, types: pa.Schema | None, known: pa.Schema | None, *, whole: bool) -> Iterator[pa.Table]:
    count = 0
    for block in _blocks(source, BLOCK_BYTES):
        if not block.strip():
            continue
        try:
            rows = read_lines(pa.py_buffer(block), types, known)
        except ValueError as error:
            place = _ROW.search(str(error))
            behind = f"behind row {count:,}: " if count else ""
            row = f"row {count + int(place[1]) + 1:,}: " if place else behind
            raise ValueError(f"{row}{_ROW.sub('', str(error))}") from error
        count += len(rows)
        yield rows
        if not whole:
            return


def _beyond(found: Any, types: Any, path: str = "") -> str:
    """The first field that `types` lack, "" if there is none; either are fields of a schema or of a
    struct."""
    have = {field.name: field.type for field in types}
    for field in found:
        name, kind, known = f"{path}{field.name}", field.type, have.get(field.name)
        if known is None:
            return name
        while pt.is_list(kind) and pt.is_list(known):
            kind, known = kind.value_type, known.value_type
        if pt.is_struct(kind) and pt.is_struct(known):
            more = _beyond(kind, known, f"{name}.")
            if more:
                return more
    return ""


def _blocks(source: Any, size: int) -> Iterator[bytes]:
    """The bytes in blocks that end with a line, of that size or of one line that is longer."""
    rest = b""
    while part := source.read(size):
        end = part.rfind(b"\n") + 1
        if end:
            yield rest + part[:end]
            rest = part[end:]
        else:
            rest += part
    if rest:
        yield rest
