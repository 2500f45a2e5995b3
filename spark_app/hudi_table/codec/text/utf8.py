"""Arrow string arrays as numpy views of their UTF-8 bytes: what hashes and filters work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.errors import InvariantError

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Utf8:
    """`data[offsets[i]:offsets[i + 1]]` is value i; `valid` is None if no value is null (the range
    of a null means nothing)."""

    data: npt.NDArray[np.uint8]
    offsets: Offsets
    valid: npt.NDArray[np.bool_] | None

    def __len__(self) -> int:
        return len(self.offsets) - 1


def chunks_of(values: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """The chunks of a chunked array, or the array itself."""
    return list(values.chunks) if isinstance(values, pa.ChunkedArray) else [values]


def utf8_of(values: pa.Array) -> Utf8:
    """The bytes of a string array of any layout but dictionary. No copy for `string` and
    `large_string`."""
    if pt.is_string_view(values.type):
        values = values.cast(pa.string())
    if pt.is_large_string(values.type):
        offset_type: Any = np.int64
    elif pt.is_string(values.type):
        offset_type = np.int32
    else:
        raise InvariantError(f"Expected strings, got {values.type}: cast the values first.")
    _, offsets_buffer, data_buffer = values.buffers()
    count = len(values)
    if count == 0 or offsets_buffer is None:
        return Utf8(np.empty(0, np.uint8), np.zeros(count + 1, np.int64), None)
    offsets = np.frombuffer(offsets_buffer, offset_type)[values.offset : values.offset + count + 1].astype(np.int64)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    start = int(offsets[0])
    valid = None if not values.null_count else values.is_valid().to_numpy(zero_copy_only=False)
    return Utf8(data[start : int(offsets[-1])], offsets - start, valid)
