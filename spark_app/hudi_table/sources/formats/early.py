"""Decoding while more is read: most of what a commit takes is rows when its last message comes.

What is decoded early counts only where it is what all values together would give: in a format whose
parts do not depend on each other, with the columns that are known and no others. Else it is dropped,
and they are decoded as if none of it had been.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_table.errors import HudiError
from hudi_table.sources.formats.decoder import Decoder, UndecodableError

PART_BYTES = 1 << 20


@dataclass(slots=True)
class Early:
    """The values of one commit, from the first on. `wanted`: the columns of the table that they
    fill; `pool` has one thread."""

    decoder: Decoder
    wanted: pa.Schema
    pool: Executor
    _read: int = 0
    _size: int = 0
    _parts: list[tuple[int, Future[pa.Table | None]]] = field(default_factory=list)

    def more(self, values: Sequence[bytes | None], size: int) -> None:
        """All values that have been read, and their bytes: begin with what has come, once it is
        enough."""
        if size - self._size < PART_BYTES:
            return
        some = [value for value in values[self._read :] if value is not None]
        self._read, self._size = len(values), size
        self._parts.append((self._read, self.pool.submit(self._decoded, some)))

    def made(self, wanted: pa.Schema | None) -> list[tuple[int, pa.Table]]:
        """(how many values, null ones among them, are read with it, the rows of the part) of the
        first parts; nothing where the columns have changed since."""
        found: list[tuple[int, pa.Table]] = []
        for read, part in self._parts if self.wanted == wanted else []:
            rows = part.result()
            if rows is None:
                break
            found.append((read, rows))
        return found

    def _decoded(self, some: Sequence[bytes]) -> pa.Table | None:
        try:
            rows = self.decoder.decode(some, self.wanted)
        except (UndecodableError, HudiError):
            # Whoever decodes all of them tells which message it is, and why.
            return None
        return rows if (rows.schema.names, rows.schema.types) == (self.wanted.names, self.wanted.types) else None
