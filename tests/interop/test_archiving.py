"""Timelines that we archived, in Hudi's hands: read, listed, written on and archived further; and
ours after Hudi's archiving."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

import pytest

from hudi_table.api import open_table
from hudi_table.codec.archive_entries import Entry, encode_entries, read_entries
from hudi_table.model.service.services import ServiceResult
from hudi_table.services.archiving.records import entry_of
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import archive_files, archived_entries
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_matrix import upsert
from tests.interop.test_merge_on_read import LOGS
from tests.interop.test_timeline import die_undecided
from tests.support.hudi_oracle import HudiOracle

# 0.15.0 is asked for more: what it archives is compared entry by entry.
pytestmark = [pytest.mark.interop, pytest.mark.by_turns("0.15.0")]

KEEP = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
}
THEIRS = KEEP | {"hoodie.metadata.enable": "false"}
TABLES = [("bucket", True, "CopyOnWrite"), ("simple", False, "MergeOnRead")]
tables = pytest.mark.parametrize(("index", "partitioned", "kind"), TABLES, ids=["copy-on-write", "merge-on-read"])


def written(base: Path, index: str, partitioned: bool, kind: str) -> Model:
    """Seven writes of ours, one of them dead and rolled back, a compaction where there are logs."""
    model = Model(partitioned=partitioned)
    ours.create(base, index=index, partitioned=partitioned, type=kind)
    for version in range(1, 8):
        operation = "delete" if version == 4 else "upsert"
        ours.write(base, operation, data := rows(range(version, version + 12), version))
        model.apply(operation, data)
        if version == 2:
            die_undecided(base, rows(range(40, 50), 9))
        age(base)
        if version == 5 and kind == "MergeOnRead":
            open_table(str(base)).compact(force=True)
    return model


def age(base: Path) -> None:
    """Two hours pass, as far as the store can tell."""
    then = time.time() - 7200
    for path in (base / ".hoodie").rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def archive(base: Path) -> ServiceResult:
    age(base)
    result = open_table(str(base)).archive(KEEP, force=True)
    assert isinstance(result, ServiceResult)
    return result


def archived_by(base: Path) -> set[tuple[str, str]]:
    """(instant, action) of the completed states that are in the archive alone, as we read it."""
    table = open_table(str(base))
    active = set(table.timeline()["instant"].to_pylist())
    found = table.timeline(archived=True)
    done = zip(found["instant"].to_pylist(), found["action"].to_pylist(), found["state"].to_pylist(), strict=True)
    return {(instant, action) for instant, action, state in done if state == "completed" and instant not in active}


def as_we_would(base: Path) -> dict[tuple[str, str, str], Entry]:
    """What we would archive of every state on the timeline, by time, action and state."""
    ctx = open_table(str(base)).context
    timeline = load_timeline(ctx)
    states = [state for some in timeline.states().values() for state in some]
    made = [entry_of(ctx, timeline, state, lambda name: ctx.storage.get(f".hoodie/{name}")) for state in states]
    return keyed(read_entries(encode_entries(made), path="ours"))


def entries_of(base: Path) -> dict[tuple[str, str, str], Entry]:
    """The entries of the archive, by the same."""
    return keyed(entry for some in archived_entries(open_table(str(base)).context) for entry in some)


def keyed(entries: Iterable[Entry]) -> dict[tuple[str, str, str], Entry]:
    return {(e["commitTime"], e["actionType"], e["actionState"]): e for e in entries}


def listed_by(oracle: HudiOracle, base: Path) -> set[str]:
    """The commits that Hudi finds in the archive; it parses what they did. On a copy: 0.15.0's
    CREATE TABLE drops keys of ours."""
    base = Path(shutil.copytree(base, base.with_name(f"{base.name}-listed")))
    name = f"t{uuid.uuid4().hex}"
    oracle.run(f"CREATE TABLE {name} USING hudi LOCATION '{base}'")
    bounds = "start_ts => '20000101000000000', end_ts => '21000101000000000'"
    found = oracle.sql(f"CALL show_archived_commits(table => '{name}', limit => 1000, {bounds})")
    oracle.run(f"DROP TABLE {name}")
    return set(found["commit_time"].to_pylist())


@tables
def test_hudi_reads_lists_and_goes_on_with_what_we_archived(
    hudis: Hudis, tmp_path: Path, index: str, partitioned: bool, kind: str
) -> None:
    base = tmp_path / "table"
    model = written(base, index, partitioned, kind)
    before = {
        (i, a) for i, a in zip(*open_table(str(base)).timeline().select([0, 1]).to_pydict().values(), strict=True)
    }
    result = archive(base)
    assert result.figures["instants"] >= 5
    gone = archived_by(base)
    assert len(gone) == result.figures["instants"]
    assert gone < before
    assert any(action == "rollback" for _, action in gone)

    def go_on(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        ours.assert_all_read(copy, oracle, expected.rows())
        assert listed_by(oracle, copy) == {instant for instant, action in gone if action.endswith("commit")}
        mine = as_we_would(copy)
        logs = LOGS if kind == "MergeOnRead" else {}
        for version in range(20, 24):
            upsert(oracle, copy, data := rows(range(3, 9), version), **(THEIRS | logs))
            expected.apply("upsert", data)
            ours.assert_all_read(copy, oracle, expected.rows())
        more = archived_by(copy)
        assert gone < more, "Hudi archived nothing: the test shows nothing"
        if not oracle.is_1x:
            # Hudi 1.1.1 keeps less: nothing of a pending write that is empty, for one.
            theirs = {key: entry for key, entry in entries_of(copy).items() if key in mine}
            assert theirs, "of our instants Hudi archived none: the test shows nothing"
            assert theirs == {key: mine[key] for key in theirs}
        for version in (30, 31):
            ours.write(copy, "upsert", data := rows(range(5, 20), version))
            expected.apply("upsert", data)
        archive(copy)
        assert more < archived_by(copy)
        assert len(archive_files(open_table(str(copy)).context)) >= 2
        ours.assert_all_read(copy, oracle, expected.rows())
        upsert(oracle, copy, data := rows(range(3, 9), 40), **(THEIRS | logs))
        expected.apply("upsert", data)
        ours.assert_all_read(copy, oracle, expected.rows())

    hudis.each_on_a_copy(base, go_on)
