"""`lock` of a HudiTable: what is refused of it, what a job is told, and what is said of other
engines under it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.api.fields.locks import LockProvider
from hudi_operator.manifests.jobs import ingest_job
from hudi_operator.plan.table import plan_table
from hudi_table.model.options.lock_settings import check_provider
from hudi_table.model.timeline.instants import Action, Instant, State
from tests.support.plans import FILES, NOW, desired, seen, status_of, table

URL, BASE, TABLE = (f"hoodie.write.lock.{name}" for name in ("zookeeper.url", "zookeeper.base_path", "dynamodb.table"))
ZOOKEEPER = {"provider": "ZooKeeper", "options": {URL: "zk:2181", BASE: "/hudi"}}
COMMIT = Instant("20260101000000000", Action.COMMIT, State.COMPLETED)


def errors(lock: dict[str, Any] | None, **more: Any) -> dict[str, str]:
    return {error.path: error.message for error in desired(lock=lock, **more).errors}


@pytest.mark.parametrize(
    ("lock", "path", "message"),
    [
        ({"provider": "Hive"}, "spec.lock.provider", "Hive"),
        ({"provider": "ZooKeeper"}, "spec.lock.options", "zookeeper.url"),
        ({"provider": "DynamoDB"}, "spec.lock.options", TABLE),
        ({"provider": "ZooKeeperImplicitBasePath"}, "spec.lock.options", URL),
        ({"provider": "DynamoDBImplicitPartitionKey"}, "spec.lock.options", TABLE),
        (
            {"provider": "ZooKeeperImplicitBasePath", "options": {URL: "zk:2181", BASE: "/hudi"}},
            "spec.lock",
            "derives it from the table's path",
        ),
        ({"provider": "FileSystem"}, "spec.lock", "local disks"),
        (
            {"provider": "Storage", "options": {"fs.s3a.endpoint": "x"}},
            "spec.lock.options",
            "begin with hoodie.write.lock.",
        ),
        (
            {"provider": "Storage", "options": {"hoodie.write.lock.provider": "x"}},
            "spec.lock.options",
            "provider is a field",
        ),
        ({"provider": "Storage", "options": {"hoodie.write.lock.strage": "x"}}, "spec.lock", "unknown option"),
        (
            {"provider": "Storage", "options": {"hoodie.write.lock.storage.validity.timeout.secs": "100"}},
            "spec.lock",
            "less than ten times",
        ),
    ],
)
def test_a_lock_that_cannot_be_is_an_error_of_the_field(lock: dict[str, Any], path: str, message: str) -> None:
    assert message in errors(lock)[path]


@pytest.mark.parametrize(
    "lock",
    [
        {"provider": "Storage"},
        ZOOKEEPER,
        {"provider": "DynamoDB", "options": {TABLE: "locks"}},
        {"provider": "ZooKeeperImplicitBasePath", "options": {URL: "zk:2181"}},
        {"provider": "DynamoDBImplicitPartitionKey", "options": {TABLE: "locks"}},
        {"provider": "FileSystem", "options": {"hoodie.write.lock.filesystem.path": "/mnt/locks"}},
    ],
)
def test_a_lock_that_can_be_is_taken(lock: dict[str, Any]) -> None:
    assert errors(lock) == {}
    assert errors({"provider": "FileSystem"}, location="file:///data/flights") == {}


def test_options_of_a_lock_belong_to_the_field() -> None:
    key = "hoodie.write.lock.provider"
    found = errors(None, options={key: "StorageBasedLockProvider"})
    assert found == {f"spec.options[{key}]": "is of the table's lock: put it into spec.lock of the HudiTable"}


def test_optimistic_concurrency_control_needs_the_field() -> None:
    mode = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    assert "spec.lock" in errors(None, options=mode)["spec.options[hoodie.write.concurrency.mode]"]
    assert errors(ZOOKEEPER, options=mode) == {}


def test_each_provider_is_a_class_of_hudis_that_we_take() -> None:
    names = {each.hudi_name for each in LockProvider}
    assert len(names) == len(LockProvider)
    for name in names:
        check_provider(name)


def test_a_job_is_told_hudis_options_of_the_lock() -> None:
    spec = desired(lock=ZOOKEEPER).spec
    assert spec is not None
    job = ingest_job("flights", spec, spec.ingest[0], "a", 0)
    assert job.table["lock"] == {
        "hoodie.write.lock.provider": "ZookeeperBasedLockProvider",
        URL: "zk:2181",
        BASE: "/hudi",
    }
    without = desired().spec
    assert without is not None
    assert "lock" not in ingest_job("flights", without, without.ingest[0], "a", 0).table


def test_other_engines_under_a_lock_are_no_fault() -> None:
    found = plan_table(desired(lock=ZOOKEEPER), seen(replace(table(*FILES), foreign=(COMMIT,))), NOW)
    (condition,) = [c for c in status_of(found).conditions if c.type == "ForeignWriters"]
    assert (condition.status, condition.reason) == ("False", "UnderLock")
    assert condition.message.startswith(
        "1 recent commit of other engines, the last at 20260101000000000; the lock of ZooKeeper"
    )
