"""Occurrences of one scalar field as a column: numbers by the bits of varints or by their bytes,
texts and bytes by a cut of the buffer.

Facts (protobuf's encoding): of a repeated number all may stand in one run of bytes (packed), and a
reader takes either form; sint32 and sint64 are zigzag; an int32 that is negative has ten bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.sources.formats.columns import cut
from hudi_table.sources.formats.protobuf.wire import (
    LONG,
    SHORT,
    SIZED,
    VARINT,
    Bytes,
    MalformedError,
    Places,
    Tokens,
    varints,
)

TYPES: Mapping[str, pa.DataType] = {
    "double": pa.float64(), "float": pa.float32(), "bool": pa.bool_(), "string": pa.string(), "bytes": pa.binary(),
    **dict.fromkeys(("int32", "sint32", "sfixed32"), pa.int32()),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), pa.int64()),
    # No type of Hudi holds the greatest of these otherwise.
    **dict.fromkeys(("uint64", "fixed64"), pa.decimal128(20, 0)),
}  # fmt: skip
_FIXED: Mapping[str, tuple[int, str]] = {
    "double": (LONG, "<f8"), "fixed64": (LONG, "<u8"), "sfixed64": (LONG, "<i8"),
    "float": (SHORT, "<f4"), "fixed32": (SHORT, "<u4"), "sfixed32": (SHORT, "<i4"),
}  # fmt: skip
_NONE = Tokens(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def wire_of(kind: str) -> int:
    """The wire type of a kind; of a message, an enum's is that of int32."""
    if kind in ("string", "bytes"):
        return SIZED
    return _FIXED[kind][0] if kind in _FIXED else VARINT


def occurrences(
    data: Bytes, found: Mapping[tuple[int, int], Tokens], number: int, wire: int, *, repeated: bool
) -> Tokens:
    """All of a field, in their order: one by one, and those of a repeated number that stand in
    runs."""
    single = found.get((number, wire), _NONE)
    runs = found.get((number, SIZED)) if repeated and wire != SIZED else None
    if runs is None or not len(runs.rows):
        return single
    many = _numbers(data, runs) if wire == VARINT else _parts(runs, 8 if wire == LONG else 4)
    if not len(single.rows):
        return many
    rows, values, ends = (np.concatenate(each) for each in zip(_of(single), _of(many), strict=True))
    order = np.argsort(ends, kind="stable")
    return Tokens(rows[order], values[order], ends[order])


def column(data: Bytes, kind: str, found: Tokens) -> pa.Array:
    """One value for each occurrence."""
    if kind in ("string", "bytes"):
        return (
            _texts(data, found)
            if kind == "string"
            else cut(pa.py_buffer(data), found.values, found.ends).cast(pa.binary())
        )
    return pa.array(numbers(data, kind, found)).cast(TYPES[kind])


def numbers(data: Bytes, kind: str, found: Tokens) -> npt.NDArray[np.generic]:
    """The same of a kind that is a number; of an enum as int32."""
    if kind in _FIXED:
        wire, form = _FIXED[kind]
        size = 8 if wire == LONG else 4
        parts = np.ascontiguousarray(data[found.values[:, None] + np.arange(size)])
        read: npt.NDArray[np.generic] = np.frombuffer(parts.data, form)
        return read
    bits = found.values
    if kind == "bool":
        return np.not_equal(bits, 0)
    if kind == "uint64":
        return bits.view(np.uint64)
    if kind == "uint32":
        return bits & 0xFFFFFFFF
    if kind in ("sint32", "sint64"):
        raw = (bits if kind == "sint64" else bits & 0xFFFFFFFF).view(np.uint64)
        bits = (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64)
    return bits if kind in ("int64", "sint64") else bits.astype(np.int32)


def default_of(kind: str) -> pa.Scalar:
    """What a field holds that is not set and has no presence."""
    if kind in ("string", "bytes"):
        return pa.scalar(b"" if kind == "bytes" else "", TYPES[kind])
    return pa.scalar(0).cast(TYPES[kind])


def _texts(data: Bytes, found: Tokens) -> pa.Array:
    raw = cut(pa.py_buffer(data), found.values, found.ends)
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        bad = next(place for place, text in enumerate(raw.to_pylist()) if not _is_text(text))
        raise MalformedError(int(found.rows[bad]), "a text of it is not UTF-8") from None


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _of(found: Tokens) -> tuple[Places, Places, Places]:
    return found.rows, found.values, found.ends


def _numbers(data: Bytes, runs: Tokens) -> Tokens:
    """The varints of runs: each ends with the first byte that is below 128."""
    sizes = runs.ends - runs.values
    bad = np.flatnonzero((sizes > 0) & (data[runs.ends - 1] >= 0x80))
    if len(bad):
        raise MalformedError(int(runs.rows[bad[0]]), "a number leaves its run")
    run = np.repeat(np.arange(len(sizes)), sizes)
    places = np.arange(int(sizes.sum())) + np.repeat(runs.values - (np.cumsum(sizes) - sizes), sizes)
    last = data[places] < 0x80
    ends, run = places[last] + 1, run[last]
    starts = runs.values[run]
    same = np.flatnonzero(run[1:] == run[:-1]) + 1
    starts[same] = ends[same - 1]
    rows = runs.rows[run]
    bits, _ = varints(data, starts, ends, rows)
    return Tokens(rows, bits, ends)


def _parts(runs: Tokens, size: int) -> Tokens:
    """The parts of runs, of so many bytes each."""
    sizes = runs.ends - runs.values
    bad = np.flatnonzero(sizes % size)
    if len(bad):
        raise MalformedError(int(runs.rows[bad[0]]), f"a run of it is not {size} bytes a number")
    counts = sizes // size
    first = np.repeat(runs.values - size * (np.cumsum(counts) - counts), counts)
    starts = first + size * np.arange(int(counts.sum()))
    return Tokens(np.repeat(runs.rows, counts), starts, starts + size)


def filled(values: pa.Array, default: pa.Scalar | None) -> pa.Array:
    """Nulls as the default, if there is one."""
    return values if default is None or not values.null_count else pc.fill_null(values, default)
