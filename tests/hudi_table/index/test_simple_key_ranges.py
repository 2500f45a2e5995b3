"""The simple indexes prune files by key ranges: Java's order of keys and Arrow's differ, and no row
may be lost to that."""

from __future__ import annotations

import pytest

from tests.support.written import INDEXES, contents, new_table, rows

# Between U+E000 and U+FFFF against beyond it: one order in UTF-8, the other in UTF-16.
KEYS = ("\ue000", "\uffee", "😀", "\U0010fffd")


@pytest.mark.parametrize("index", ["simple", "global"])
@pytest.mark.parametrize("first", KEYS)
@pytest.mark.parametrize("second", KEYS)
def test_a_key_of_any_alphabet_is_found_again_in_its_file(index: str, first: str, second: str) -> None:
    table = new_table(index=INDEXES[index], partitioned=False)
    table.insert(rows(*{(key, "x", 1) for key in (first, second)}))
    # Without packing, a key that is not found becomes a second row in a file of its own.
    table.upsert(rows((first, "x", 2)), options={"hoodie.parquet.small.file.limit": "0"})
    assert len(contents(table)) == len({first, second})
    assert (first, "x", 2) in contents(table)
