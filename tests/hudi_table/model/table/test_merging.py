"""What a table that is made for change events does with the values that an event leaves out."""

from __future__ import annotations

import pytest

from hudi_table.model.table.config import TableType
from hudi_table.model.table.layouts import fills_unavailable

POSTGRES = ("_event_lsn",)


@pytest.mark.parametrize(
    ("fields", "kind", "version", "fills"),
    [
        (POSTGRES, TableType.COPY_ON_WRITE, None, True),
        (POSTGRES, "CopyOnWrite", 6, True),
        (("_event_seq",), TableType.COPY_ON_WRITE, 6, False),
        ((), TableType.COPY_ON_WRITE, 6, False),
        (POSTGRES, TableType.MERGE_ON_READ, 6, False),
        (POSTGRES, TableType.COPY_ON_WRITE, 8, True),
        (POSTGRES, TableType.MERGE_ON_READ, 8, False),
    ],
)
def test_a_value_that_an_event_of_postgres_leaves_alone_stays_only_where_hudi_keeps_it_too(
    fields: tuple[str, ...], kind: str, version: int | None, fills: bool
) -> None:
    assert fills_unavailable(fields, kind, version) is fills
