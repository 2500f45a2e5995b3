"""What stands for a large value that a change leaves alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.model.names import IS_DELETED
from hudi_table.model.table.merging import UNAVAILABLE
from hudi_table.sources.formats.dialects import OPERATION
from hudi_table.sources.formats.markers import NOT_KEPT, filled

ROWS = pa.table(
    {
        "id": [1, 2, 2, 3],
        "place": [10, 10, 20, 20],
        "big": [None, UNAVAILABLE, None, UNAVAILABLE],
        OPERATION: ["d", "c", "d", "c"],
        IS_DELETED: [True, False, True, False],
    }
)
"""A key that changes from 1 to 2, and then to 3."""
OLD_KEYS = pa.array([None, b'{"id":1}', None, b'{"id":2}'], pa.binary())


class Newest:
    """A table of one snapshot."""

    def __init__(self, key: int, place: int) -> None:
        self.row = pa.table({"id": [key], "place": [place], "big": ["stands"]})

    def versions(self, keys: pa.Table, columns: Sequence[str]) -> Iterator[pa.Table]:
        found = self.row.filter(pc.is_in(self.row.column("id"), keys.column("id").combine_chunks()))
        yield found.select([*keys.column_names, *columns])


@pytest.mark.parametrize("place", [10, 15])
def test_the_row_that_stands_tells_what_goes_along_with_its_next_key(place: int) -> None:
    rows, bad = filled(ROWS, ["id"], "place", OLD_KEYS, Newest(2, place))
    assert (rows.column("big")[3].as_py(), bad) == ("stands", [])


def test_a_row_that_came_under_the_key_after_its_delete_tells_nothing_of_the_one_before() -> None:
    _, bad = filled(ROWS, ["id"], "place", OLD_KEYS, Newest(2, 30))
    assert bad == [(3, NOT_KEPT.format(name="big"))]
