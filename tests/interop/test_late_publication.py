"""A commit of nothing, which stands in the place of a decided write that was taken back, in Hudi's
hands: read past, written on, archived."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from hudi_table.api import open_table
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_archiving import THEIRS
from tests.interop.test_matrix import upsert
from tests.support.beside import an_engine_without_our_chain
from tests.support.late_publication import after_the_quarantine, asleep_before_the_create

pytestmark = [pytest.mark.interop]
MORE = [
    ("0.15.0", 6, "CopyOnWrite"),
    ("1.1.1", 6, "CopyOnWrite"),
    ("1.1.1", 6, "MergeOnRead"),
    ("1.1.1", 9, "MergeOnRead"),
]
LOCK = {"hoodie.write.lock.provider": "FileSystemBasedLockProvider"}


@pytest.mark.parametrize(
    ("release", "version", "kind"),
    [
        ("0.15.0", 6, "MergeOnRead"),
        ("1.1.1", 9, "CopyOnWrite"),
        *(pytest.param(*each, marks=pytest.mark.at_scale(2)) for each in MORE),
    ],
)
def test_hudi_reads_past_a_commit_of_nothing_writes_on_and_archives_it(
    hudis: Hudis, tmp_path: Path, release: str, version: int, kind: Literal["CopyOnWrite", "MergeOnRead"]
) -> None:
    base, model, oracle = tmp_path / "table", Model(partitioned=True), hudis[release]
    ours.create(base, index="bucket", partitioned=True, type=kind, version=version)
    table = open_table(base, lock=LOCK)
    others = after_the_quarantine(open_table(base, lock=LOCK))
    table.upsert(rows(range(12), 1))

    def meanwhile() -> None:
        an_engine_without_our_chain(table, lambda other: other.upsert(rows(range(6), 3)))
        open_table(base, lock=LOCK).upsert(rows(range(3), 4))
        others.clean()

    asleep_before_the_create(lambda: table.upsert(rows(range(4, 20), 2)), base, meanwhile, dies=True)
    for numbers, at in ((range(12), 1), (range(6), 3), (range(3), 4)):
        model.apply("upsert", rows(numbers, at))
    (empty,) = _empty(base)
    ours.assert_all_read(base, oracle, model.rows())
    logs = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"} if kind == "MergeOnRead" else {}
    for at in range(5, 10):
        upsert(oracle, base, data := rows(range(at, at + 9), at), **(THEIRS | logs))
        model.apply("upsert", data)
        ours.assert_all_read(base, oracle, model.rows())
    assert empty not in _empty(base), "Hudi archived nothing: the test shows nothing"
    ours.write(base, "upsert", data := rows(range(2, 9), 10))
    model.apply("upsert", data)
    ours.assert_all_read(base, oracle, model.rows())


def _empty(base: Path) -> list[str]:
    ctx = open_table(base).context
    return [each.time for each in load_timeline(ctx).commits if commit_metadata(ctx, each).is_taken_back]
