"""The smallest and largest record key of a file, in the order that Hudi compares keys.

Fact: Hudi writes and prunes by Java's `String.compareTo`, which orders UTF-16 code units; Arrow,
and Hudi's bulk insert through Spark rows, order UTF-8 bytes. The two differ only where characters
beyond U+FFFF (UTF-8 lead bytes F0 to F4, in UTF-16 surrogates D800 to DFFF) meet characters U+E000
to U+FFFF (lead bytes EE and EF). Raising those two lead bytes above F4 turns one order into the
other, byte by byte.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FIRST_RAISED_LEAD = 0xEE
_FIRST_ASTRAL_LEAD = 0xF0
_RAISED = np.arange(256, dtype=np.uint8)
_RAISED[[0xEE, 0xEF]] = [0xFE, 0xFF]
_RAISED_BYTES = _RAISED.tobytes()
_LOWERED = bytes.maketrans(b"\xfe\xff", b"\xee\xef")


def key_range(keys: pa.StringArray) -> tuple[str, str] | None:
    """(smallest, largest) of the keys that are not null, by UTF-16 code units; None if there is
    none."""
    if keys.null_count == len(keys):
        return None
    if _largest_byte(keys) < _FIRST_ASTRAL_LEAD:
        extremes = pc.min_max(keys)
        return extremes["min"].as_py(), extremes["max"].as_py()
    extremes = pc.min_max(_raised(keys))
    smallest, largest = (extremes[side].as_py().translate(_LOWERED).decode() for side in ("min", "max"))
    return smallest, largest


def may_lie_within(keys: pa.StringArray, smallest: str, largest: str) -> pa.BooleanArray:
    """Per key whether a file of this range may hold it, in whichever of the two orders the range
    was taken."""
    within = pc.and_(pc.greater_equal(keys, smallest), pc.less_equal(keys, largest))
    if max(_largest_byte(keys), *smallest.encode(), *largest.encode(), 0) < _FIRST_RAISED_LEAD:
        return within
    low, high = (key.encode().translate(_RAISED_BYTES) for key in (smallest, largest))
    raised = _raised(keys)
    return pc.or_(within, pc.and_(pc.greater_equal(raised, low), pc.less_equal(raised, high)))


def merge_ranges(first: tuple[str, str] | None, second: tuple[str, str] | None) -> tuple[str, str] | None:
    """The range over both, in the same order."""
    if first is None or second is None:
        return first or second
    return min(first[0], second[0], key=_code_units), max(first[1], second[1], key=_code_units)


def _largest_byte(keys: pa.StringArray) -> int:
    data = keys.buffers()[2]
    return int(np.frombuffer(data, np.uint8).max(initial=0)) if data is not None else 0


def _raised(keys: pa.StringArray) -> pa.BinaryArray:
    """The keys as bytes whose order is that of the keys' UTF-16 code units."""
    validity, offsets, data = keys.buffers()
    units = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return pa.Array.from_buffers(
        pa.binary(), len(keys), [validity, offsets, pa.py_buffer(_RAISED[units])], offset=keys.offset
    )


def _code_units(key: str) -> bytes:
    return key.encode("utf-16-be")
