"""An archive file of which something is gone is named, whoever reads it."""

from __future__ import annotations

import re

import pytest

from hudi_table.errors import CorruptTableError
from hudi_table.table.timeline.archived import archive_path
from tests.support.aged import AgedStorage
from tests.support.crashes import LAYOUTS, opened, prepared, rows

KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "4"}


@pytest.mark.parametrize("left", [0, 5, 200, -1])
def test_an_archive_file_of_which_the_end_or_all_is_gone_is_damage_by_name(left: int) -> None:
    store = prepared(LAYOUTS[0])
    for number in range(5):
        opened(store).write(rows(("a", "x", 100 + number)), operation="upsert")
    opened(AgedStorage(store)).archive(KEEP)
    path = archive_path(opened(store).context, 1)
    store.put(path, store.get(path)[:left])
    with pytest.raises(CorruptTableError, match=re.escape(path)):
        opened(store).timeline(archived=True)
