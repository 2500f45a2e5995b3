"""Cleaning and savepoints across engines: tables that we cleaned go on in every engine, plans of
each are executed by the other, the same history is cleaned of the same files, and each respects the
other's savepoints."""

from __future__ import annotations

import random
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import ExpiredError
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.cleaning.plan import clean_choice
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.clean_plans import last_clean, parse_clean, read_plan
from hudi_table.table.view.file_system_view import FileSystemView
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_matrix import upsert
from tests.interop.test_merge_on_read import LOGS
from tests.support.hudi_oracle import HudiFailedError, HudiOracle
from tests.support.scale import scaled

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

POLICIES = {
    "commits": ("KEEP_LATEST_COMMITS", {"hoodie.clean.commits.retained": "2"}, "retain_commits => 2"),
    "hours": ("KEEP_LATEST_BY_HOURS", {"hoodie.clean.hours.retained": "1"}, "hours_retained => 1"),
    "versions": (
        "KEEP_LATEST_FILE_VERSIONS",
        {"hoodie.clean.fileversions.retained": "1"},
        "file_versions_retained => 1",
    ),
}
KEEP_TWO = {"hoodie.clean.commits.retained": "2"}
HISTORY = (
    ("insert", range(24), 1),
    ("upsert", range(6, 18), 2),
    ("upsert", range(0, 24, 3), 3),
    ("delete", range(0, 24, 5), 4),
    ("upsert", range(20, 30), 5),
    ("upsert", range(4, 9), 6),
)
TABLES: dict[str, dict[str, Any]] = {
    "copy-on-write": {"index": "simple", "partitioned": True},
    "merge-on-read": {"index": "simple", "partitioned": False, "type": "MergeOnRead"},
}
tables = pytest.mark.parametrize("kind", TABLES)


def written(base: Path, kind: str) -> tuple[HudiTable, Model]:
    model = Model(partitioned=bool(TABLES[kind]["partitioned"]))
    ours.create(base, **TABLES[kind])
    for number, (operation, numbers, version) in enumerate(HISTORY):
        data = rows(numbers, version)
        ours.write(base, operation, data)
        model.apply(operation, data)
        if kind == "merge-on-read" and number in (2, 4):
            open_table(str(base)).compact(force=True)
    return open_table(str(base)), model


def told(kind: str) -> dict[str, str]:
    return {**(LOGS if kind == "merge-on-read" else {}), "hoodie.metadata.enable": "false"}


def hudi_cleans(oracle: HudiOracle, base: Path, *arguments: str) -> None:
    name = f"cleaned_{uuid.uuid4().hex[:8]}"
    oracle.run(f"CREATE TABLE {name} USING hudi LOCATION '{base}'")
    oracle.sql(
        f"CALL run_clean({', '.join([f'table => {name!r}', *arguments])}, options => 'hoodie.metadata.enable=false')"
    )
    oracle.run(f"DROP TABLE {name}")
    # CREATE TABLE of 0.15.0 has written the properties anew, without those that only we know.
    open_table(str(base)).mend()


def cleans(table: HudiTable) -> list[Instant]:
    return [i for i in load_timeline(table.context).instants if i.action is Action.CLEAN]


