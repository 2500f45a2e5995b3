"""Timelines of versions 8 and 9 that we archived, in the hands of Hudi 1.1.1: read, listed, asked
for changes, written on and archived further; and ours after its archiving."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest

from hudi_table.api import open_table
from hudi_table.table.timeline.archived import archived_completions
from hudi_table.table.timeline.lsm import read_manifest
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_archiving import age, archived_by
from tests.interop.test_later_versions import COMPACTING, LOGS, ORACLE, upsert
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop]

HISTORY = ".hoodie/timeline/history"
KEEP = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.timeline.compaction.batch.size": "2",
}
THEIRS = KEEP | {"hoodie.metadata.enable": "false", "hoodie.commits.archival.batch": "2"}


def archive(base: Path) -> None:
    age(base)
    assert open_table(base).archive(KEEP, force=True)


def written(base: Path, version: int, kind: str) -> Model:
    """Eight writes of ours, archived twice, a compaction where there are logs."""
    model = Model(partitioned=True)
    ours.create(base, index="simple", partitioned=True, type=kind, version=version)
    for number in range(1, 9):
        operation = "delete" if number == 4 else "upsert"
        ours.write(base, operation, data := rows(range(number, number + 12), number))
        model.apply(operation, data)
        if number in (3, 6) and kind == "MergeOnRead":
            open_table(base).compact(force=True)
        if number == 6:
            archive(base)
    archive(base)
    return model


def listed_by(oracle: HudiOracle, base: Path) -> set[str]:
    """The commits that Hudi finds in the archive."""
    copy = Path(shutil.copytree(base, base.with_name(f"{base.name}-listed")))
    name = f"t{uuid.uuid4().hex}"
    oracle.run(f"CREATE TABLE {name} USING hudi LOCATION '{copy}'")
    bounds = "start_ts => '20000101000000000', end_ts => '21000101000000000'"
    found = oracle.sql(f"CALL show_archived_commits(table => '{name}', limit => 1000, {bounds})")
    oracle.run(f"DROP TABLE {name}")
    shutil.rmtree(copy)
    return set(found["commit_time"].to_pylist())


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("version", [8, 9])
def test_hudi_reads_lists_and_goes_on_with_what_we_archived(
    hudis: Hudis, tmp_path: Path, version: int, kind: str
) -> None:
    base, oracle = tmp_path / "table", hudis[ORACLE]
    model = written(base, version, kind)
    gone = archived_by(base)
    assert len(gone) >= 6
    ours.assert_all_read(base, oracle, model.rows())
    assert listed_by(oracle, base) == {instant for instant, action in gone if action.endswith("commit")}
    # Hudi asks for changes by completion time, and for those of the archive there.
    completions = sorted(archived_completions(open_table(base).context).values())
    options = {
        "hoodie__datasource__query__type": "incremental",
        "hoodie__datasource__read__begin__instanttime": completions[-1],
    }
    since = oracle.read(base, **options)
    mine = open_table(base).scan(query="incremental", since=completions[-1], meta=True).to_arrow()
    assert sorted(since["id"].to_pylist()) == sorted(mine["id"].to_pylist())
    logs = {**LOGS, **COMPACTING} if kind == "MergeOnRead" else {}
    before = read_manifest(open_table(base).context.storage, HISTORY).number
    for number in range(20, 26):
        upsert(oracle, base, data := rows(range(3, 9), number), version, "simple", **(THEIRS | logs))
        model.apply("upsert", data)
    ours.assert_all_read(base, oracle, model.rows())
    more = archived_by(base)
    assert gone < more, "Hudi archived nothing: the test shows nothing"
    assert read_manifest(open_table(base).context.storage, HISTORY).number > before
    for number in (30, 31, 32):
        ours.write(base, "upsert", data := rows(range(5, 20), number))
        model.apply("upsert", data)
    archive(base)
    assert more < archived_by(base)
    ours.assert_all_read(base, oracle, model.rows())
    assert listed_by(oracle, base) == {instant for instant, action in archived_by(base) if action.endswith("commit")}
