"""Dry runs of every service: nothing is written, a store that takes no writes is enough, one plan
has one digest."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import UnavailableError, WriteConflictError
from hudi_table.model.options.write_options import INDEXING_PARTITIONS, UPGRADE_VERSION
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceType
from hudi_table.model.table.index_properties import BUCKETS
from hudi_table.services.base import ScheduledService
from hudi_table.services.registry import Services
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from tests.support.written import new_table, rows

WRITES = ("put", "put_if_absent", "delete", "open_write")


class ReadOnly:
    """A store that takes no writes."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        assert name not in WRITES, f"a dry run asked for {name}"
        return getattr(self._storage, name)


def read_only(table: HudiTable) -> TableContext:
    found = open_table(table.base_path).context
    return replace(found, storage=ReadOnly(found.storage))


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def lived(path: Path, **more: Any) -> HudiTable:
    """A table with small files, old versions and, where it is merge-on-read, logs."""
    table = new_table(str(path / "t"), **more)
    for number in range(4):
        table.insert(rows((f"n{number}", "x", number), (f"n{number}", "y", number)))
    for number in range(4):
        table.upsert(rows(("n0", "x", 10 + number), ("n1", "y", 10 + number)))
    return table


MERGED: Mapping[str, Any] = {"type": "MergeOnRead", "index": {"type": "Bucket", "buckets": 2}}
KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
Case = tuple[Mapping[str, Any], Callable[[HudiTable], ServiceRequest]]
CASES: dict[ServiceType, Case] = {
    ServiceType.COMPACTION: (MERGED, lambda t: ServiceRequest(force=True)),
    ServiceType.LOG_COMPACTION: (MERGED, lambda t: ServiceRequest(force=True)),
    ServiceType.CLUSTERING: ({}, lambda t: ServiceRequest(force=True)),
    ServiceType.CLEANING: ({}, lambda t: ServiceRequest(KEEP, force=True)),
    ServiceType.ARCHIVING: ({}, lambda t: ServiceRequest(KEEP, force=True)),
    ServiceType.SAVEPOINT: ({}, lambda t: ServiceRequest()),
    ServiceType.ROLLBACK: ({}, lambda t: ServiceRequest(instant=newest(t))),
    ServiceType.RESTORE: ({}, lambda t: ServiceRequest(instant=saved(t))),
    ServiceType.REPAIR: ({}, lambda t: ServiceRequest()),
    ServiceType.PARTITION_TTL: ({}, lambda t: ServiceRequest({"hoodie.partition.ttl.strategy.days.retain": "1"})),
    ServiceType.RESIZE: (MERGED, lambda t: ServiceRequest({BUCKETS: "4"})),
    ServiceType.INDEXING: ({}, lambda t: ServiceRequest({INDEXING_PARTITIONS: "files"})),
    ServiceType.UPGRADE: (MERGED, lambda t: ServiceRequest({UPGRADE_VERSION: "9"})),
}


NOTHING_YET = (ServiceType.REPAIR, ServiceType.PARTITION_TTL, ServiceType.ARCHIVING)
"""What the tables here are too young or too well for."""


def newest(table: HudiTable) -> str:
    last = load_timeline(table.context).last_commit
    assert last is not None
    return last.time


def saved(table: HudiTable) -> str:
    instant = table.savepoint(newest(table)).instant
    table.upsert(rows(("n0", "x", 99)))
    return instant


def test_every_service_is_looked_at() -> None:
    assert set(CASES) == set(ServiceType)


@pytest.mark.parametrize("kind", list(ServiceType))
def test_a_dry_run_writes_nothing_and_gives_the_same_plan_each_time(kind: ServiceType, tmp_path: Path) -> None:
    more, asked = CASES[kind]
    table = lived(tmp_path, **more)
    request = asked(table)
    before = everything(tmp_path)
    first = Services(read_only(table)).of_type(kind, request).plan()
    second = Services(read_only(table)).of_type(kind, request).plan()
    assert everything(tmp_path) == before
    assert first == second
    if kind not in NOTHING_YET:
        assert first is not None, "there is something to do"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three tables in one folder, each as a service of a plan finds it."""
    folder = tmp_path_factory.mktemp("planned")
    for kind in APPROVED:
        (folder / kind.value).mkdir()
        lived(folder / kind.value, **CASES[kind][0])
    yield folder
    shutil.rmtree(folder)


APPROVED = (ServiceType.COMPACTION, ServiceType.CLUSTERING, ServiceType.CLEANING)


def scheduled(table: HudiTable, kind: ServiceType, request: ServiceRequest) -> ServicePlan | None:
    service = table.services.of_type(kind, request)
    assert isinstance(service, ScheduledService)
    return service.schedule()


@pytest.mark.parametrize("kind", APPROVED)
def test_an_approved_plan_is_made_again_after_writes_elsewhere(
    kind: ServiceType, planned: Path, tmp_path: Path
) -> None:
    shutil.copytree(planned / kind.value, tmp_path, dirs_exist_ok=True)
    table = open_table(str(tmp_path / "t"))
    request = CASES[kind][1](table)
    plan = table.services.of_type(kind, request).plan()
    assert plan is not None
    for number in range(3):
        table.upsert(rows((f"other{number}", "elsewhere", 1)))
    published = scheduled(table, kind, replace(request, plan=plan.digest))
    assert published is not None
    assert (published.digest, published.file_groups) == (plan.digest, plan.file_groups)


@pytest.mark.parametrize("kind", APPROVED)
def test_a_digest_that_no_state_of_the_table_gives_is_refused(kind: ServiceType, planned: Path, tmp_path: Path) -> None:
    shutil.copytree(planned / kind.value, tmp_path, dirs_exist_ok=True)
    table = open_table(str(tmp_path / "t"))
    before = everything(tmp_path)
    with pytest.raises(WriteConflictError, match="plan '0123456789abcdef' cannot be made again"):
        scheduled(table, kind, replace(CASES[kind][1](table), plan="0123456789abcdef"))
    assert everything(tmp_path) == before


class Down:
    """A store whose folders of data cannot be listed."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def list(self, prefix: str = "", **more: Any) -> Any:
        if not prefix.startswith(".hoodie"):
            raise UnavailableError("the store is at rest", path=prefix)
        return self._storage.list(prefix, **more)


def test_a_store_that_is_down_does_not_make_an_approved_plan_look_old(planned: Path, tmp_path: Path) -> None:
    shutil.copytree(planned / ServiceType.CLUSTERING.value, tmp_path, dirs_exist_ok=True)
    table = open_table(str(tmp_path / "t"))
    table.context = replace(table.context, storage=Down(table.context.storage))
    with pytest.raises(UnavailableError, match="at rest"):
        scheduled(
            table, ServiceType.CLUSTERING, replace(CASES[ServiceType.CLUSTERING][1](table), plan="0123456789abcdef")
        )
