"""What a TableService asks of its job: its section as keys of the job."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.fields.sections import IndexFunction
from hudi_operator.manifests.jobs import options_of, service_job
from hudi_operator.manifests.services import ServiceWork, maintenance_of, work_of
from hudi_table.metadata.expression_index.functions import FUNCTIONS
from hudi_table.model.defined_indexes import asked_expression
from hudi_table.model.options.known import check_options, default_of
from hudi_table.model.options.retention import CleanPolicy
from hudi_table.model.options.values import members
from hudi_table.model.options.write_options import INDEXING_DROP, INDEXING_PARTITIONS
from hudi_table.model.service.services import ServiceType
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.services.cleaning.policy import CleanOptions
from tests.support.plans import desired
from tests.support.service_plans import service

OWNER = desired().spec


def indexing(**fields: Any) -> ServiceWork:
    wanted = service(type="Indexing", **fields)
    assert wanted.spec is not None, wanted.errors
    assert OWNER is not None
    return work_of(wanted.spec, OWNER)


@pytest.mark.parametrize(
    ("partitions", "told"),
    [
        ([], "files"),
        (["files"], "files"),
        (["column_stats"], "files,column_stats"),
        (["record_index", "column_stats"], "files,column_stats,record_index"),
        (["partitioned_record_index", "bloom_filters", "files"], "files,bloom_filters,partitioned_record_index"),
    ],
)
def test_an_indexing_is_told_its_partitions_files_among_them(partitions: list[str], told: str) -> None:
    assert indexing(indexing={"partitions": partitions}).options == {INDEXING_PARTITIONS: told}


def test_an_indexing_without_a_section_builds_what_the_job_builds_by_itself() -> None:
    assert indexing().options == {}
    assert default_of(INDEXING_PARTITIONS) == "files"


def test_the_same_partitions_in_another_order_are_the_same_work() -> None:
    one, other = (indexing(indexing={"partitions": found}) for found in (["files", "record_index"], ["record_index"]))
    assert one.digest() == other.digest()
    assert one.digest() != indexing(indexing={"partitions": ["column_stats"]}).digest()


INDEXES: list[dict[str, Any]] = [
    {"name": "up", "column": "name", "function": "upper"},
    {"name": "by_n", "column": "n"},
    {
        "name": "at",
        "column": "at",
        "function": "date_format",
        "options": {"format": "yyyy, MM"},
        "using": "column_stats",
    },
    {"name": "low", "column": "id", "function": "trim", "options": {"trimString": "()"}, "using": "bloom_filters"},
]
ASKED = (
    "files,record_index,expr_index_at=date_format(at) format='yyyy, MM',"
    "expr_index_low=trim(id) using bloom_filters trimString='()',expr_index_up=upper(name),secondary_index_by_n=n"
)


def test_an_indexing_is_told_its_indexes_as_the_library_is_and_those_that_go() -> None:
    work = indexing(indexing={"partitions": ["record_index"], "indexes": INDEXES, "drop": ["x", "by_y"]})
    assert work.options == {INDEXING_PARTITIONS: ASKED, INDEXING_DROP: "by_y,x"}
    expressions = sorted((each for each in INDEXES if "function" in each), key=lambda each: str(each["name"]))
    for index, text in zip(expressions, members(ASKED)[2:5], strict=True):
        found = asked_expression(text.partition("=")[2])
        assert found is not None
        assert (found.column, found.function, found.options) == (
            index["column"], index["function"], index.get("options", {}),
        )  # fmt: skip
    check_options(work.options)


def test_the_functions_of_an_index_are_those_that_the_library_keeps() -> None:
    assert {str(function) for function in IndexFunction} == set(FUNCTIONS)


def test_options_win_over_the_section_of_an_indexing() -> None:
    given = indexing(indexing={"partitions": ["column_stats"]}, options={INDEXING_PARTITIONS: "files"})
    assert given.options == {INDEXING_PARTITIONS: "files"}


def test_an_indexing_needs_no_spark_however_large_the_table_is() -> None:
    assert OWNER is not None
    job = service_job("flights", OWNER, indexing(indexing={"partitions": ["column_stats"]}), "a-1", 1 << 40)
    assert (job.engine, job.work["type"], job.work["options"]) == (
        "Local", "Indexing", {INDEXING_PARTITIONS: "files,column_stats"},
    )  # fmt: skip


MAINTENANCE = [
    {"cleaning": {"keepCommits": 3}, "archiving": {"minCommits": 5, "maxCommits": 8}},
    {"cleaning": {"keepCommits": 40}, "archiving": {"minCommits": 50, "maxCommits": 60}},
    {"cleaning": {"keepCommits": 1}, "archiving": {"minCommits": 2, "maxCommits": 3}},
    {"cleaning": {"mode": "Disabled", "keepCommits": 1}, "archiving": {"minCommits": 2, "maxCommits": 3}},
]


@pytest.mark.parametrize("maintenance", MAINTENANCE)
def test_what_a_definition_admits_of_archiving_its_job_accepts(maintenance: dict[str, Any]) -> None:
    owner = desired(maintenance=maintenance)
    assert owner.spec is not None, owner.errors
    (work,) = (each for each in maintenance_of(owner.spec) if each.type is ServiceType.ARCHIVING)
    job = service_job("flights", owner.spec, work, "a-1", 0)
    policy = ArchivePolicy.parse({**job.table["options"], **job.work["options"]})
    asked = maintenance["archiving"]
    assert (policy.least, policy.most) == (asked["minCommits"], asked["maxCommits"])


def test_an_archiving_of_its_own_is_held_against_what_the_table_cleans_alone() -> None:
    owner = desired(maintenance={"cleaning": {"mode": "Disabled"}})
    wanted = service(type="Archiving", archiving={"minCommits": 2, "maxCommits": 3})
    assert owner.spec is not None
    assert wanted.spec is not None
    assert ArchivePolicy.parse(work_of(wanted.spec, owner.spec).options).least == 2


SINGLE = "hoodie.clustering.plan.strategy.single.group.clustering.enabled"
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "id"}


def test_clustering_leaves_a_file_alone_that_has_no_other_beside_it_unless_it_brings_an_order() -> None:
    def single(table: dict[str, str], **fields: Any) -> str | None:
        owner, wanted = desired(options=table).spec, service(type="Clustering", **fields).spec
        assert owner is not None
        assert wanted is not None
        (own,) = (w for w in maintenance_of(owner, disabled=True) if w.type is ServiceType.CLUSTERING)
        found = work_of(wanted, owner).options.get(SINGLE)
        assert fields or own.options.get(SINGLE) == found
        return found

    assert single({}) == "false"
    assert single({}, clustering={"maxGroups": 3}) == "false"
    assert single({SINGLE: "true"}) == "true"
    assert single(SORTED) is None
    assert single({}, clustering={"sortColumns": ["id"]}) is None
    assert single({}, options=SORTED) is None
    assert single({}, options={SINGLE: "true"}) == "true"


HOURS = "hoodie.cleaner.hours.retained"


def test_a_number_of_hours_among_the_options_is_what_is_kept_and_not_the_commits_of_the_section() -> None:
    """As with Hudi, it tells the policy: the section's commits would let go of what it asks to
    keep."""
    table = desired(options={HOURS: "48"}).spec
    assert table is not None
    own = service(type="Cleaning", options={HOURS: "72"}).spec
    plain = service(type="Cleaning").spec
    assert own is not None
    assert plain is not None
    by_table = [
        next(work for work in maintenance_of(table) if work.type is ServiceType.CLEANING),
        work_of(plain, table),
    ]
    for work, hours in [*((work, 48) for work in by_table), (work_of(own, table), 72)]:
        told = CleanOptions.parse({**options_of(table), **work.options})
        assert (told.policy, told.hours) == (CleanPolicy.KEEP_LATEST_BY_HOURS, hours)
    archiving = next(work for work in maintenance_of(table) if work.type is ServiceType.ARCHIVING)
    assert ArchivePolicy.parse({**options_of(table), **archiving.options}).hours == 48
