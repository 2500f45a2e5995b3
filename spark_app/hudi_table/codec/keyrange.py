"""The smallest and largest record key of a file, in the order that Hudi compares keys.

Fact: Hudi writes and prunes by Java's `String.compareTo`, which orders UTF-16 code units; Arrow orders UTF-8 bytes.
The two differ only where characters beyond U+FFFF (UTF-8 lead bytes F0 to F4, in UTF-16 surrogates D800 to DFFF)
meet characters U+E000 to U+FFFF (lead bytes EE and EF). Raising those two lead bytes above F4 turns one order
into the other, byte by byte.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FIRST_ASTRAL_LEAD = 0xF0
_RAISED = np.arange(256, dtype=np.uint8)
_RAISED[[0xEE, 0xEF]] = [0xFE, 0xFF]
_LOWERED = bytes.maketrans(b"\xfe\xff", b"\xee\xef")


def key_range(keys: pa.StringArray) -> tuple[str, str] | None:
    """(smallest, largest) of the keys that are not null, by UTF-16 code units; None if there is none."""
    if keys.null_count == len(keys):
        return None
    data = keys.buffers()[2]
    units = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    if not units.size or units.max() < _FIRST_ASTRAL_LEAD:
        extremes = pc.min_max(keys)
        return extremes["min"].as_py(), extremes["max"].as_py()
    raised = pa.Array.from_buffers(
        pa.binary(),
        len(keys),
        [keys.buffers()[0], keys.buffers()[1], pa.py_buffer(_RAISED[units])],
        offset=keys.offset,
    )
    extremes = pc.min_max(raised)
    smallest, largest = (extremes[side].as_py().translate(_LOWERED).decode() for side in ("min", "max"))
    return smallest, largest


def merge_ranges(first: tuple[str, str] | None, second: tuple[str, str] | None) -> tuple[str, str] | None:
    """The range over both, in the same order."""
    if first is None or second is None:
        return first or second
    return min(first[0], second[0], key=_code_units), max(first[1], second[1], key=_code_units)


def _code_units(key: str) -> bytes:
    return key.encode("utf-16-be")
