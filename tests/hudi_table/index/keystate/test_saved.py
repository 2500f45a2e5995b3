"""A key state that outlives its process: a successor knows what its predecessor knew, reads what
came since, and believes nothing that may be wrong.

Matrix: {copy-on-write, merge-on-read} × table versions × random histories between two processes, a
timeline that does not go on, other partitions.

Omitted: what may befall the folder (`test_folder.py`), the state of one process (`test_index.py`).
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.index.keystate import runs
from hudi_table.index.keystate import state as states
from hudi_table.index.keystate.folder import PREFIX
from hudi_table.index.keystate.saved import Past, goes_on
from hudi_table.index.keystate.state import forget_states
from hudi_table.model.table.index_properties import STATE_FOLDER, STATE_PARTITIONS
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from tests.hudi_table.index.keystate.test_index import APART, BOTH, begun, opened_files
from tests.support.aged import AgedStorage
from tests.support.scale import scaled
from tests.support.written import SCHEMA, contents, keys, last_commit, new_table, rows

MOVES = (("k0", "y", 100), ("k1", "x", 101), ("k2", "z", 102), ("n", "y", 1))
MOVED = [*MOVES[:3], ("k3", "x", 3), ("k4", "y", 4), ("k5", "z", 5), MOVES[3]]


def kept(folder: Path) -> dict[str, str]:
    return APART | {STATE_FOLDER: str(folder)}


@pytest.fixture(autouse=True)
def new_process() -> Iterator[None]:
    forget_states()
    yield
    forget_states()


@contextmanager
def elsewhere() -> Iterator[None]:
    """Another process, at the same time: it has states of its own."""
    ours = dict(states._STATES)
    states._STATES.clear()
    try:
        yield
    finally:
        forget_states()
        states._STATES.update(ours)


def left_by_a_predecessor(folder: Path, kind: str = "CopyOnWrite", **more: Any) -> HudiTable:
    """A table of six groups whose keys a process has left behind."""
    table = begun(kind, **more)
    table.upsert(rows(("k0", "x", 0)), options=kept(folder))
    forget_states()
    return table


def read_by_a_successor(table: HudiTable, folder: Path, key: str = "other") -> set[str]:
    """The files that the first write of a new process opens, of a key that is nowhere."""
    forget_states()
    return set(opened_files(table, lambda t: t.upsert(rows((key, "x", 0)), options=kept(folder))))


@pytest.mark.thinned("pairs")
@BOTH
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("held", [0, 1 << 16], ids=["files", "memory"])
def test_a_successor_reads_the_files_of_the_instants_since_and_no_other(
    kind: str, version: int, held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "HELD_ENTRIES", held)
    table, option = begun(kind, version=version), APART | {STATE_FOLDER: str(tmp_path)}
    forget_states()
    first = opened_files(table, lambda t: t.upsert(rows(("k0", "x", 0)), options=option))
    forget_states()
    assert len(set(first)) == 6
    assert not opened_files(table, lambda t: t.upsert(rows(("other", "x", 0)), options=option))
    forget_states()
    table.upsert(rows(("k1", "x", 200), ("k9", "z", 9)), options=APART)
    news = {stat.path.rpartition("/")[2] for stat in last_commit(table).stats}
    assert len(news) == 3
    assert read_by_a_successor(table, tmp_path, "another") == news
    forget_states()
    table.upsert(rows(*MOVES, ("k9", "x", 10)), options=option)
    stays = [("k9", "x", 10), MOVES[3], ("another", "x", 0), ("other", "x", 0)]
    assert contents(table) == sorted([*MOVED[:-1], *stays])


@pytest.mark.thinned("values")
@BOTH
@pytest.mark.parametrize("version", [6, 9])
def test_random_histories_between_processes_change_no_answer(
    kind: str, version: int, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    """Each process moves all keys at last: one that it did not find would be there twice."""
    chance = random.Random(f"{kind} {version} {os.environ.get('HUDI_STREAMS_PASS', '')}")
    table, option = begun(kind, version=version), kept(tmp_path)
    model = {key: (city, value) for key, city, value in contents(table)}
    processes, spared = scaled(40, quick=4), 0
    for number in range(processes):
        for step in range(chance.randrange(1, 6)):
            happen = chance.choice([changed, changed, changed, deleted, served, taken_back])
            if chance.random() < 0.4:
                with elsewhere():
                    model = happen(table, model, chance, APART)
            else:
                model = happen(table, model, chance, option)
            assert contents(table) == sorted((key, *place) for key, place in model.items()), f"{number}, {step}"
        groups = {row["_hoodie_file_name"] for row in table.scan(meta=True).to_arrow().to_pylist()}
        spared += len(read_by_a_successor(table, tmp_path, "other")) < len(groups)
        model |= {"other": ("x", 0)}
        items = [(key, chance.choice("xyz"), number) for key in model]
        table.upsert(rows(*items), options=option)
        model = {key: (city, value) for key, city, value in items}
        assert contents(table) == sorted(items), f"process {number}"
    figure(processes, "processes that take a key state over")
    assert spared > processes // 5


Model = dict[str, tuple[str, int]]


def changed(table: HudiTable, model: Model, chance: random.Random, option: Mapping[str, str]) -> Model:
    """Keys that are new, stay or move."""
    items = [(key, chance.choice("xyz"), chance.randrange(1000)) for key in chance.sample([*"abcdef", *model], 5)]
    items = list({item[0]: item for item in items}.values())
    table.upsert(rows(*items), options=dict(option))
    return model | {key: (city, value) for key, city, value in items}


def deleted(table: HudiTable, model: Model, chance: random.Random, option: Mapping[str, str]) -> Model:
    gone = chance.sample(sorted(model), min(2, len(model) - 1))
    table.delete(keys(*((key, model[key][0]) for key in gone)), options=dict(option))
    return {key: place for key, place in model.items() if key not in gone}


def served(table: HudiTable, model: Model, chance: random.Random, option: Mapping[str, str]) -> Model:
    """A service that changes files and no row."""
    del option
    small = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    service = chance.choice(["cluster", "compact", "clean", "archive"])
    if service == "compact" and table.context.config.type.value == "CopyOnWrite":
        service = "cluster"
    if service == "archive":
        aged(table).archive(small)
    elif service == "clean":
        table.clean(small, force=True)
    else:
        getattr(table, service)(force=True)
    return model


def taken_back(table: HudiTable, model: Model, chance: random.Random, option: Mapping[str, str]) -> Model:
    """A write that is rolled back, or several by a restore."""
    if chance.random() < 0.5:
        savepoint = table.savepoint().instant
        for _ in range(2):
            changed(table, model, chance, option)
        table.restore(savepoint, writers_stopped=True)
        table.delete_savepoint(savepoint, writers_stopped=True)
        return model
    changed(table, model, chance, option)
    table.rollback(last_instant(table), writers_stopped=True)
    return model


def last_instant(table: HudiTable) -> str:
    found = load_timeline(table.context).last_commit
    assert found is not None
    return found.time


def aged(table: HudiTable) -> HudiTable:
    """The same, with all objects hours old."""
    ctx = table.context
    return HudiTable(TableContext(AgedStorage(ctx.storage), ctx.config, ctx.clock, ctx.metadata, ctx.settings))


def restored(table: HudiTable) -> HudiTable:
    first = load_timeline(table.context).commits[2].time
    table.savepoint(first)
    table.restore(first, writers_stopped=True)
    return table


def rolled_back(table: HudiTable) -> HudiTable:
    table.rollback(last_instant(table), writers_stopped=True)
    return table


def archived(table: HudiTable) -> HudiTable:
    for number in range(8):
        table.upsert(rows(("k3", "x", number)), options=APART)
    done = aged(table).archive(
        {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    )
    assert done is not None
    return table


def made_anew(table: HudiTable) -> HudiTable:
    shutil.rmtree(table.base_path.removeprefix("file://"))
    again = create_table(table.base_path, SCHEMA, record_key="id", partition_by="city", index="KeyState")
    again.insert(rows(("k0", "x", 0), ("k1", "y", 1)), options=APART)
    return again


@pytest.mark.parametrize("happen", [restored, rolled_back, archived, made_anew], ids=lambda happen: happen.__name__)
def test_a_state_whose_commits_are_not_all_in_the_timeline_is_read_anew(
    happen: Callable[[HudiTable], HudiTable], tmp_path: Path
) -> None:
    table = begun_at(tmp_path / "t")
    table.upsert(rows(("k0", "x", 0)), options=kept(tmp_path / "state"))
    forget_states()
    table = happen(table)
    files = {row["_hoodie_file_name"] for row in table.scan(meta=True).to_arrow().to_pylist()}
    assert read_by_a_successor(table, tmp_path / "state") == files
    before = {key: (city, value) for key, city, value in contents(table)}
    table.upsert(rows(*((key, "z", 7) for key in before)), options=kept(tmp_path / "state"))
    assert contents(table) == [(key, "z", 7) for key in sorted(before)]


def begun_at(place: Path) -> HudiTable:
    table = new_table(f"file://{place}", index="KeyState")
    for number in range(6):
        table.insert(rows((f"k{number}", "xyz"[number % 3], number)), options=APART)
    return table


def test_a_successor_that_begins_with_an_insert_reads_what_it_inserted_and_no_more(tmp_path: Path) -> None:
    table = left_by_a_predecessor(tmp_path)
    table.insert(rows(("new", "x", 1)), options=kept(tmp_path))
    news = {stat.path.rpartition("/")[2] for stat in last_commit(table).stats}
    read = opened_files(table, lambda t: t.upsert(rows(("other", "x", 0)), options=kept(tmp_path)))
    assert set(read) == news
    table.upsert(rows(*MOVES, ("new", "y", 2)), options=kept(tmp_path))
    assert contents(table) == sorted([*MOVED, ("new", "y", 2), ("other", "x", 0)])


def test_a_timeline_goes_on_from_commits_whose_newest_it_has_and_all_that_it_has_not_archived() -> None:
    one, two, three, four = (f"2026010100000{number}999" for number in (1, 2, 3, 4))
    short = "20260101000002"
    assert goes_on([one, two], {one, two})
    assert goes_on([one, two], {two, three})
    assert goes_on([one, short], {short, three})
    for seen, commits in (
        ([], {one}),
        ([one, two], set()),
        ([one, two], {three, four}),
        ([one, two], {one, three}),
        ([one, two, three], {one, three, four}),
    ):
        assert not goes_on(seen, commits)


def test_the_state_of_a_copy_of_a_table_is_not_that_of_the_table(tmp_path: Path) -> None:
    table = begun_at(tmp_path / "t")
    table.upsert(rows(("k0", "x", 0)), options=kept(tmp_path / "state"))
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    copy = open_table(f"file://{tmp_path}/copy")
    folder_of(table, tmp_path / "state").rename(folder_of(copy, tmp_path / "state"))
    assert len(read_by_a_successor(copy, tmp_path / "state")) == 6


def folder_of(table: HudiTable, root: Path) -> Path:
    past = Past.of(str(root), table.context, load_timeline(table.context))
    return root / f"{PREFIX}{past.name}"


def test_a_state_of_some_partitions_gives_a_successor_of_others_what_it_lacks(tmp_path: Path) -> None:
    table = begun()
    table.upsert(rows(("k0", "x", 0)), options=kept(tmp_path) | {STATE_PARTITIONS: "[xy]"})
    assert len(read_by_a_successor(table, tmp_path)) == 2, "the two groups of z"
    table.upsert(rows(*MOVES), options=kept(tmp_path))
    assert contents(table) == sorted([*MOVED, ("other", "x", 0)])