def paths_of(files: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {f"{p}/{name}".lstrip("/") for p, names in files.items() for name in names}


def data_files(base: Path) -> set[str]:
    found = (path.relative_to(base).as_posix() for path in base.rglob("*") if path.is_file())
    return {name for name in found if not name.startswith(".hoodie/") and not name.endswith("metadata")}


@tables
def test_every_engine_reads_and_goes_on_with_what_we_cleaned(hudis: Hudis, tmp_path: Path, kind: str) -> None:
    base = tmp_path / "table"
    table, model = written(base, kind)
    (done,) = table.clean(KEEP_TWO)
    assert done.figures["filesDeleted"] > 0

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        ours.assert_all_read(copy, oracle, expected.rows())
        cleaning = {"hoodie.clean.commits.retained": "2", "hoodie.cleaner.commits.retained": "2"}
        upsert(oracle, copy, data := rows([5, 6, 11, 60, 61], 7), **told(kind), **cleaning)
        expected.apply("upsert", data)
        ours.assert_all_read(copy, oracle, expected.rows())
        ours.write(
            copy, "upsert", data := rows(range(0, 62, 4), 8), options=KEEP_TWO | {"hoodie.clean.automatic": "true"}
        )
        expected.apply("upsert", data)
        mine = open_table(str(copy))
        mine.clean(KEEP_TWO, force=True)
        assert not [i for i in cleans(mine) if not i.completed]
        ours.assert_all_read(copy, oracle, expected.rows())

    hudis.each_on_a_copy(base, each)


@tables
def test_hudi_executes_our_pending_clean(hudis: Hudis, tmp_path: Path, kind: str) -> None:
    base = tmp_path / "table"
    table, model = written(base, kind)
    first = load_timeline(table.context).commits[1].time

    def each(oracle: HudiOracle) -> None:
        # A plan names files by their absolute paths: each version has a table of its own at the place where it was planned.
        copy = base.with_name(f"table-{oracle.version}")
        shutil.copytree(base, copy)
        mine = open_table(str(copy))
        plan = mine.schedule_clean(KEEP_TWO)
        assert plan is not None
        named = read_plan(mine.context, Instant(plan.instant, Action.CLEAN, State.REQUESTED)).files
        before = data_files(copy)
        # With nothing of its own to clean, Hudi finishes what waits.
        hudi_cleans(oracle, copy, "retain_commits => 9")
        assert [(i.time, i.state) for i in cleans(mine)] == [(plan.instant, State.COMPLETED)]
        assert before - data_files(copy) == paths_of(named)
        ours.assert_all_read(copy, oracle, model.rows())
        with pytest.raises(ExpiredError, match=plan.instant):
            mine.scan(as_of=first).to_arrow()
        assert mine.run_clean(plan.instant).replayed

    hudis.each(each)


@tables
@pytest.mark.parametrize("policy", ["commits", "versions"])
def test_a_moment_before_what_a_clean_retains_is_read_by_us_alone_and_never_with_rows_missing(
    hudis: Hudis, tmp_path: Path, policy: str, kind: str
) -> None:
    """Case 58: Hudi refuses what the clean does not promise, though the files are there; where the
    clean promises nothing it reads on without those that are gone."""
    base = tmp_path / "table"
    table, _ = written(base, kind)
    name, options, _ = POLICIES[policy]
    table.clean({"hoodie.clean.policy": name} | options, force=True)
    timeline = load_timeline(table.context)
    clean = last_clean(table.context, timeline)
    assert clean is not None
    retains = clean.retains
    moments = [i.time for i in timeline.commits]
    answers = {moment: _count(table, moment) for moment in moments}
    assert bool(retains) == (policy == "commits")
    assert None in answers.values()
    assert not retains or any(n for moment, n in answers.items() if moment < retains), "nothing is read by us alone"

    def each(oracle: HudiOracle) -> None:
        missing = 0
        for moment, mine in answers.items():
            if moment < retains:
                with pytest.raises(HudiFailedError, match="Cleaner cleaned up the timestamp"):
                    oracle.read(base, as__of__instant=moment)
                continue
            theirs = oracle.read(base, as__of__instant=moment).num_rows
            assert mine in (None, theirs)
            missing += mine is None
        assert bool(missing) == (not retains)

    hudis.each(each)


def _count(table: HudiTable, moment: str) -> int | None:
    try:
        return table.scan(as_of=moment).count()
    except ExpiredError:
        return None


@tables
def test_we_execute_a_clean_that_hudi_planned(hudis: Hudis, tmp_path: Path, kind: str) -> None:
    base = tmp_path / "table"
    _, model = written(base, kind)

    def each(oracle: HudiOracle, copy: Path) -> None:
        other = copy.with_name(f"{copy.name}-planned")
        shutil.copytree(copy, other)
        hudi_cleans(oracle, other, "retain_commits => 2")
        theirs = open_table(str(other))
        (instant,) = cleans(theirs)
        # What Hudi leaves if it dies after planning.
        name = f"{instant.time}.clean.requested"
        shutil.copy(other / ".hoodie" / name, copy / ".hoodie" / name)
        mine = open_table(str(copy))
        (done,) = mine.clean({"hoodie.clean.commits.retained": "9"})
        assert done.instant == instant.time
        assert done.figures["filesDeleted"] > 0
        assert data_files(copy) == data_files(other)
        ours.assert_all_read(copy, oracle, model.rows())
        upsert(oracle, copy, rows([1], 9), **told(kind))

    hudis.each_on_a_copy(base, each)


HISTORIES = [(kind, seed, policy) for seed in range(scaled(2)) for kind in TABLES for policy in POLICIES]


@pytest.mark.parametrize(("kind", "seed", "policy"), HISTORIES)
def test_of_one_history_hudi_deletes_what_we_would_delete(
    hudis: Hudis, tmp_path: Path, kind: str, seed: int, policy: str
) -> None:
    """Hudi 0.15.0's own plan, file by file: writes of every kind, compactions, a plan that is
    pending, a savepoint, an earlier clean."""
    oracle = hudis["0.15.0"]
    name, options, argument = POLICIES[policy]
    options = options | {"hoodie.clean.policy": name}
    base = tmp_path / "table"
    ours.create(base, **TABLES[kind])
    random_history(base, kind, random.Random(f"{kind} {seed}"))
    table = open_table(str(base))
    planned = table.plan_clean(options)
    mine = set()
    if planned is not None:
        draft = clean_choice(table.context, options, force=True)(
            FileSystemView(table.context, load_timeline(table.context))
        )
        assert draft is not None
        mine = paths_of(parse_clean(draft.body, "ours").files)
    before = data_files(base)
    known = cleans(table)
    hudi_cleans(oracle, base, f"clean_policy => '{name}'", argument)
    new = [instant for instant in cleans(table) if instant not in known]
    plans = [read_plan(table.context, instant) for instant in new]
    assert {path for plan in plans for path in paths_of(plan.files)} == mine
    # Case 31 of docs/reference/compatibility.md: with an emptied partition go the files that a savepoint keeps there.
    kept = {path for found in table.savepoints() for path in paths_of(found.files)}
    emptied = {partition for plan in plans for partition in plan.partitions}
    more = before - data_files(base) - mine
    assert {path for path in more if path not in kept or path.rpartition("/")[0] not in emptied} == set()


def random_history(base: Path, kind: str, chance: random.Random) -> None:
    operations = ["insert", "upsert", "upsert", "upsert", "delete", "insert_overwrite", "delete_partition"]
    for version in range(1, 13):
        numbers = sorted(chance.sample(range(40), 8))
        operation = "insert" if version == 1 else chance.choice(operations)
        if operation in ("insert_overwrite", "delete_partition"):
            numbers = numbers[:1]
        if operation == "insert":
            numbers = [number + 40 * version for number in numbers]
        known = {p.parent.name for p in base.rglob("*.parquet")}
        data = rows(numbers, version)
        if operation == "delete_partition" and TABLES[kind]["partitioned"] and data["city"][0].as_py() not in known:
            operation = "upsert"
        ours.write(base, operation, data)
        table = open_table(str(base))
        if kind == "merge-on-read" and version % 4 == 0:
            table.compact(force=True)
        if version == 3:
            table.savepoint()
        if version == 6:
            table.clean({"hoodie.clean.commits.retained": "3"}, force=True)
    if kind == "merge-on-read":
        open_table(str(base)).schedule_compaction(force=True)


@tables
def test_hudi_respects_our_savepoint_restores_to_it_and_deletes_it(hudis: Hudis, tmp_path: Path, kind: str) -> None:
    base = tmp_path / "table"
    model = Model(partitioned=bool(TABLES[kind]["partitioned"]))
    ours.create(base, **TABLES[kind])
    kept = None
    for operation, numbers, version in HISTORY:
        data = rows(numbers, version)
        ours.write(base, operation, data)
        if version <= 3:
            model.apply(operation, data)
        if version == 3:
            kept = open_table(str(base)).savepoint(comment="before the delete")
    assert kept is not None

    def each(oracle: HudiOracle, copy: Path) -> None:
        mine = open_table(str(copy))
        shown = oracle.sql(f"CALL show_savepoints(path => '{copy}')")
        assert shown.column(0).to_pylist() == [kept.instant]
        hudi_cleans(oracle, copy, "retain_commits => 1")
        assert mine.scan(as_of=kept.instant).count() == len(model.rows())
        restored = copy.with_name(f"{copy.name}-restored")
        shutil.copytree(copy, restored)
        # Its own metadata table, which it would make for the restore, is younger than the savepoint; 1.1.1 upgrades the table.
        told_so = {
            "hoodie.metadata.enable": "false",
            "hoodie.write.auto.upgrade": "false",
            "hoodie.write.table.version": "6",
        }
        for key, value in told_so.items():
            oracle.sql(f"SET {key}={value}")
        try:
            oracle.sql(f"CALL rollback_to_savepoint(path => '{restored}', instant_time => '{kept.instant}')")
        finally:
            for key in told_so:
                oracle.run(f"RESET {key}")
        ours.assert_all_read(restored, oracle, model.rows())
        oracle.sql(f"CALL delete_savepoint(path => '{copy}', instant_time => '{kept.instant}')")
        assert not mine.savepoints()
        ours.write(copy, "upsert", rows([3], 9))
        upsert(oracle, copy, rows([4], 10), **told(kind))
        mine.clean({"hoodie.clean.commits.retained": "1"}, force=True)
        if kind == "copy-on-write":
            with pytest.raises(ExpiredError):
                mine.scan(as_of=kept.instant).to_arrow()

    hudis.each_on_a_copy(base, each)


@tables
def test_we_respect_a_savepoint_of_hudi(hudis: Hudis, tmp_path: Path, kind: str) -> None:
    base = tmp_path / "table"
    table, model = written(base, kind)
    newest = load_timeline(table.context).last_commit
    assert newest is not None

    def each(oracle: HudiOracle, copy: Path) -> None:
        oracle.sql(f"CALL create_savepoint(path => '{copy}', commit_time => '{newest.time}')")
        mine = open_table(str(copy))
        (kept,) = mine.savepoints()
        assert kept.instant == newest.time
        for version in range(7, 11):
            ours.write(copy, "upsert", rows(range(30), version))
            mine.compact(force=True) if kind == "merge-on-read" else None
        (done,) = mine.clean({"hoodie.clean.commits.retained": "1"})
        assert done.figures["filesDeleted"] > 0
        assert paths_of(kept.files) <= data_files(copy)
        assert mine.scan(as_of=newest.time).count() == len(model.rows())
        mine.delete_savepoint(kept.instant, writers_stopped=True)
        assert mine.clean({"hoodie.clean.commits.retained": "1"}, force=True)
        upsert(oracle, copy, rows([3], 20), **told(kind))

    hudis.each_on_a_copy(base, each)


def test_hudi_drops_what_a_savepoint_keeps_in_an_emptied_partition_and_we_do_not(hudis: Hudis, tmp_path: Path) -> None:
    """Case 31 of docs/reference/compatibility.md."""
    base = tmp_path / "table"
    ours.create(base, **TABLES["copy-on-write"])
    ours.write(base, "insert", rows(range(9), 1))
    kept = open_table(str(base)).savepoint()
    ours.write(base, "upsert", rows(range(9), 2))
    ours.write(base, "delete_partition", rows([0], 3))
    ours.write(base, "upsert", rows([1], 4))
    name, options, argument = POLICIES["versions"]

    def each(oracle: HudiOracle, copy: Path) -> None:
        other = copy.with_name(f"{copy.name}-ours")
        shutil.copytree(copy, other)
        hudi_cleans(oracle, copy, f"clean_policy => '{name}'", argument)
        mine = open_table(str(other))
        mine.clean(options | {"hoodie.clean.policy": name})
        (found,) = mine.savepoints()
        assert paths_of(found.files) <= data_files(other)
        assert mine.scan(as_of=kept.instant).count() == 9
        assert {p.rpartition("/")[0] for p in paths_of(found.files) - data_files(copy)} == {"nyc"}

    hudis.each_on_a_copy(base, each)
