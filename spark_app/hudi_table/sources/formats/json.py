"""JSON objects, one a message, by pyarrow's columnar parser: all messages in one block.

The parser takes objects as they come, wherever lines end. So each message stands as the value of an
object of its own, `{"v":…}`: no message can end what another one began, since a quote and a `v`
come between any two, and one that holds two values makes a row too many, or a column. (All tried:
pyarrow 26.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as pt

from hudi_table.errors import InvalidSchemaError
from hudi_table.sources.formats.decoder import UndecodableError, first_bad

_BEGIN, _BETWEEN, _END = b'{"v":', b'}\n{"v":', b"}"
_BLOCK_LEAST = 1024
_ZONE = r"([Zz]|[+-]\d\d(:?\d\d)?)"
_FINER, _ZONED = r"(\.\d{6})\d+", rf"[Tt ].*{_ZONE}$"
_MOMENT = rf"^\d{{4}}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?{_ZONE}?$"
_NUMBERED = re.compile(r" in row \d+$")
_FRAMED = "it begins with a zero byte, as the id of a schema in a registry does: give json.registry"


class JsonDecoder:
    """Objects. A column that is null in every message is left out: it has no type yet."""

    independent: ClassVar[bool] = True

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`. Dates and times are ISO 8601 text. Raises InvalidSchemaError for a known
        column that JSON cannot fill."""
        if not messages:
            return (known if known is not None else pa.schema([])).empty_table()
        try:
            return read_objects(messages, known, is_text)
        except UndecodableError as error:
            if messages[error.place].startswith(b"\0"):
                raise UndecodableError(error.place, _FRAMED) from None
            raise


IsText = Callable[[pa.DataType], bool]


def is_text(kind: pa.DataType) -> bool:
    """Whether the parser gives the text of values of this type."""
    return bool(pt.is_date(kind) or pt.is_time(kind))


def read_objects(messages: Sequence[bytes] | pa.Array, known: pa.Schema | None, as_text: IsText) -> pa.Table:
    """One row a message; values of types that are read `as_text` are made of it here. Raises
    UndecodableError, InvalidSchemaError."""
    wanted = _readable(known, as_text)
    try:
        return _typed(_parsed(messages, wanted), known, as_text)
    except (pa.ArrowInvalid, ValueError):
        place, why = first_bad(messages, lambda some: _why_not(some, wanted, known, as_text))
        raise UndecodableError(place, why) from None


def _readable(known: pa.Schema | None, as_text: IsText) -> pa.Schema | None:
    """What the parser is asked for: of dates and times their text."""
    if known is None:
        return None
    for field in known:
        if pt.is_map(field.type):
            raise InvalidSchemaError(
                f"column '{field.name}' is {field.type}, which cannot be read from JSON: use Avro, or another column"
            )
    return pa.schema([field.with_type(_parsed_type(field.type, as_text)) for field in known])


def _parsed_type(kind: pa.DataType, as_text: IsText) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_parsed_type(field.type, as_text)) for field in kind])
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_parsed_type(kind.value_type, as_text)))
    return pa.string() if as_text(kind) else kind


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


def _parsed(messages: Sequence[bytes] | pa.Array, wanted: pa.Schema | None) -> pa.Table:
    """Raises pa.ArrowInvalid, or ValueError where messages are no objects, one each."""
    rows = parsed(joined(messages), len(messages), wanted)
    if not rows.type.num_fields:
        return pa.table({"": pa.nulls(len(rows))}).select([])
    return pa.Table.from_arrays(rows.flatten(), names=[field.name for field in rows.type])


def _typed(found: pa.Table, known: pa.Schema | None, as_text: IsText) -> pa.Table:
    """The types that are known; what is null throughout is left out unless it is known."""
    names = set(known.names) if known is not None else set()
    kept = [f.name for f in found.schema if f.name in names or not pt.is_null(f.type)]
    table = found.select(kept)
    for field in known if known is not None else ():
        if _parsed_type(field.type, as_text) != field.type:
            place = table.schema.get_field_index(field.name)
            values = table.column(place).combine_chunks()
            table = table.set_column(place, field.name, _from_text(values, field.type, as_text))
    return table


def _from_text(values: pa.Array, kind: pa.DataType, as_text: IsText) -> pa.Array:
    """ISO 8601 as dates, times or moments, also where it lies deeper. Raises pa.ArrowInvalid,
    ValueError."""
    if pt.is_struct(kind):
        fields = []
        for field, child in zip(values.type, values.flatten(), strict=True):
            place = kind.get_field_index(field.name)
            fields.append(_from_text(child, kind.field(place).type, as_text) if place >= 0 else child)
        names = [field.name for field in values.type]
        return pa.StructArray.from_arrays(fields, names=names, mask=values.is_null())
    if pt.is_list(kind):
        items = _from_text(values.flatten(), kind.value_type, as_text)
        bounds = np.zeros(len(values) + 1, np.int32)
        np.cumsum(pc.fill_null(pc.list_value_length(values), 0).to_numpy(), out=bounds[1:])
        return pa.ListArray.from_arrays(pa.array(bounds), items, mask=values.is_null())
    if not as_text(kind):
        return values
    if pt.is_time(kind):
        # Arrow reads moments from text, and no times.
        moments = pc.binary_join_element_wise("1970-01-01T", values, "").cast(pa.timestamp(kind.unit))
        return moments.cast(kind)
    if pt.is_timestamp(kind):
        return _moments(values).cast(kind, safe=False)
    return values.cast(kind)


def _moments(texts: pa.Array) -> pa.Array:
    """RFC 3339, whose digits behind the microseconds are cut off; without a zone it is UTC. Raises
    pa.ArrowInvalid, ValueError."""
    others = texts.filter(pc.invert(pc.match_substring_regex(texts, _MOMENT)))
    if len(others):
        raise ValueError(f"{others[0].as_py()[:80]!r} is no date and time of RFC 3339")
    upper = pc.ascii_upper(pc.replace_substring_regex(texts, _FINER, r"\1"))
    zoned = pc.match_substring_regex(upper, _ZONED)
    return pc.if_else(zoned, upper, pc.binary_join_element_wise(upper, "Z", "")).cast(pa.timestamp("us", tz="UTC"))


def _why_not(
    messages: Sequence[bytes] | pa.Array, wanted: pa.Schema | None, known: pa.Schema | None, as_text: IsText
) -> str:
    try:
        _typed(_parsed(messages, wanted), known, as_text)
    except (pa.ArrowInvalid, ValueError) as error:
        return said(error)
    return ""


def said(error: Exception) -> str:
    """An error of the parser, in terms of the message. Its number among those that were parsed
    together is left out: who tells the error names the message."""
    text = _NUMBERED.sub("", str(error))
    return " ".join(text.replace("(/v/", "(").replace("(/v)", "(the message)").split())
