"""Record batches as JSON lines, column by column.

Timestamps, dates and times are ISO 8601 text, decimals and whole numbers are JSON numbers, binary
is base64, NaN and the infinities, which JSON lacks, are null. Keys of null values stay, so that
every line has the same keys.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.text.nanoseconds import shown_values

_CONTROL = r"[\x00-\x1f]"


def json_lines(batch: pa.RecordBatch) -> bytes:
    """One UTF-8 line, with its newline, for each row."""
    if not batch.num_rows:
        return b""
    if not batch.num_columns:
        return b"{}\n" * int(batch.num_rows)
    pieces: list[Any] = []
    for position, (field, column) in enumerate(zip(batch.schema, batch.columns, strict=True)):
        key = json.dumps(field.name, ensure_ascii=False)
        pieces += [f"{'{' if position == 0 else ','}{key}:", pc.fill_null(_encode(column), "null")]
    lines = pc.binary_join_element_wise(*pieces, "}\n", "")
    # The lines lie one after the other in the array's data: they are the output.
    _, offsets, data = lines.buffers()
    ends = memoryview(offsets).cast("B").cast("i")
    start, end = ends[lines.offset], ends[lines.offset + len(lines)]
    text: bytes = memoryview(data)[start:end].tobytes()
    return text


def _encode(column: pa.Array) -> pa.Array:
    """The JSON text of each value, null for null."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind)).cast(pa.string())
    if pa.types.is_string(kind):
        return _quoted(column)
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return pc.binary_join_element_wise('"', column.cast(pa.string()), '"', "")
    if pa.types.is_timestamp(kind):
        text = pc.strftime(column, format="%Y-%m-%dT%H:%M:%S" + ("Z" if kind.tz == "UTC" else "%z" if kind.tz else ""))
        return pc.binary_join_element_wise('"', text, '"', "")
    # Nested values and bytes have no columnar text form.
    return _dumped(column)


def _dumped(column: pa.Array) -> pa.Array:
    texts = [None if v is None else json.dumps(plain(v), ensure_ascii=False) for v in shown_values(column)]
    return pa.array(texts, pa.string())


def _quoted(column: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(column, _CONTROL)).as_py():
        return _dumped(column)
    escaped = pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "")


def plain(value: Any) -> Any:
    """A nested value as JSON has it."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float)) else str(value)
