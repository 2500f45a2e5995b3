"""Deletes of another Hudi table in one that follows it and orders its rows by a column: the other
table's order of commits decides what is there in the end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hudi_table import write_hudi
from hudi_table.arguments import TableTypeName
from hudi_table.model.job.jobspec import JobResult
from tests.support.chained import Chain, rows_of
from tests.support.scale import scaled

KINDS: list[tuple[TableTypeName, int]] = [
    (kind, version) for kind in ("CopyOnWrite", "MergeOnRead") for version in (6, 8, 9)
]
IDS = [f"{kind}-{version}" for kind, version in KINDS]


@pytest.fixture(params=["Local", pytest.param("Spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "Spark":
        request.getfixturevalue("spark")
        request.getfixturevalue("session_as_it_was")
    return str(request.param)


@pytest.fixture(params=KINDS, ids=IDS)
def ordered(request: pytest.FixtureRequest, tmp_path: Path) -> Chain:
    kind, version = request.param
    found = Chain(tmp_path, kind, version, ordering=("n",))
    found.begin()
    return found


def follow(chain: Chain, attempt: str, engine: str) -> JobResult:
    result = chain.follow(attempt, engine=engine, deletes="Delete")
    assert result.outcome == "Succeeded", result.message
    return result


@pytest.mark.thinned("values")
def test_a_key_that_came_back_smaller_within_one_reading_is_as_it_is_there(ordered: Chain, engine: str) -> None:
    write_hudi(ordered.above, rows_of(("a", "x", 5), ("b", "x", 1)))
    follow(ordered, "one", engine)
    ordered.above.delete(rows_of(("a", "x", 0)))
    write_hudi(ordered.above, rows_of(("a", "x", 3)))
    follow(ordered, "two", engine)
    assert ordered.shown(ordered.below) == ordered.shown(ordered.above) == [("a", "x", 3), ("b", "x", 1)]


@pytest.mark.thinned("values")
def test_a_key_that_came_back_smaller_after_its_delete_was_taken_is_as_it_is_there(ordered: Chain, engine: str) -> None:
    write_hudi(ordered.above, rows_of(("a", "x", 5), ("b", "x", 1)))
    follow(ordered, "one", engine)
    ordered.above.delete(rows_of(("a", "x", 0)))
    follow(ordered, "two", engine)
    assert ordered.shown(ordered.below) == [("b", "x", 1)]
    write_hudi(ordered.above, rows_of(("a", "x", 3)))
    follow(ordered, "three", engine)
    assert ordered.shown(ordered.below) == ordered.shown(ordered.above) == [("a", "x", 3), ("b", "x", 1)]


@pytest.mark.thinned("values")
def test_a_delete_takes_away_the_larger_row_that_was_kept_here(ordered: Chain, engine: str) -> None:
    write_hudi(ordered.above, rows_of(("a", "x", 5), ("b", "x", 1)))
    follow(ordered, "one", engine)
    write_hudi(ordered.above, rows_of(("a", "x", 3)))
    follow(ordered, "two", engine)
    assert ordered.shown(ordered.below) == [("a", "x", 5), ("b", "x", 1)]
    ordered.above.delete(rows_of(("a", "x", 0)))
    follow(ordered, "three", engine)
    assert ordered.shown(ordered.below) == ordered.shown(ordered.above) == [("b", "x", 1)]


@pytest.mark.thinned("values")
def test_deletes_that_an_attempt_has_taken_before_it_failed_are_taken_again_with_those_behind_them(
    ordered: Chain, engine: str
) -> None:
    write_hudi(ordered.above, rows_of(("a", "x", 5), ("b", "x", 6), ("c", "y", 7)))
    follow(ordered, "one", engine)
    ordered.above.delete(rows_of(("a", "x", 0)))
    write_hudi(ordered.above, rows_of(("c", "y", -1)))
    sound = [{"name": "sound", "sql": "n >= 0", "onFail": "Fail"}]
    failed = ordered.follow("two", engine=engine, deletes="Delete", expectations=sound)
    assert (failed.outcome, failed.error_class) == ("Failed", "InvalidData"), failed.message
    ordered.above.delete(rows_of(("b", "x", 0), ("c", "y", 0)))
    write_hudi(ordered.above, rows_of(("a", "x", 1), ("b", "x", 2)))
    follow(ordered, "three", engine)
    assert ordered.shown(ordered.below) == ordered.shown(ordered.above) == [("a", "x", 1), ("b", "x", 2)]


@pytest.mark.thinned("values")
@pytest.mark.parametrize("seed", range(scaled(2, quick=1)))
def test_after_any_history_whose_rows_grow_until_they_are_deleted_both_tables_hold_the_same(
    ordered: Chain, seed: int
) -> None:
    rng, held = random.Random(seed), dict[str, int]()
    for step in range(12):
        keys = rng.sample(range(8), rng.randint(1, 4))
        named = {f"k{key}": ("xy"[key % 2], held.get(f"k{key}", rng.randint(-9, 9)) + 1) for key in keys}
        rows = rows_of(*((key, city, n) for key, (city, n) in named.items()))
        roll = rng.random()
        if held and roll < 0.4:
            ordered.above.delete(rows)
            held = {key: n for key, n in held.items() if key not in named}
        else:
            write_hudi(ordered.above, rows)
            held |= {key: n for key, (_, n) in named.items()}
        if roll > 0.9 and ordered.kind == "MergeOnRead":
            ordered.above.compact(force=True)
        if rng.random() < 0.5 or step == 11:
            result = ordered.follow(f"run{step}", deletes="Delete")
            assert result.outcome in ("Succeeded", "NothingToDo"), result.message
            assert ordered.shown(ordered.below) == ordered.shown(ordered.above), f"step {step}"


@pytest.mark.thinned("values")
@pytest.mark.parametrize("merge_mode", ["EventTime", "CommitTime"])
def test_a_delete_takes_no_row_with_it_that_moved_to_another_partition(
    tmp_path: Path, merge_mode: str, engine: str
) -> None:
    chain = Chain(tmp_path, ordering=("n",), merge_mode=merge_mode, index="GlobalSimple")
    chain.begin()
    write_hudi(chain.above, rows_of(("a", "x", 5), ("b", "x", 1)))
    follow(chain, "one", engine)
    write_hudi(chain.above, rows_of(("a", "y", 3)))
    follow(chain, "two", engine)
    assert chain.shown(chain.below) == chain.shown(chain.above) == [("a", "y", 3), ("b", "x", 1)]


@pytest.mark.thinned("values")
@pytest.mark.parametrize("index", ["Simple", "GlobalSimple"])
def test_without_an_order_a_row_without_a_partition_value_that_came_back_is_there(
    tmp_path: Path, index: str, engine: str
) -> None:
    chain = Chain(tmp_path, index=index)
    chain.begin()
    write_hudi(chain.above, rows_of(("a", None, 5), ("b", "x", 1), ("c", "x", 2)))
    follow(chain, "one", engine)
    chain.above.delete(rows_of(("a", None, 0), ("b", "x", 0), ("c", "x", 0)))
    write_hudi(chain.above, rows_of(("a", None, 3), ("c", "y", 3)))
    follow(chain, "two", engine)
    assert sorted(chain.below.scan(["id", "n"]).to_arrow().to_pylist(), key=str) == [
        {"id": "a", "n": 3},
        {"id": "c", "n": 3},
    ]
