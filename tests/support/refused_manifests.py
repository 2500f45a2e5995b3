"""HudiTables that no job would make, with the words that refuse them, and their neighbours that are
right."""

from __future__ import annotations

from typing import Any

from tests.support.kafka_manifests import table
from tests.support.manifests import ingest

_ZOOKEEPER = {"hoodie.write.lock.zookeeper.url": "zk:2181", "hoodie.write.lock.zookeeper.base_path": "/hudi"}
TOPIC = {"brokers": "kafka-0:9092,kafka-1:9092", "topic": "commits"}
WITH_USER = {**TOPIC, "security": {"protocol": "SaslTls"}}


def callback(**changes: Any) -> tuple[str, dict[str, Any]]:
    return table(callbacks=[{"name": "hook", **changes}])


def bootstrap(**changes: Any) -> tuple[str, dict[str, Any]]:
    """A table that is bootstrapped; `of`: fields of the table."""
    of = {"index": {"type": "Simple"}, **changes.pop("of", {})}
    return table(bootstrap={"path": "s3://exported/flights/", **changes}, **of)


REFUSED_GOOD: list[tuple[str, dict[str, Any]]] = [
    table(tableVersion=6, index={"type": "RecordIndex"}, recordKey=["id", "day"]),
    table(tableVersion=9, index={"type": "RecordIndex"}),
    table(tableVersion=8, index={"type": "PartitionedRecordIndex"}),
    table(type="MergeOnRead", index={"type": "RecordIndex"}),
    table(type="MergeOnRead", index={"type": "GlobalBloom"}, mergeMode=None, orderingFields=None),
    table(type="MergeOnRead", index={"type": "GlobalBloom"}, mergeMode="CommitTime"),
    table(lock={"provider": "Storage"}),
    table(lock={"provider": "ZooKeeper", "options": _ZOOKEEPER}),
    table(lock={"provider": "FileSystem", "options": {"hoodie.write.lock.filesystem.path": "/mnt/locks"}}),
    table(location="file:///data/flights", lock={"provider": "FileSystem"}),
    table(lock={"provider": "DynamoDB", "options": {"hoodie.write.lock.dynamodb.table": "locks"}}),
    table(lock={"provider": "ZooKeeperImplicitBasePath", "options": {"hoodie.write.lock.zookeeper.url": "zk:2181"}}),
    table(lock={"provider": "DynamoDBImplicitPartitionKey", "options": {"hoodie.write.lock.dynamodb.table": "locks"}}),
    bootstrap(),
    bootstrap(of={"tableVersion": 9}),
    bootstrap(mode="FullRecord", pattern="a", of={"tableVersion": 8}),
    bootstrap(pattern="month=2013-.*", mode="FullRecord", of={"index": {"type": "GlobalBloom"}, "tableVersion": 6}),
    bootstrap(mode="FullRecord", of={"index": {"type": "Bucket", "buckets": 2}, "tableVersion": 9}),
    callback(url="https://hooks.example.com/", secretRef={"name": "hook"}),
    callback(kafka=TOPIC),
    callback(kafka=WITH_USER, secretRef={"name": "hook"}, since="earliest"),
]
REFUSED_BAD: list[tuple[tuple[str, dict[str, Any]], str]] = [
    (table(location="s3://lake/flights/*"), "location has a *"),
    (table(lock={"provider": "Hive"}), "lock.provider"),
    (table(lock={"provider": "ZooKeeper"}), "a lock of ZooKeeper needs the options"),
    (table(lock={"provider": "DynamoDB", "options": _ZOOKEEPER}), "a lock of DynamoDB needs the options"),
    (table(lock={"provider": "ZooKeeperImplicitBasePath"}), "a lock of ZooKeeperImplicitBasePath needs the options"),
    (
        table(lock={"provider": "DynamoDBImplicitPartitionKey"}),
        "a lock of DynamoDBImplicitPartitionKey needs the options",
    ),
    (table(lock={"provider": "FileSystem"}), "a lock of FileSystem is for tables on local disks"),
    (table(lock={"provider": "Storage", "options": {"hoodie.lock": "x"}}), "options of a lock begin with"),
    (table(ingest=[ingest(source={"type": "Files", "path": "s3://b/*.json", "format": "json"})]), "path has a *"),
    (table(recordKey=["id", "day", "id"]), "recordKey names a column twice"),
    (
        table(partitionBy=[{"field": "at"}, {"field": "at", "type": "Timestamp", "format": "yyyy"}]),
        "partitionBy names a column twice",
    ),
    (
        table(index={"type": "Bucket", "buckets": 4, "hashFields": ["id", "id"]}),
        "index.hashFields names a column twice",
    ),
    (table(type="MergeOnRead", index={"type": "GlobalSimple"}), "take mergeMode CommitTime, type CopyOnWrite or"),
    (
        table(type="MergeOnRead", index={"type": "GlobalBloom"}, mergeMode=None),
        "is not written with GlobalSimple or GlobalBloom",
    ),
    (bootstrap(path="s3://lake/flights/old"), "bootstrap.path must not lie in the table's own location"),
    (bootstrap(path="s3://lake"), "nor the table in it"),
    (bootstrap(path="flights"), "path"),
    (bootstrap(path=None), "path"),
    (bootstrap(mode="Both"), "mode"),
    (bootstrap(pattern="("), "pattern is a regular expression"),
    (bootstrap(pattern=""), "pattern"),
    (bootstrap(of={"index": {"type": "Bucket", "buckets": 4}}), "rows of a bootstrap in place stay where they are"),
    (bootstrap(of={"index": {"type": "RecordIndex"}}), "give an index of Simple, GlobalSimple, Bloom or GlobalBloom"),
    (callback(secretRef={"name": "hook"}), "give url or kafka, one of them"),
    (callback(kafka=TOPIC, url="http://a/", secretRef={"name": "hook"}), "give url or kafka, one of them"),
    (callback(url="https://hooks.example.com/"), "url needs secretRef"),
    (callback(kafka=WITH_USER), "brokers that ask for a user"),
    (callback(kafka={**TOPIC, "topic": "a/b"}), "topic"),
    (callback(kafka={**TOPIC, "brokers": "kafka"}), "brokers"),
]
