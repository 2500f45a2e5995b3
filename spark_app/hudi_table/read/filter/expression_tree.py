"""The parts of a pyarrow expression, which pyarrow itself does not show, and the values that it
leaves to columns.

Facts (pyarrow 21 to 26): an expression is pickled as an Arrow file whose schema's metadata spell
the tree out in order (`call`, `field_ref`, `nested_field_ref`, `literal`, `options`, `end`) and
whose one row holds the constants. pyarrow gives metadata as a dict, which keeps one of equal keys;
the C data interface has them all. Whoever asks concludes nothing from what is not understood, so
that a change of that form costs time and never rows.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Reference:
    """A top-level column."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value with its type."""

    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class Call:
    """A function of parts; `options` are its other arguments, a struct."""

    function: str
    parts: tuple[Part, ...]
    options: pa.Scalar | None = None


Values = frozenset[pa.Scalar]
Part = Call | Reference | Constant | None
"""None: what has no counterpart here, such as a field of a struct."""


class _SchemaStart(ctypes.Structure):
    """The first members of `ArrowSchema`."""

    _fields_ = (("format", ctypes.c_void_p), ("name", ctypes.c_void_p), ("metadata", ctypes.c_void_p))


def tree(expression: pc.Expression) -> Part:
    """The expression as a tree, None where its form is not known."""
    try:
        _, (packed, *_) = expression.__reduce__()
        with pa.ipc.open_file(packed) as file:
            return _part(_marks(file.schema), file.get_batch(0))
    except (pa.ArrowInvalid, ValueError, TypeError, StopIteration, IndexError, struct.error):
        return None


def possible_values(part: Part) -> Mapping[str, Values]:
    """The values that columns must have for `part` to be true; columns that may have any are not in
    it."""
    if not isinstance(part, Call):
        return {}
    if part.function in ("and", "and_kleene"):
        known: dict[str, Values] = {}
        for each in part.parts:
            for name, values in possible_values(each).items():
                # Both hold. (Not their intersection: equal numbers of two types are unequal scalars.)
                known[name] = min(known.get(name, values), values, key=len)
        return known
    if part.function in ("or", "or_kleene"):
        first, *others = [possible_values(each) for each in part.parts]
        return {
            name: values.union(*(other[name] for other in others))
            for name, values in first.items()
            if all(name in other for other in others)
        }
    if part.function == "if_else" and len(part.parts) == 3 and _never(part.parts[2]):
        return possible_values(Call("and", part.parts[:2]))
    return _of_test(part)


def _never(part: Part) -> bool:
    return isinstance(part, Constant) and not part.value.as_py()


def _of_test(call: Call) -> Mapping[str, Values]:
    columns = [part.name for part in call.parts if isinstance(part, Reference)]
    if len(columns) != 1:
        return {}
    if call.function == "equal":
        values = [part.value for part in call.parts if isinstance(part, Constant)]
        return {columns[0]: frozenset(values)} if len(values) == 1 else {}
    if call.function == "is_in" and len(call.parts) == 1 and isinstance(call.options, pa.StructScalar):
        # A set that holds null matches null as well; who asks has to look for it.
        return {columns[0]: frozenset(call.options["value_set"].values)}
    return {}


def _part(marks: Iterator[tuple[str, str]], row: pa.RecordBatch, first: tuple[str, str] | None = None) -> Part:
    kind, value = first or next(marks)
    if kind == "field_ref":
        return Reference(value)
    if kind == "literal":
        return Constant(row.column(int(value))[0])
    if kind == "nested_field_ref":
        for _ in range(int(value)):
            next(marks)
        return None
    if kind != "call":
        raise ValueError(f"unknown mark {kind!r}")
    parts: list[Part] = []
    options = None
    for mark in marks:
        if mark[0] == "end":
            return Call(value, tuple(parts), options)
        if mark[0] == "options":
            options = row.column(int(mark[1]))[0]
        else:
            parts.append(_part(marks, row, mark))
    raise ValueError(f"the call of {value} does not end")


def _marks(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """(key, value) of the schema's metadata, in order. Layout: number of pairs, then each text
    after its length, int32."""
    capsule: Any = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    at = _SchemaStart.from_address(pointer(capsule, b"arrow_schema")).metadata
    if at is None:
        return
    (pairs,) = struct.unpack("=i", ctypes.string_at(at, 4))
    at += 4
    for _ in range(pairs):
        texts = []
        for _ in range(2):
            (length,) = struct.unpack("=i", ctypes.string_at(at, 4))
            texts.append(ctypes.string_at(at + 4, length).decode())
            at += 4 + length
        yield texts[0], texts[1]
