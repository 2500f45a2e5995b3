"""What a TableService asks of its job: its section as keys of the job."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.manifests.jobs import service_job
from hudi_operator.manifests.services import ServiceWork, work_of
from hudi_table.model.options import INDEXING_PARTITIONS, OWN_KEYS
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
    assert OWN_KEYS[INDEXING_PARTITIONS] == "files"


def test_the_same_partitions_in_another_order_are_the_same_work() -> None:
    one, other = (indexing(indexing={"partitions": found}) for found in (["files", "record_index"], ["record_index"]))
    assert one.digest() == other.digest()
    assert one.digest() != indexing(indexing={"partitions": ["column_stats"]}).digest()


def test_options_win_over_the_section_of_an_indexing() -> None:
    given = indexing(indexing={"partitions": ["column_stats"]}, options={INDEXING_PARTITIONS: "files"})
    assert given.options == {INDEXING_PARTITIONS: "files"}


def test_an_indexing_needs_no_spark_however_large_the_table_is() -> None:
    assert OWNER is not None
    job = service_job("flights", OWNER, indexing(indexing={"partitions": ["column_stats"]}), "a-1", 1 << 40)
    assert (job.engine, job.work["type"], job.work["options"]) == (
        "Local", "Indexing", {INDEXING_PARTITIONS: "files,column_stats"},
    )  # fmt: skip
