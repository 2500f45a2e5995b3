"""What an external index needs of a store of keys, and the values that go in and out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Place = tuple[str, str]
"""(partition path, file id)."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A file group as the store has it: its number there, and the files (`files_of`) whose keys it
    holds, none of a new one."""

    number: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be recorded of one file group: the files before, which must be those that the
    store has, and after.

    `added` and `removed` are keys; `removed` None: all that were there.
    """

    place: Place
    before: tuple[str, ...]
    after: tuple[str, ...]
    added: pa.Array
    removed: pa.Array | None


class KeyStore(Protocol):
    """One connection, one transaction: what is read of it belongs together.

    Every method raises UnavailableError if the store does not answer, AccessDeniedError if it
    refuses the user.
    """

    def recorded(self, partitions: Sequence[str] | None = None) -> Mapping[Place, Recorded]:
        """The file groups of these partitions, or of all, that the store has keys of."""
        ...

    def find(self, keys: pa.Array) -> tuple[Numbers, Numbers]:
        """(positions in `keys`, numbers of the groups) of every key of the store: one round trip
        for `BATCH_KEYS` keys.

        A few pairs may be false, none is missing."""
        ...

    def record(self, changes: Sequence[Change]) -> int:
        """Take changes in, each whole or not at all; returns how many. One whose `before` is not
        what the store has is left out."""
        ...

    def forget(self, numbers: Sequence[int]) -> None:
        """Take groups out, and their keys."""
        ...

    def key_count(self) -> int:
        """How many (key, group) pairs the store holds of the table."""
        ...
