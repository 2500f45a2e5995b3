"""Clustering across engines: ours read and written on, our plans executed by Hudi, Hudi's by us."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_matrix import upsert
from tests.interop.test_merge_on_read import LOGS
from tests.support import golden
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import META, assert_same_rows

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

STEPS = (
    ("insert", range(20), 1),
    ("insert", range(20, 40), 2),
    ("upsert", range(10, 24), 3),
    ("delete", range(0, 20, 5), 4),
)
PLAN = "hoodie.clustering.plan.strategy."
SORTED = {PLAN + "sort.columns": "seen,name"}
SMALL = {PLAN + "target.file.max.bytes": "6000"}
NO_PACKING = {"hoodie.parquet.small.file.limit": "0"}
# With its row writer 0.15.0 clusters decimals into a form that its next upsert loses the scale of (docs/reference/compatibility.md, case 32).
NO_ROW_WRITER = "hoodie.metadata.enable=false,hoodie.datasource.write.row.writer.enable=false"
TABLES = [("CopyOnWrite", True), ("MergeOnRead", False)]
tables = pytest.mark.parametrize(("type_", "partitioned"), TABLES, ids=["copy-partitioned", "logs-flat"])


def written(base: Path, type_: str, partitioned: bool) -> Model:
    """A table after `STEPS`, and its rows; the second kind has logs that hold updates and
    deletes."""
    model = Model(partitioned=partitioned)
    ours.create(base, index="simple", partitioned=partitioned, type=type_)
    go_on(base, model, STEPS)
    return model


def go_on(base: Path, model: Model, steps: tuple[tuple[str, range, int], ...]) -> None:
    for operation, numbers, version in steps:
        data = rows(numbers, version)
        ours.write(base, operation, data, options=NO_PACKING)
        model.apply(operation, data)


def assert_queries(base: Path, oracle: HudiOracle, model: Model) -> None:
    """Snapshot, and what changed since the second commit: as we answer, so does Hudi."""
    ours.assert_all_read(base, oracle, model.rows())
    table = open_table(str(base))
    since = load_timeline(table.context).commits[1].time
    told = {"hoodie__datasource__query__type": "incremental", "hoodie__datasource__read__begin__instanttime": since}
    mine = table.scan(query="incremental", since=since, meta=True).to_arrow()
    assert_same_rows(oracle.read(base, **told), mine, columns=["id", *META], of=f"{oracle!r}, incremental")


def write_on(base: Path, oracle: HudiOracle, model: Model) -> None:
    """Hudi changes keys that were clustered, then we."""
    told = LOGS | {"hoodie.datasource.write.table.type": open_table(str(base)).context.config.type.hudi_name}
    upsert(oracle, base, data := rows([6, 7, 11, 33, 60, 61], 8), **told)
    model.apply("upsert", data)
    assert_queries(base, oracle, model)
    go_on(base, model, (("upsert", range(5, 64, 9), 9), ("delete", range(6, 8), 9)))
    assert_queries(base, oracle, model)


@pytest.mark.parametrize("layout", ["linear", "hilbert"])
@tables
def test_every_engine_reads_and_goes_on_with_what_we_clustered(
    hudis: Hudis, tmp_path: Path, type_: str, partitioned: bool, layout: str
) -> None:
    base = tmp_path / "table"
    model = written(base, type_, partitioned)
    (done,) = open_table(str(base)).cluster(
        SORTED | SMALL | {"hoodie.layout.optimize.strategy": layout}, force=True
    )  # fmt: skip
    assert done.figures["filesAfter"] > 1

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        assert_queries(copy, oracle, expected)
        write_on(copy, oracle, expected)

    hudis.each_on_a_copy(base, each)


@tables
def test_every_engine_reads_beside_our_pending_plan_and_hudi_executes_it(
    hudis: Hudis, tmp_path: Path, type_: str, partitioned: bool
) -> None:
    base = tmp_path / "table"
    model = written(base, type_, partitioned)

    def each(oracle: HudiOracle, copy: Path) -> None:
        # A plan names base files by their absolute paths, so it is made where it is executed.
        expected, mine = model.copy(), open_table(str(copy))
        plan = mine.schedule_clustering(SORTED, force=True)
        assert plan is not None
        assert_queries(copy, oracle, expected)
        oracle.sql(f"CALL run_clustering(path => '{copy}', op => 'execute', options => '{NO_ROW_WRITER}')")
        assert mine.pending_clusterings() == []
        assert clustered(mine) == [plan.instant]
        assert_queries(copy, oracle, expected)
        write_on(copy, oracle, expected)

    hudis.each_on_a_copy(base, each)


@tables
def test_we_read_beside_a_pending_plan_of_hudi_and_execute_it(
    hudis: Hudis, tmp_path: Path, type_: str, partitioned: bool
) -> None:
    base = tmp_path / "table"
    model = written(base, type_, partitioned)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected, mine = model.copy(), open_table(str(copy))
        oracle.sql(
            f"CALL run_clustering(path => '{copy}', op => 'schedule', order => 'seen', options => 'hoodie.metadata.enable=false')"
        )
        (instant,) = mine.pending_clusterings()
        assert_queries(copy, oracle, expected)
        go_on(copy, expected, (("insert", range(70, 73), 6),))
        done = mine.run_clustering(instant)
        assert done.figures["filesBefore"] > done.figures["filesAfter"]
        assert_queries(copy, oracle, expected)
        write_on(copy, oracle, expected)

    hudis.each_on_a_copy(base, each)


@pytest.mark.parametrize("planner", ["ours", "its own"])
def test_0_15_0_brings_a_row_back_that_logs_updated_and_deleted_where_it_executes_a_plan_of_its_own(
    hudis: Hudis, tmp_path: Path, planner: str
) -> None:
    """Without its row writer, which damages decimals; of our plans it does not."""
    oracle, base = hudis["0.15.0"], tmp_path / "table"
    ours.create(base, index="simple", partitioned=False, type="MergeOnRead")
    go_on(
        base,
        Model(partitioned=False),
        (("insert", range(20), 1), ("upsert", range(10, 14), 2), ("delete", range(9, 11), 3)),
    )
    told = f"{NO_ROW_WRITER},hoodie.index.type=SIMPLE,hoodie.datasource.write.recordkey.field=id"
    if planner == "ours":
        assert open_table(str(base)).schedule_clustering(force=True) is not None
    step = "execute" if planner == "ours" else "scheduleAndExecute"
    oracle.sql(f"CALL run_clustering(path => '{base}', op => '{step}', options => '{told}')")
    found = ours.read(base)["id"].to_pylist()
    assert ("k009" in found, "k010" in found) == (False, planner == "its own")


def clustered(table: HudiTable) -> list[str]:
    timeline = load_timeline(table.context)
    return [i.time for i in timeline.commits if commit_metadata(table.context, i).operation_type == "CLUSTER"]


@pytest.mark.parametrize("name", ["clust", "wide", "mor1"])
def test_a_golden_table_is_clustered_and_read_again(hudis: Hudis, tmp_path: Path, name: str) -> None:
    table = golden.unpack(name, tmp_path)
    before = ours.read(table.base, meta=True)
    (done,) = open_table(str(table.base)).cluster({PLAN + "sort.columns": "id"}, force=True)
    assert done.figures["rowsWritten"] == len(before)
    assert_same_rows(ours.read(table.base, meta=True), before, of="ours")

    def each(oracle: HudiOracle) -> None:
        assert_same_rows(oracle.read(table.base), before, columns=before.column_names, of=repr(oracle))

    hudis.each(each)
