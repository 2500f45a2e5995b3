"""Hudi's options of locks as settings, and what is refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.lock_settings import (
    DynamoLockSettings,
    FileLockSettings,
    LockSettings,
    StorageLockSettings,
    ZooKeeperLockSettings,
    lock_settings,
    path_name,
)

CLASSES = "org.apache.hudi.client.transaction.lock"


def parsed(provider: str = "", environment: Mapping[str, str] | None = None, /, **options: Any) -> LockSettings | None:
    given = {f"hoodie.write.lock.{name.replace('__', '.')}": str(value) for name, value in options.items()}
    if provider:
        given["hoodie.write.lock.provider"] = provider
    return lock_settings(given, base_path="/lake/trips/", table_name="trips", environment=environment or {})


def test_without_an_option_of_locks_there_is_none():
    assert lock_settings({"hoodie.table.name": "t"}, base_path="/t", table_name="t", environment={}) is None
    assert parsed(wait_time_ms="  ") is None


def test_hudis_defaults_hold():
    patience = 51 * 60 + 50 * 5
    assert parsed(f"{CLASSES}.StorageBasedLockProvider") == LockSettings(StorageLockSettings(300, 30), patience, 1.0)
    assert parsed(f"{CLASSES}.FileSystemBasedLockProvider") == LockSettings(
        FileLockSettings("/lake/trips/.hoodie", 0), patience, 1.0
    )
    zookeeper = parsed("ZookeeperBasedLockProvider", zookeeper__url="zk:2181", zookeeper__base_path="/hudi")
    assert zookeeper == LockSettings(ZooKeeperLockSettings("zk:2181", "/hudi/trips", 60, 15), patience, 1.0)
    dynamo = parsed("org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider", dynamodb__table="locks")
    assert dynamo == LockSettings(DynamoLockSettings("locks", "trips", "us-east-1", None, 60), patience, 1.0)


def test_what_is_given_is_taken():
    storage = parsed("StorageBasedLockProvider", storage__validity__timeout__secs=60, storage__heartbeat__poll__secs=6)
    assert storage is not None
    assert storage.provider == StorageLockSettings(60, 6)
    file = parsed("FileSystemBasedLockProvider", filesystem__path="/locks", filesystem__expire=10)
    assert file is not None
    assert file.provider == FileLockSettings("/locks", 10)
    options = {
        "zookeeper.url": "a:1,b:1/chroot",
        "zookeeper.port": "1",
        "zookeeper.base_path": "/x",
        "zookeeper.lock_key": "k",
    }
    options |= {"zookeeper.session_timeout_ms": "5000", "zookeeper.connection_timeout_ms": "700"}
    zookeeper = parsed("ZookeeperBasedLockProvider", **options)
    assert zookeeper is not None
    assert zookeeper.provider == ZooKeeperLockSettings("a:1,b:1/chroot", "/x/k", 5.0, 0.7)
    options = {"dynamodb.table": "t", "dynamodb.partition_key": "p", "dynamodb.endpoint_url": "http://127.0.0.1:8000"}
    dynamo = parsed("DynamoDBBasedLockProvider", {"AWS_REGION": "eu-west-1"}, wait_time_ms=9000, **options)
    assert dynamo is not None
    assert dynamo.provider == DynamoLockSettings("t", "p", "eu-west-1", "http://127.0.0.1:8000", 9.0)
    patient = {"client.num_retries": 2, "client.wait_time_ms_between_retry": 500, "wait_time_ms_between_retry": 100}
    waiting = parsed("StorageBasedLockProvider", wait_time_ms=2000, **patient)
    assert waiting is not None
    assert (waiting.patience, waiting.pause) == (7.0, 0.1)


@pytest.mark.parametrize(
    ("provider", "options", "message"),
    [
        ("", {"wait_time_ms": 5}, "'hoodie.write.lock.provider' is not among the options"),
        ("StorageBasedLockProvider", {"storage.validity.timeout.secs": 100}, "less than ten times the 30"),
        ("StorageBasedLockProvider", {"storage.validity.timeout.secs": 9}, "from 10"),
        (
            "StorageBasedLockProvider",
            {"storage.renew.interval.secs": 5, "storage.heartbeat.poll.secs": 6},
            "are one, and differ",
        ),
        ("FileSystemBasedLockProvider", {"filesystem.expire": "-1"}, "filesystem.expire"),
        ("FileSystemBasedLockProvider", {"wait_time_ms": "soon"}, "'soon' is not a whole number"),
        ("ZookeeperBasedLockProvider", {"zookeeper.base_path": "/x"}, "zookeeper.url' is missing"),
        ("ZookeeperBasedLockProvider", {"zookeeper.url": "a"}, "zookeeper.base_path' is missing"),
        ("ZookeeperBasedLockProvider", {"zookeeper.url": "a", "zookeeper.base_path": "x"}, "begin with a slash"),
        (
            "ZookeeperBasedLockProvider",
            {"zookeeper.url": "a,b:2182", "zookeeper.base_path": "/x", "zookeeper.port": 2182},
            "Apache Hudi does not read it",
        ),
        ("DynamoDBBasedLockProvider", {}, "dynamodb.table' is missing"),
        ("ZookeeperBasedImplicitBasePathLockProvider", {}, "zookeeper.url' is missing"),
        (
            "ZookeeperBasedImplicitBasePathLockProvider",
            {"zookeeper.url": "a", "zookeeper.base_path": "/x"},
            "zookeeper.base_path': this provider derives it from the table's path",
        ),
        (
            "ZookeeperBasedImplicitBasePathLockProvider",
            {"zookeeper.url": "a", "zookeeper.lock_key": "k"},
            "zookeeper.lock_key': this provider derives it",
        ),
        ("DynamoDBBasedImplicitPartitionKeyLockProvider", {}, "dynamodb.table' is missing"),
        (
            "DynamoDBBasedImplicitPartitionKeyLockProvider",
            {"dynamodb.table": "t", "dynamodb.partition_key": "p"},
            "dynamodb.partition_key': this provider derives it",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_the_options_name(provider: str, options: dict[str, Any], message: str):
    with pytest.raises(InvalidOptionError, match=re.escape(message)):
        parsed(provider, **options)


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        ("org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider", "has not been shown to exclude"),
        (f"{CLASSES}.NoopLockProvider", "excludes nobody"),
        ("com.example.OurLock", "is not known here"),
    ],
)
def test_a_provider_that_we_do_not_have_is_refused_with_the_reason(provider: str, why: str):
    with pytest.raises(InvalidOptionError, match=why):
        parsed(provider)


def test_a_lock_of_threads_alone_is_what_our_writers_need_not_take():
    assert parsed(f"{CLASSES}.InProcessLockProvider", wait_time_ms=5) is None


def test_options_without_a_provider_are_of_a_lock_that_is_known():
    given = {"hoodie.write.lock.wait_time_ms": "5"}
    assert lock_settings(given, base_path="/t", table_name="t", environment={}, known=True) is None


def test_options_of_zookeeper_say_where_and_for_how_long():
    given = {
        "hoodie.write.lock.provider": f"{CLASSES}.ZookeeperBasedLockProvider",
        "hoodie.write.lock.zookeeper.url": "zk:2182",
        "hoodie.write.lock.zookeeper.port": "2182",
        "hoodie.write.lock.zookeeper.base_path": "/hudi",
        "hoodie.write.lock.zookeeper.lock_key": "trips",
        "hoodie.write.lock.zookeeper.session_timeout_ms": "9000",
        "hoodie.write.lock.zookeeper.connection_timeout_ms": "3000",
    }
    found = lock_settings(given, base_path="/t", table_name="t", environment={})
    assert found is not None
    assert found.provider == ZooKeeperLockSettings("zk:2182", "/hudi/trips", 9.0, 3.0)
    assert found.renewal == 3.0


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/lake/trips", "F1F5C7FBAB6FB413"),
        ("s3://lake/trips", "52B6F91537859B95"),
        ("s3a://lake/trips", "52B6F91537859B95"),
        ("S3A://lake/trips", "52B6F91537859B95"),
        ("s3://lake/flights/of/the/year/2026/by/carrier/and/month", "3F5F8CC50C211C4A"),
        ("gs://lake/größe", "C724B1CE70A69A17"),
    ],
)
def test_a_lock_that_goes_by_the_tables_path_has_the_name_that_hudi_derives(path: str, name: str):
    """The names are those of `ZookeeperBasedImplicitBasePathLockProvider.getLockBasePath`, behind
    `/tmp/`, and of `HashID.generateXXHashAsString(FSUtils.s3aToS3(path), BITS_64)`, by which
    `DynamoDBBasedImplicitPartitionKeyLockProvider` goes: from hudi-spark3.5-bundle_2.12 of 1.1.1
    and 1.2.0, which agree."""
    assert path_name(path) == name
    zookeeper = {
        "hoodie.write.lock.provider": f"{CLASSES}.ZookeeperBasedImplicitBasePathLockProvider",
        "hoodie.write.lock.zookeeper.url": "zk:2181",
    }
    found = lock_settings(zookeeper, base_path=path, table_name="trips", environment={})
    assert found is not None
    assert found.provider == ZooKeeperLockSettings("zk:2181", f"/tmp/{name}/lock_key", 60.0, 15.0)
    dynamo = {
        "hoodie.write.lock.provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider",
        "hoodie.write.lock.dynamodb.table": "locks",
    }
    found = lock_settings(dynamo, base_path=path, table_name="trips", environment={})
    assert found is not None
    assert found.provider == DynamoLockSettings("locks", name, "us-east-1", None, 60.0)


@pytest.mark.parametrize("spelled", ["/lake/trips/", "file:///lake/trips", "/lake/x/../trips"])
def test_a_path_of_ours_has_one_name_however_it_is_spelled(spelled: str):
    assert path_name(spelled) == path_name("/lake/trips")
    assert path_name("s3://lake/trips/") == path_name("s3://lake/trips")


def test_options_of_dynamodb_say_which_item():
    given = {
        "hoodie.write.lock.provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        "hoodie.write.lock.dynamodb.table": "locks",
        "hoodie.write.lock.dynamodb.partition_key": "trips",
        "hoodie.write.lock.dynamodb.region": "eu-west-1",
        "hoodie.write.lock.dynamodb.endpoint_url": "http://127.0.0.1:1",
        "hoodie.write.lock.wait_time_ms": "9000",
    }
    found = lock_settings(given, base_path="/t", table_name="t", environment={})
    assert found is not None
    assert found.provider == DynamoLockSettings("locks", "trips", "eu-west-1", "http://127.0.0.1:1", 9.0)
