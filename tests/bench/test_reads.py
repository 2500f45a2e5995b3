"""The race of readers at a small size: all give the same rows and answers, and the report tells
what misses its target."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.process import Cost
from bench.race import Times
from bench.reads import ENTRIES, STEPS, make_tables, merged, race_reads
from bench.reads_queries import QUERIES, SIDES
from bench.reads_report import reads_record
from bench.reads_steps import EXPECTED, check
from bench.report import markdown
from bench.rows import Workload, read, side_tables, workload
from tests.bench.test_race import MACHINE


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return workload(tmp_path_factory.mktemp("rows"), 6_000)


def test_readers_agree_and_the_report_names_each(load: Workload, tmp_path: Path) -> None:
    said: list[str] = []
    results = race_reads(load, tmp_path / "reads", 1, said.append)
    text = markdown({"reads": {"machine": MACHINE} | reads_record(load, 1, results)})
    assert all(f"| {entry.label} |" in text for entry in ENTRIES)
    assert all(set(entry.steps) <= set(results[entry.worker]) for entry in ENTRIES)
    merging = {entry.worker: set(map(merged, entry.steps)) for entry in ENTRIES if entry.merges}
    assert all(steps <= set(results[worker]) for worker, steps in merging.items())
    assert said[-1] == "round 1 done"


def test_every_row_of_lineitem_finds_its_order_and_its_part(load: Workload) -> None:
    rows, sides = read(load.base, ("l_orderkey", "l_partkey")), side_tables(load, SIDES)
    orders, customers, parts = (pq.read_table(sides[name]) for name in ("orders", "customer", "part"))
    for keys, known in (
        (rows["l_orderkey"], orders["o_orderkey"]),
        (rows["l_partkey"], parts["p_partkey"]),
        (orders["o_custkey"], customers["c_custkey"]),
    ):
        assert len(known.unique()) == len(known)
        assert pc.all(pc.is_in(keys, value_set=known.combine_chunks())).as_py()


def test_queries_answer_with_rows_in_the_order_that_is_asked_for(load: Workload, tmp_path: Path) -> None:
    tables = make_tables(load, tmp_path / "tables", set())
    answers = json.loads((tables["plain"] / EXPECTED).read_text())
    assert all(answers[name] for name in QUERIES)
    assert [mode for mode, *_ in answers["q12"]] == ["MAIL", "SHIP"]
    revenues = [revenue for _, revenue, *_ in answers["q3"]]
    assert revenues == sorted(revenues, reverse=True)
    with pytest.raises(AssertionError, match="q3 gave"):
        check(tables["plain"], "q3", answers["q3"][::-1])


def test_the_report_has_a_column_for_what_was_run_alone(load: Workload) -> None:
    cost = Cost(0.1, 0.1, 0, 0)
    results = {"reads-ours": {"q1": Times(cost, [cost])}, "reads-duckdb": {"q1": Times(cost, [cost])}}
    text = markdown({"reads": {"machine": MACHINE} | reads_record(load, 1, results)})
    assert "| ms (CPU) | q1 |" in text
    assert "q14" not in text


def test_a_reader_that_loses_rows_ends_the_race(tmp_path: Path) -> None:
    (tmp_path / "_expected.json").write_text('{"all": [3, 6], "q6": [[1.25]]}')
    check(tmp_path, "all", [3, 6])
    check(tmp_path, "q6", [(1.25000001,)])
    with pytest.raises(AssertionError, match=r"all gave \[2, 6\]"):
        check(tmp_path, "all", [2, 6])
    with pytest.raises(AssertionError, match="q6 gave"):
        check(tmp_path, "q6", [(1.3,)])


def test_the_report_tells_what_misses_its_target(load: Workload) -> None:
    def times(seconds: float) -> Times:
        cost = Cost(seconds, seconds, 0, 0)
        return Times(cost, [cost])

    names = [*STEPS, *map(merged, STEPS)]
    walls = {"reads-ours": 0.3, "reads-duckdb": 0.1, "reads-polars": 0.2, "reads-hudi-rs": 1.0}
    results = {name: {step: times(wall) for step in names} for name, wall in walls.items()}
    results["reads-ours"][merged("all")] = times(0.9)
    text = markdown({"reads": {"machine": MACHINE} | reads_record(load, 1, results)})
    assert "| all | ours | the fastest of four | 1.10 | 3.00 | **no** |" in text
    assert "| q1 | ours | DuckDB | 1.10 | 3.00 | **no** |" in text
    assert "| three, logs | ours | hudi-rs | 0.35 | 0.30 | yes |" in text
    assert "| all, logs | ours | without logs | 2.00 | 3.00 | **no** |" in text
