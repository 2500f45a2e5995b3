"""Tables that we brought to another version, in Hudi's hands: 1.1.1 reads and writes on what we
upgraded, 0.15.0 on what we downgraded; and tables of Hudi's own, upgraded and downgraded by us."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from hudi_table.api import downgrade_table, open_table, upgrade_table
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_archiving import KEEP, age
from tests.interop.test_later_versions import COMPACTING, LOGS, upsert
from tests.interop.test_matrix import upsert as upsert_on_6
from tests.support import golden
from tests.support.rows import META, assert_same_rows

pytestmark = [pytest.mark.interop]

KINDS = ["CopyOnWrite", "MergeOnRead"]


def written(base: Path, version: int, index: str, kind: str) -> Model:
    """Eight writes of ours, of which some are archived."""
    model = Model(partitioned=True)
    ours.create(base, index=index, partitioned=True, type=kind, version=version)
    for number in range(1, 9):
        operation = "delete" if number == 4 else "upsert"
        ours.write(base, operation, data := rows(range(number, number + 12), number))
        model.apply(operation, data)
        if number == 5 and kind == "MergeOnRead":
            open_table(base).compact(force=True)
        if number == 6:
            age(base)
            assert open_table(base).archive(KEEP, force=True)
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("target", "index"), [(8, "simple"), (9, "bucket")])
def test_hudi_reads_and_writes_on_what_we_upgraded_and_what_we_downgraded_again(
    hudis: Hudis, tmp_path: Path, target: int, index: str, kind: str
) -> None:
    base, later, earlier = tmp_path / "table", hudis["1.1.1"], hudis["0.15.0"]
    model = written(base, 6, index, kind)
    history = set(open_table(base).timeline(archived=True)["instant"].to_pylist())
    upgrade_table(base, to=target)
    assert history <= set(open_table(base).timeline(archived=True)["instant"].to_pylist())
    ours.assert_all_read(base, later, model.rows())
    logs = {**LOGS, **COMPACTING} if kind == "MergeOnRead" else {}
    for number in range(20, 24):
        upsert(later, base, data := rows(range(number, number + 5), number), target, index, **(KEEP | logs))
        model.apply("upsert", data)
    ours.assert_all_read(base, later, model.rows())
    with warnings.catch_warnings(action="ignore"):
        ours.write(base, "upsert", data := rows(range(3, 30), 30))
    model.apply("upsert", data)
    ours.assert_all_read(base, later, model.rows())
    downgrade_table(base, to=6)
    assert history <= set(open_table(base).timeline(archived=True)["instant"].to_pylist())
    ours.assert_all_read(base, earlier, model.rows())
    logs = LOGS if kind == "MergeOnRead" else {}
    if index == "bucket":
        logs = {**logs, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
    upsert_on_6(earlier, base, data := rows(range(10, 16), 40), **logs)
    model.apply("upsert", data)
    ours.assert_all_read(base, earlier, model.rows())
    with warnings.catch_warnings(action="ignore"):
        ours.write(base, "upsert", data := rows(range(12, 20), 41))
    model.apply("upsert", data)
    ours.assert_all_read(base, earlier, model.rows())


@pytest.mark.parametrize(
    ("name", "target", "version"),
    [
        ("up6", 8, "1.1.1"),
        ("up6", 9, "1.1.1"),
        ("arch", 9, "1.1.1"),
        ("v8_lsm", 6, "0.15.0"),
        ("v9_mor_sched", 6, "0.15.0"),
    ],
)
def test_hudi_reads_the_same_rows_of_its_own_table_in_the_version_to_which_we_brought_it(
    hudis: Hudis, tmp_path: Path, name: str, target: int, version: str
) -> None:
    """Of up6 Hudi's own upgrade hides a row: its compaction is pending."""
    found = golden.unpack(name, tmp_path)
    expected = found.rows()
    bring = downgrade_table if target == 6 else upgrade_table
    bring(found.base, to=target)
    seen = hudis[version].read(found.base)
    columns = [column for column in expected.column_names if column not in META or column == "_hoodie_record_key"]
    assert_same_rows(seen.select(columns), expected.select(columns), of=f"Hudi {version}")
    mine = open_table(found.base).scan(meta=True).to_arrow()
    assert_same_rows(mine.select(columns), expected.select(columns), of="ours")
