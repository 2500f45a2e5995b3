"""An ingest from another Hudi table, on the local engine: all rows, then what changes, deletes
among them, and what is refused."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest

from hudi_spark.jobs.__main__ import main
from hudi_table import create_table, write_hudi
from hudi_table.arguments import TableTypeName
from hudi_table.cli.program import main as hudictl
from hudi_table.model.job.jobspec import JobResult
from hudi_table.sources.checkpoints import held_upstream
from hudi_table.table.store.local import LocalStorage
from tests.support.chained import SCHEMA, Chain, rows_of
from tests.support.scale import scaled

KINDS: list[tuple[TableTypeName, int]] = [
    (kind, version) for kind in ("CopyOnWrite", "MergeOnRead") for version in (6, 9)
]


@pytest.fixture(params=KINDS, ids=lambda param: f"{param[0]}-{param[1]}")
def chain(request: pytest.FixtureRequest, tmp_path: Path) -> Chain:
    found = Chain(tmp_path, *request.param)
    found.begin()
    return found


@pytest.fixture
def plain(tmp_path: Path) -> Chain:
    found = Chain(tmp_path)
    found.begin()
    return found


def test_all_rows_come_first_then_what_changed_and_what_was_deleted(chain: Chain) -> None:
    write_hudi(chain.above, rows_of(("a", "x", 1), ("b", "x", 2), ("c", "y", 3)))
    first = chain.follow(deletes="Delete")
    assert (first.outcome, first.figures["recordsInserted"]) == ("Succeeded", 3)
    write_hudi(chain.above, rows_of(("a", "x", 10), ("d", "y", 4)))
    chain.above.delete(rows_of(("b", "x", 0)))
    again = chain.follow("two", deletes="Delete")
    assert (again.figures["instantsTaken"], again.figures["commits"]) == (2, 1)
    assert chain.shown(chain.below) == [("a", "x", 10), ("c", "y", 3), ("d", "y", 4)]
    assert chain.follow("three", deletes="Delete").outcome == "NothingToDo"


def test_deleted_rows_stay_unless_deletes_are_wanted(chain: Chain) -> None:
    write_hudi(chain.above, rows_of(("a", "x", 1), ("b", "x", 2)))
    chain.follow()
    chain.above.delete(rows_of(("b", "x", 0)))
    write_hudi(chain.above, rows_of(("a", "x", 10)))
    chain.follow("two")
    assert chain.shown(chain.below) == [("a", "x", 10), ("b", "x", 2)]
    assert "_hoodie_is_deleted" not in chain.below.schema().names


def test_a_row_that_was_deleted_and_written_again_is_there(chain: Chain) -> None:
    write_hudi(chain.above, rows_of(("a", "x", 1), ("b", "x", 2)))
    chain.follow(deletes="Delete")
    chain.above.delete(rows_of(("a", "x", 0), ("b", "x", 0)))
    write_hudi(chain.above, rows_of(("a", "x", 5)))
    chain.follow("two", deletes="Delete")
    assert chain.shown(chain.below) == [("a", "x", 5)]


def test_a_third_table_follows_the_second_with_its_deletes(plain: Chain) -> None:
    third = Chain(plain.folder / "more")
    third.folder.mkdir()
    (third.folder / "above").symlink_to(plain.folder / "below")
    write_hudi(plain.above, rows_of(("a", "x", 1), ("b", "x", 2)))
    for each in (plain, third):
        each.follow(deletes="Delete")
    plain.above.delete(rows_of(("a", "x", 0)))
    write_hudi(plain.above, rows_of(("c", "y", 3)))
    for each in (plain, third):
        each.follow("two", deletes="Delete")
        assert each.shown(each.below) == [("b", "x", 2), ("c", "y", 3)]


def test_a_row_that_came_and_went_meanwhile_is_not(chain: Chain) -> None:
    write_hudi(chain.above, rows_of(("a", "x", 1)))
    chain.follow(deletes="Delete")
    write_hudi(chain.above, rows_of(("b", "x", 2)))
    chain.above.delete(rows_of(("b", "x", 0)))
    chain.follow("two", deletes="Delete")
    assert chain.shown(chain.below) == [("a", "x", 1)]


def test_what_is_overwritten_is_deleted(chain: Chain) -> None:
    write_hudi(chain.above, rows_of(("a", "x", 1), ("b", "x", 2), ("c", "y", 3)))
    chain.follow(deletes="Delete")
    write_hudi(chain.above, rows_of(("b", "x", 9)), operation="insert_overwrite")
    chain.follow("two", deletes="Delete")
    assert chain.shown(chain.below) == [("b", "x", 9), ("c", "y", 3)]


def test_a_row_that_moves_to_another_partition_is_there_once(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    create_table(str(tmp_path / "above"), SCHEMA, record_key="id", partition_by="city", index={"type": "GlobalSimple"})
    write_hudi(chain.above, rows_of(("a", "x", 1), ("b", "x", 2)))
    flat = Chain(tmp_path / "flat", partitioned=False)
    flat.folder.mkdir()
    (flat.folder / "above").symlink_to(tmp_path / "above")
    for each in (chain, flat):
        each.follow(deletes="Delete")
    write_hudi(chain.above, rows_of(("a", "y", 5)))
    for each in (chain, flat):
        each.follow("two", deletes="Delete")
        assert each.shown(each.below) == [("a", "y", 5), ("b", "x", 2)]


def test_a_commit_that_began_before_another_and_completes_behind_it_is_taken(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hudi(chain.above, rows_of(("a", "x", 1), ("b", "y", 1)))
    chain.follow()
    began, ends, real = threading.Event(), threading.Event(), LocalStorage.open_write

    @contextlib.contextmanager
    def slow(store: LocalStorage, path: str) -> Iterator[BinaryIO]:
        with real(store, path) as sink:
            yield sink
            if store.base_path.endswith("above") and path.startswith("y/"):
                began.set()
                assert ends.wait(60)

    monkeypatch.setattr(LocalStorage, "open_write", slow)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(write_hudi, chain.above, rows_of(("c", "y", 1)))
        assert began.wait(60)
        write_hudi(chain.above, rows_of(("d", "x", 1)))
        chain.follow("two")
        assert "c" not in {row[0] for row in chain.shown(chain.below)}
        ends.set()
        late.result(60)
    chain.follow("three")
    assert [row[0] for row in chain.shown(chain.below)] == ["a", "b", "c", "d"]


def test_services_of_the_other_table_change_nothing_here(plain: Chain) -> None:
    for n in range(3):
        write_hudi(plain.above, rows_of(("a", "x", n), (f"k{n}", "y", n)))
    plain.follow(deletes="Delete")
    before = len(plain.below.timeline().to_pylist())
    plain.above.cluster()
    assert plain.follow("two", deletes="Delete").outcome == "NothingToDo"
    assert len(plain.below.timeline().to_pylist()) == before
    write_hudi(plain.above, rows_of(("a", "x", 7)))
    plain.follow("three", deletes="Delete")
    assert plain.shown(plain.below) == plain.shown(plain.above)


def test_an_ingest_that_begins_at_latest_makes_the_table_and_takes_what_comes(plain: Chain) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1)))
    assert plain.follow(startFrom="Latest").outcome == "Succeeded"
    assert plain.shown(plain.below) == []
    write_hudi(plain.above, rows_of(("b", "x", 2)))
    plain.follow("two", startFrom="Latest")
    assert plain.shown(plain.below) == [("b", "x", 2)]


def test_a_commit_takes_as_many_commits_as_it_may(plain: Chain) -> None:
    for n in range(5):
        write_hudi(plain.above, rows_of((f"k{n}", "x", n)))
        if not n:
            plain.follow(maxInstants=2)
    result = plain.follow("two", maxInstants=2)
    assert (result.figures["commits"], result.figures["instantsTaken"]) == (2, 4)
    assert plain.shown(plain.below) == plain.shown(plain.above)


def test_rewrites_fill_no_commit_so_that_what_comes_behind_them_is_taken(plain: Chain) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1)))
    plain.follow(maxInstants=1)
    assert plain.above.cluster(force=True)
    assert plain.follow("rewrites", maxInstants=1).outcome == "NothingToDo"
    write_hudi(plain.above, rows_of(("b", "x", 2)))
    write_hudi(plain.above, rows_of(("c", "x", 3)))
    result = plain.follow("writes", maxInstants=1)
    assert (result.figures["commits"], result.figures["instantsTaken"]) == (2, 3)
    assert plain.shown(plain.below) == plain.shown(plain.above)


def test_rows_are_transformed_on_their_way(plain: Chain) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1), ("b", "x", 2)))
    sql = {"sql": "SELECT id, city, n * 2 AS n, _hoodie_is_deleted FROM source WHERE n < 100 OR _hoodie_is_deleted"}
    plain.follow(deletes="Delete", transform=[sql])
    plain.above.delete(rows_of(("b", "x", 0)))
    write_hudi(plain.above, rows_of(("c", "x", 3), ("d", "x", 100)))
    plain.follow("two", deletes="Delete", transform=[sql])
    assert plain.shown(plain.below) == [("a", "x", 2), ("c", "x", 6)]


def test_a_transform_that_would_lose_deletes_is_refused(plain: Chain) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1)))
    sql = {"sql": "SELECT id, city, n FROM source WHERE n < 100"}
    result = plain.follow(deletes="Delete", transform=[sql])
    assert (result.outcome, result.error_class) == ("Failed", "InvalidRequest")
    assert "_hoodie_is_deleted" in result.message


@pytest.mark.parametrize("hudi", [{"deletes": "Delete"}, {"onDataLoss": "Continue"}])
def test_inserts_go_with_neither_deletes_nor_a_second_reading(plain: Chain, hudi: dict[str, str]) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1)))
    result = plain.follow(operation="Insert", **hudi)
    assert (result.outcome, result.error_class) == ("Failed", "InvalidRequest")
    assert not (plain.folder / "below").exists()


def test_a_table_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    result = Chain(tmp_path).follow()
    assert (result.outcome, result.message) == ("NothingToDo", f"there is no table at file://{tmp_path}/above yet")


def test_changes_that_were_cleaned_away_stop_the_ingest_or_all_rows_come_again(plain: Chain) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1), ("b", "x", 1)))
    plain.follow(deletes="Delete")
    for n in range(2, 40):
        write_hudi(plain.above, rows_of(("a", "x", n)))
    plain.above.clean(options={"hoodie.clean.commits.retained": "2"})
    plain.above.archive(
        options={"hoodie.clean.commits.retained": "2", "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
    )
    result = plain.follow("two", deletes="Delete")
    assert (result.outcome, result.error_class) == ("Failed", "DataLoss")
    assert "hudi.onDataLoss: Continue" in result.message
    assert plain.shown(plain.below) == [("a", "x", 1), ("b", "x", 1)]
    plain.follow("three", deletes="Delete", onDataLoss="Continue")
    assert plain.shown(plain.below) == plain.shown(plain.above)


def test_a_table_that_was_made_anew_is_seen(plain: Chain) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1)))
    plain.follow()
    (plain.folder / "above").rename(plain.folder / "gone")
    plain.begin()
    write_hudi(plain.above, rows_of(("b", "x", 2)))
    result = plain.follow("two")
    assert (result.outcome, result.error_class) == ("Failed", "DataLoss")
    assert "made anew" in result.message


def test_a_table_that_was_brought_back_is_seen(plain: Chain) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1)))
    write_hudi(plain.above, rows_of(("b", "x", 2)))
    plain.follow()
    newest = plain.above.timeline().to_pylist()[-1]["instant"]
    plain.above.rollback(newest, writers_stopped=True)
    write_hudi(plain.above, rows_of(("c", "x", 3)))
    assert plain.follow("two").error_class == "DataLoss"


def test_a_second_driver_commits_nothing(plain: Chain) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1)))
    plain.follow()
    write_hudi(plain.above, rows_of(("b", "x", 2)))
    held = held_upstream(plain.below.context, "feed")
    assert held is not None
    plain.follow("two", operation="Insert")
    assert plain.follow("three", operation="Insert").outcome == "NothingToDo"
    assert plain.shown(plain.below) == [("a", "x", 1), ("b", "x", 2)]


def test_the_checkpoint_is_shown(plain: Chain, capsys: pytest.CaptureFixture[str]) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1)))
    plain.follow()
    capsys.readouterr()
    hudictl(["checkpoint", "show", str(plain.folder / "below")])
    newest = plain.above.timeline().to_pylist()[-1]["instant"]
    assert f"Hudi    {newest}" not in capsys.readouterr().err
    hudictl(["checkpoint", "show", str(plain.folder / "below")])
    assert f"above {newest}" in capsys.readouterr().out


def test_another_source_does_not_take_the_checkpoint_for_its_own(plain: Chain) -> None:
    write_hudi(plain.above, rows_of(("a", "x", 1)))
    plain.follow()
    spec = plain.spec("two")
    spec.work["source"].update(type="Files", path=f"file://{plain.folder}/in", format="parquet")
    (plain.folder / "in").mkdir()
    (plain.folder / "spec.json").write_text(spec.to_json())
    main([str(plain.folder / "spec.json"), str(plain.folder / "result.json")])
    result = JobResult.from_json((plain.folder / "result.json").read_text())
    assert "is of another table, and its source is of type Files now" in result.message


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize("seed", range(scaled(2, quick=2)))
@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_after_any_history_both_tables_hold_the_same(
    tmp_path: Path, kind: TableTypeName, version: int, seed: int
) -> None:
    chain, rng = Chain(tmp_path, kind, version), random.Random(seed)
    chain.begin()
    for step in range(14):
        _act(chain, rng, step)
        if rng.random() < 0.4 or step == 13:
            most = {"maxInstants": rng.choice([1, 3])} if rng.random() < 0.5 else {}
            result = chain.follow(f"run{step}", deletes="Delete", **most)
            assert result.outcome in ("Succeeded", "NothingToDo"), result.message
            if result.instants:
                assert chain.shown(chain.below) == chain.shown(chain.above), f"step {step}"


def _act(chain: Chain, rng: random.Random, step: int) -> None:
    keys = rng.sample(range(12), rng.randint(1, 6))
    rows = rows_of(*((f"k{key}", "xy"[key % 2], step) for key in keys))
    roll = rng.random()
    if step == 0 or roll < 0.5:
        write_hudi(chain.above, rows)
    elif roll < 0.75:
        chain.above.delete(rows)
    elif roll < 0.85:
        write_hudi(chain.above, rows, operation="insert_overwrite")
    elif roll < 0.93 and chain.kind == "MergeOnRead":
        chain.above.compact()
    else:
        chain.above.cluster()
