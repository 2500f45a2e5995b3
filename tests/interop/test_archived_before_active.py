"""Archives of versions 8 and 9 beside what stays on the timeline: Hudi reads rows that were deleted
no more, whatever is older than the archived instants.

Facts (measured on Hudi 1.1.1). It takes an instant for pending that is not on the timeline and not
older than the timeline's first one, of whatever action, and looks into no archive for it. A log of
such an instant it merges into the newest slice of its file group, over a base file that is newer
than the log. So nothing that stays may be older than what leaves.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import HudiTable, open_table, upgrade_table
from hudi_table.table.timeline.active import load_timeline
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_archiving import age
from tests.interop.test_later_versions import ORACLE

pytestmark = [pytest.mark.interop]

LATEST_ALONE = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
METADATA = {"hoodie.metadata.enable": "true"}


class Written:
    """A merge-on-read table of ours and what it holds."""

    def __init__(self, base: Path, version: int) -> None:
        self.base, self.model, self.number = base, Model(partitioned=True), 0
        ours.create(base, index="bucket", partitioned=True, type="MergeOnRead", version=version)

    @property
    def table(self) -> HudiTable:
        return open_table(self.base)

    def write(self, operation: str, numbers: range, **options: str) -> None:
        self.number += 1
        ours.write(self.base, operation, data := rows(numbers, self.number), options=options)
        self.model.apply(operation, data)

    def compact(self) -> None:
        assert self.table.compact(force=True)

    def delete(self) -> None:
        """Rows are deleted in logs and compacted away; and two writes more."""
        self.write("delete", range(4))
        self.compact()
        self.write("upsert", range(6, 9))
        self.write("upsert", range(6, 9))

    def archive(self, *left: str) -> None:
        """All but the newest writes, which are of these kinds."""
        keep = {
            "hoodie.clean.commits.retained": "1",
            "hoodie.keep.min.commits": str(len(left)),
            "hoodie.keep.max.commits": str(len(left) + 1),
            "hoodie.compact.inline.max.delta.commits": "1",
        }
        age(self.base)
        assert self.table.archive(keep, force=True)
        assert tuple(i.action.value for i in load_timeline(self.table.context).commits) == left


@pytest.mark.parametrize("version", [8, 9])
def test_rows_that_were_deleted_stay_so_for_hudi_behind_the_newest_clean(
    hudis: Hudis, tmp_path: Path, version: int
) -> None:
    held = Written(tmp_path / "table", version)
    held.write("insert", range(12))
    held.write("upsert", range(12))
    held.compact()
    assert held.table.clean(LATEST_ALONE, force=True)
    held.write("upsert", range(12))
    held.delete()
    held.archive("deltacommit", "commit", "deltacommit", "deltacommit")
    ours.assert_all_read(held.base, hudis[ORACLE], held.model.rows())


@pytest.mark.parametrize("version", [8, 9])
def test_rows_that_were_deleted_stay_so_for_hudi_behind_the_building_of_a_metadata_table(
    hudis: Hudis, tmp_path: Path, version: int
) -> None:
    """Both are of version 6, from which the table comes."""
    held = Written(tmp_path / "table", 6)
    held.write("insert", range(12), **METADATA)
    held.write("upsert", range(12))
    held.compact()
    held.delete()
    held.archive("commit", "deltacommit", "commit", "deltacommit", "deltacommit")
    upgrade_table(held.base, to=version)
    ours.assert_all_read(held.base, hudis[ORACLE], held.model.rows())
