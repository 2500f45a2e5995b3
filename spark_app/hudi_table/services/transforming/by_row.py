"""Which rows it is that something cannot be done with: found by halves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hudi_table.errors import InvalidDataError

Places = npt.NDArray[np.int64]


def failing(places: Places, why: Callable[[Places], str], most: int) -> dict[int, str]:
    """The rows at `places` that fail each by itself, in order, and why. `why`: what some of them
    fail by, "" if they do not; all of them together do.

    Raises InvalidDataError where these are more than `most`.
    """
    found: dict[int, str] = {}

    def look(some: Places) -> None:
        said = why(some)
        if not said:
            return
        if len(some) == 1:
            found[int(some[0])] = said
            if len(found) > most:
                raise InvalidDataError(
                    f"more rows of one commit fail than maxErrorRatio lets through, {len(found):,} at least; the last: {said}"
                )
            return
        for half in np.array_split(some, 2):
            look(half)

    look(places)
    return found
