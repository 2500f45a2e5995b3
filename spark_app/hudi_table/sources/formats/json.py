"""JSON objects, one a message, by pyarrow's columnar parser: all messages in one block.

The parser takes objects as they come, wherever lines end. So each message stands as the value of an
object of its own, `{"v":…}`: no message can end what another one began, since a quote and a `v`
come between any two, and one that holds two values makes a row too many, or a column. (All tried:
pyarrow 26.)
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as pt

from hudi_table.errors import InvalidSchemaError
from hudi_table.sources.formats.decoder import UndecodableError, first_bad

_BEGIN, _BETWEEN, _END = b'{"v":', b'}\n{"v":', b"}"
_BLOCK_LEAST = 1024


class JsonDecoder:
    """Objects. A column that is null in every message is left out: it has no type yet."""

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`. Dates and times are ISO 8601 text. Raises InvalidSchemaError for a known
        column that JSON cannot fill."""
        if not messages:
            return (known if known is not None else pa.schema([])).empty_table()
        wanted = _readable(known)
        try:
            return _typed(_parsed(messages, wanted), known)
        except (pa.ArrowInvalid, ValueError):
            place, why = first_bad(messages, lambda some: _why_not(some, wanted, known))
            raise UndecodableError(place, why) from None


def _readable(known: pa.Schema | None) -> pa.Schema | None:
    """What the parser is asked for: of dates and times their text."""
    if known is None:
        return None
    for field in known:
        if pt.is_map(field.type):
            raise InvalidSchemaError(
                f"column '{field.name}' is {field.type}, which cannot be read from JSON: use Avro, or another column"
            )
    return pa.schema([field.with_type(pa.string()) if _is_text(field.type) else field for field in known])


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_date(kind) or pt.is_time(kind))


def joined(messages: Sequence[bytes] | pa.Array) -> pa.Buffer:
    """Messages as one block for `parsed`; of a column of them no message becomes an object of
    Python."""
    if not isinstance(messages, pa.Array):
        return pa.py_buffer(b"".join((_BEGIN, _BETWEEN.join(messages), _END)))
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(messages)], pa.int64()), messages)
    between = pc.binary_join(whole, pa.scalar(_BETWEEN, messages.type))
    return pa.py_buffer(b"".join((_BEGIN, between[0].as_buffer(), _END)))


def parsed(block: pa.Buffer, count: int, wanted: pa.Schema | None) -> pa.StructArray:
    """The `count` objects of a block. Raises pa.ArrowInvalid, or ValueError where messages are no
    objects, one each."""
    explicit = pa.schema([pa.field("v", pa.struct(list(wanted)))]) if wanted is not None else None
    found = pj.read_json(
        pa.BufferReader(block),
        # One block is one batch, and what is inferred holds for all of it.
        read_options=pj.ReadOptions(block_size=max(block.size + 1, _BLOCK_LEAST), use_threads=False),
        parse_options=pj.ParseOptions(explicit_schema=explicit, unexpected_field_behavior="infer"),
    )
    if found.num_rows != count or found.column_names != ["v"]:
        raise ValueError("it is not one JSON object")
    rows = found.column(0).combine_chunks()
    rows = rows.chunk(0) if isinstance(rows, pa.ChunkedArray) else rows
    if not pt.is_struct(rows.type) or rows.null_count:
        raise ValueError("it is no JSON object")
    rows.validate(full=True)
    return rows


def _parsed(messages: Sequence[bytes], wanted: pa.Schema | None) -> pa.Table:
    """Raises pa.ArrowInvalid, or ValueError where messages are no objects, one each."""
    rows = parsed(joined(messages), len(messages), wanted)
    if not rows.type.num_fields:
        return pa.table({"": pa.nulls(len(rows))}).select([])
    return pa.Table.from_arrays(rows.flatten(), names=[field.name for field in rows.type])


def _typed(found: pa.Table, known: pa.Schema | None) -> pa.Table:
    """The types that are known; what is null throughout is left out unless it is known."""
    names = set(known.names) if known is not None else set()
    kept = [f.name for f in found.schema if f.name in names or not pt.is_null(f.type)]
    table = found.select(kept)
    for field in known if known is not None else ():
        if _is_text(field.type):
            place = table.schema.get_field_index(field.name)
            table = table.set_column(place, field.name, _from_text(table.column(place), field.type))
    return table


def _from_text(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """ISO 8601 as dates or times. Raises pa.ArrowInvalid."""
    if pt.is_time(kind):
        # Arrow reads moments from text, and no times.
        moments = pc.binary_join_element_wise("1970-01-01T", texts, "").cast(pa.timestamp(kind.unit))
        return moments.cast(kind)
    return texts.cast(kind)


def _why_not(messages: Sequence[bytes], wanted: pa.Schema | None, known: pa.Schema | None) -> str:
    try:
        _typed(_parsed(messages, wanted), known)
    except (pa.ArrowInvalid, ValueError) as error:
        return said(error)
    return ""


def said(error: Exception) -> str:
    """An error of the parser, in terms of the message."""
    return " ".join(str(error).replace("(/v/", "(").replace("(/v)", "(the message)").split())
