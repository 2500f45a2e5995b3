"""64-bit hashes of record keys, for the conflict keys of inserts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.hashes.javahash import java_string_hash


def key_hashes(keys: pa.Array) -> npt.NDArray[np.uint64]:
    """Two 32-bit hashes side by side, of the key and of the key read backwards.

    Equal keys have equal hashes; unequal ones that share a hash merely look like a conflict.
    """
    forward = java_string_hash(keys).view(np.uint32).astype(np.uint64)
    backward = java_string_hash(pc.utf8_reverse(keys)).view(np.uint32).astype(np.uint64)
    return (forward << np.uint64(32)) | backward
