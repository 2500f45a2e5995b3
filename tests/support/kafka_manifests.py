"""Specs of tables that are fed from Kafka: what the definitions take, and what they refuse with
which words."""

from __future__ import annotations

from typing import Any

from tests.support.manifests import ingest, spec


def table(**changes: Any) -> tuple[str, dict[str, Any]]:
    return "HudiTable", spec(**changes)


FILES = {"type": "Files", "path": "s3://b/p", "format": "json"}
TOPICS = {"brokers": "kafka:9092", "topics": ["orders"]}


def kafka(of_ingest: dict[str, Any] | None = None, /, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A table that is fed from Kafka. `of`: fields of the table; `format` and `path`: of the
    source; others: of its `kafka`."""
    of = changes.pop("of", {})
    outer = {name: changes.pop(name) for name in ("format", "path", "columns", "debezium") if name in changes}
    inner = {name: value for name, value in (TOPICS | changes).items() if value is not None}
    return table(
        ingest=[ingest(source={"type": "Kafka", "format": "json", **outer, "kafka": inner}, **(of_ingest or {}))], **of
    )


KAFKA_GOOD = [
    kafka(),
    kafka({"mode": "Continuous", "commitInterval": "2s", "freshness": "5m"}, topics=None, topicPattern="orders-.*"),
    kafka(format="raw", metadata=["topic", "partition", "offset", "timestamp", "key", "headers"]),
    kafka(format="avro", avro={"registry": "https://registry:8081/apis/ccompat/v7"}, maxRows=10, maxBytes="1Mi"),
    kafka(
        format="avro", avro={"schemaFile": "s3://b/order.avsc"}, security={"protocol": "SaslTls", "mechanism": "PLAIN"}
    ),
    kafka(format="protobuf", protobuf={"registry": "https://registry:8081"}, tombstones="Ignore", keyFormat="json"),
    kafka(format="protobuf", protobuf={"schemaFile": "s3://b/order.proto", "message": "shop.Order"}),
    kafka(json={"registry": "https://registry:8081"}, columns={"n": "bigint"}),
    kafka(format="raw", keyFormat="json", json={"registry": "https://registry:8081"}),
    kafka(tombstones="Delete", keyFormat="json", of={"orderingFields": [], "mergeMode": "CommitTime"}),
    kafka(tombstones="Delete", metadata=["offset"], of={"orderingFields": ["_kafka_offset"]}),
    kafka({"onUndecodable": "Quarantine", "maxErrorRatio": "0.01"}),
    kafka(
        {
            "expectations": [
                {"name": "a", "sql": "n > 0", "onFail": "Quarantine"},
                {"name": "b", "sql": "n < 9", "onFail": "Drop"},
            ],
            "maxErrorRatio": "1",
        }
    ),
    kafka({"transform": [{"flatten": {"separator": "__"}}, {"sql": "select * from source"}]}, columns={"n": "bigint"}),
    kafka({"engine": "Spark", "mode": "Continuous", "transform": [{"sql": "select * from source"}]}),
    kafka({"engine": "Spark", "transform": [{"flatten": {}}, {"function": "shop.clean"}]}),
    kafka({"engine": "Local"}),
    kafka(
        {"mode": "Scheduled", "schedule": "0 2 * * 1-5", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 600}
    ),
    kafka({"schemaPolicy": "AddColumns"}),
    kafka({"schemaPolicy": "Evolve"}),
    kafka({"transform": [{"sql": "select * from source", "onFail": "Quarantine"}], "maxErrorRatio": "0.1"}),
    table(ingest=[ingest(expectations=[{"name": "a", "sql": "n > 0", "onFail": "Quarantine"}], maxErrorRatio="0.1")]),
    table(ingest=[ingest(transform=[{"function": "strict", "onFail": "Quarantine"}])]),
    kafka(startFrom={"position": "Timestamp", "timestamp": "2026-01-31T12:00:00.5+01:00"}, onDataLoss="Continue"),
    kafka(startFrom={"position": "Offsets", "offsets": ["orders,0:120,1:98"]}, brokers="k-0.kafka:9092,k-1.kafka:9092"),
]
EVENTS = {"orderingFields": ["_event_lsn"]}


def debezium(of_ingest: dict[str, Any] | None = None, /, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A table that follows a table of a database."""
    of = EVENTS | changes.pop("of", {})
    source = {"type": "Debezium", "format": "json", "kafka": TOPICS | changes.pop("kafka", {}), **changes}
    return table(ingest=[ingest(source=source, **(of_ingest or {}))], **of)


KAFKA_GOOD += [
    debezium(),
    debezium({"engine": "Spark", "transform": [{"flatten": {}}]}),
    debezium(of={"orderingFields": ["_event_seq"]}),
    debezium(format="avro", kafka={"avro": {"registry": "http://registry:8081"}}, columns={"amount": "decimal(14,4)"}),
    debezium(
        {"mode": "Continuous", "freshness": "5m", "onUndecodable": "Quarantine"},
        debezium={"infinite": "AsNull", "onTruncate": "Delete"},
    ),
    debezium(columns={"amount": "decimal(14,4)"}, of={"partitionBy": [{"field": "id"}], "mergeMode": "EventTime"}),
]
KAFKA_BAD = [
    (debezium(of={"orderingFields": []}), "needs operation Upsert, orderingFields _event_lsn"),
    (debezium(of={"mergeMode": "CommitTime"}), "needs operation Upsert, orderingFields _event_lsn"),
    (debezium(of={"partitionBy": [{"field": "day"}]}), "partition fields of recordKey"),
    (debezium({"operation": "Insert"}), "needs operation Upsert, orderingFields _event_lsn"),
    (debezium(format="avro", kafka={"avro": {"schemaFile": "s3://b/s.avsc"}}), "or avro with kafka.avro.registry"),
    (debezium(format="raw"), "needs kafka and format json"),
    (debezium(kafka={"tombstones": "Delete"}), "change events delete by themselves"),
    (debezium(debezium={"infinite": "Keep"}), "must be one of Refuse, AsNull"),
    (debezium(debezium={"onTruncate": "Keep"}), "must be one of Refuse, Delete, Ignore"),
    (kafka(debezium={}), "debezium belongs to type Debezium"),
    (kafka(format="protobuf"), "format protobuf needs kafka.protobuf"),
    (kafka(protobuf={"registry": "http://r"}), "no other has it"),
    (kafka(format="protobuf", protobuf={}), "give registry or schemaFile"),
    (kafka(format="protobuf", protobuf={"registry": "http://r", "message": "A"}), "message belongs to schemaFile"),
    (
        kafka(format="protobuf", protobuf={"registry": "http://r"}, avro={"registry": "http://r"}, keyFormat="avro"),
        "keyFormat avro does not go with format protobuf",
    ),
    (kafka(json={}), "registry"),
    (kafka(json={"registry": "http://me:secret@r:1"}), "registry"),
    (kafka(format="raw", json={"registry": "http://r"}), "kafka.json belongs to type Kafka with format json"),
    (debezium(kafka={"json": {"registry": "http://r"}}), "kafka.json belongs to type Kafka with format json"),
    (kafka(format="csv"), "needs kafka and format: json, avro, protobuf or raw"),
    (kafka(path="s3://b/p"), "path belongs to type Files, kafka to type Kafka or Debezium"),
    (kafka(format="avro"), "format avro needs kafka.avro"),
    (kafka(keyFormat="avro"), "format avro needs kafka.avro"),
    (kafka(format="avro", avro={}), "registry or schemaFile, one of them"),
    (kafka(format="avro", avro={"registry": "http://r:1", "schemaFile": "s3://b/a.avsc"}), "one of them"),
    (kafka(avro={"registry": "http://me:secret@r:1"}), "registry"),
    (kafka(brokers="me:secret@kafka:9092"), "brokers"),
    (kafka(brokers="kafka"), "brokers"),
    (kafka(topics=[]), "topics or topicPattern, one of them"),
    (kafka(topicPattern="orders-.*"), "topics or topicPattern, one of them"),
    (kafka(topics=None, topicPattern="*"), "topicPattern is a regular expression"),
    (kafka(startFrom={"position": "Timestamp"}), "position Timestamp needs timestamp"),
    (kafka(startFrom={"timestamp": "2026-01-31T12:00:00Z"}), "position Timestamp needs timestamp"),
    (kafka(startFrom={"position": "Timestamp", "timestamp": "yesterday"}), "a moment such as"),
    (kafka(startFrom={"position": "Offsets"}), "position Offsets needs offsets"),
    (kafka(startFrom={"position": "ConsumerGroup"}), "position ConsumerGroup needs group"),
    (kafka(startFrom={"group": "shop"}), "position ConsumerGroup needs group, and no other has one"),
    (kafka(startFrom={"fallback": "Latest"}), "fallback belongs to position ConsumerGroup"),
    (
        kafka(startFrom={"position": "ConsumerGroup", "group": "shop", "fallback": "Timestamp"}),
        "must be one of Earliest",
    ),
    (kafka(startFrom={"position": "ConnectFiles"}), "positions ConnectFiles and Table need location"),
    (kafka(startFrom={"position": "Table", "location": "orders"}), "location"),
    (kafka(startFrom={"instant": "20260131120000000"}), "instant belongs to position Table"),
    (kafka(startFrom={"position": "Table", "location": "s3://b/t", "instant": "newest"}), "instant"),
    (kafka(startFrom={"location": "s3://b/topics"}), "need location, and no other has one"),
    (kafka(startFrom={"position": "Offsets", "offsets": ["orders"]}), "texts such as orders,0:120,1:98"),
    (kafka(tombstones="Drop"), "must be one of Refuse"),
    (kafka(metadata=["time"]), "must be one of topic"),
    (kafka(maxRows=0), "maxRows"),
    (kafka(maxBytes="64 MB"), "maxBytes"),
    (kafka(onDataLoss="Ignore"), "must be one of Stop, Continue"),
    (kafka(security={"protocol": "SSL"}), "must be one of Plaintext"),
    (kafka({"mode": "Continuous", "activeDeadline": "1h"}), "activeDeadline does not go with mode Continuous"),
    (kafka({"commitInterval": "5s"}), "commitInterval belongs to mode Continuous"),
    (kafka({"mode": "Scheduled"}), "mode Scheduled needs a schedule, and no other mode has one"),
    (kafka({"schedule": "0 2 * * *"}), "mode Scheduled needs a schedule, and no other mode has one"),
    (kafka({"mode": "Scheduled", "schedule": "hourly"}), "schedule"),
    (kafka({"timeZone": "Europe/Berlin"}), "timeZone belongs to a schedule"),
    (kafka({"startingDeadlineSeconds": 60}), "startingDeadlineSeconds belongs to a schedule"),
    (kafka({"schemaPolicy": "Rename"}), "must be one of Refuse, AddColumns, Widen, Evolve"),
    (kafka({"operation": "Insert"}, tombstones="Delete"), "tombstones Delete goes with operation Upsert"),
    (
        kafka(tombstones="Delete", of={"orderingFields": ["ts"], "mergeMode": "EventTime"}),
        "a tombstone has no value of orderingFields",
    ),
    (table(ingest=[ingest(source={"type": "Kafka"})]), "needs kafka and format: json, avro, protobuf or raw"),
    (table(ingest=[ingest(source={**FILES, "format": "avro"})]), "path and format: parquet, csv or json"),
    (
        table(ingest=[ingest(source={**FILES, "kafka": TOPICS})]),
        "path belongs to type Files, kafka to type Kafka or Debezium",
    ),
    (table(ingest=[ingest(onUndecodable="Quarantine")]), "onUndecodable Quarantine goes with a source of type Kafka"),
    (table(ingest=[ingest(transform=[{"flatten": {}, "onFail": "Fail"}])]), "onFail goes with sql or function"),
    (table(ingest=[ingest(transform=[{"function": "f", "onFail": "Drop"}])]), "must be one of Fail, Quarantine"),
    (kafka({"maxErrorRatio": "0.1"}), "maxErrorRatio needs something that is quarantined"),
    (kafka({"onUndecodable": "Quarantine", "maxErrorRatio": "2"}), "maxErrorRatio"),
    (kafka({"onUndecodable": "Drop"}), "must be one of Fail, Quarantine"),
    (
        kafka({"expectations": [{"name": "a", "sql": "n > 0", "onFail": "Warn"}]}),
        "must be one of Fail, Quarantine, Drop",
    ),
    (table(ingest=[ingest(freshness="5m")]), "freshness goes with a source of type Kafka, Debezium, Kinesis or Hudi"),
    (table(ingest=[ingest(engine="Spark")]), "engine goes with a source of type Kafka, Debezium, Jdbc or Custom"),
    (kafka({"engine": "Flink"}), "must be one of Local, Spark"),
    (
        kafka({"engine": "Spark", "transform": [{"sql": "select * from source", "onFail": "Quarantine"}]}),
        "engine Spark tells no row that a transform fails on",
    ),
]
DATABASE = {"url": "postgresql://db.shop.svc:5432/shop", "table": "public.orders"}


def jdbc(of_ingest: dict[str, Any] | None = None, /, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A table that is read from a database."""
    outer = {name: changes.pop(name) for name in ("format", "columns", "kafka", "path") if name in changes}
    inner = {name: value for name, value in (DATABASE | changes).items() if value is not None}
    return table(ingest=[ingest(source={"type": "Jdbc", **outer, "jdbc": inner}, **(of_ingest or {}))])


KAFKA_GOOD += [
    jdbc(),
    jdbc(
        table=None, query="select * from t", filter="a > 1", every="1h", infinite="AsNull", tls="VerifyFull",
        incremental={"column": "at", "lag": "10m"}, split={"column": "id", "parts": 8}, columns={"n": "decimal(10,2)"},
    ),
    jdbc({"operation": "Insert"}, incremental=None, split={"column": "id"}),
    jdbc({"engine": "Spark", "expectations": [{"name": "a", "sql": "n > 0"}]}, split={"column": "id"}),
    jdbc({"engine": "Local"}, url="mysql://db/shop"),
    jdbc({"mode": "Continuous", "commitInterval": "2s"}, incremental={"column": "at"}),
    jdbc(url="mysql://db/shop"),
    jdbc(url="mariadb://db:3306/shop", incremental={"column": "at"}, split={"column": "id"}, infinite="AsNull"),
]  # fmt: skip
KAFKA_BAD += [
    (jdbc(table=None), "give table or query"),
    (jdbc(query="select 1"), "give table or query"),
    (jdbc(url="oracle://db/shop"), "reads postgresql://, mysql:// or mariadb://"),
    (jdbc(url="mysql://db/shop", split={"column": "id"}), "split of MySQL and MariaDB needs incremental"),
    (jdbc(url="postgresql://user:secret@db/shop"), "url"),
    (jdbc(format="json"), "needs jdbc and no format"),
    (jdbc(path="s3://b/p"), "path belongs to type Files"),
    (jdbc(kafka=TOPICS), "kafka to type Kafka or Debezium"),
    (table(ingest=[ingest(source={"type": "Jdbc"})]), "needs jdbc and no format"),
    (table(ingest=[ingest(source={**FILES, "jdbc": DATABASE})]), "no other has jdbc"),
    (jdbc(incremental={"column": "at", "lag": "soon"}), "lag"),
    (jdbc(split={"column": "id", "parts": 17}), "parts"),
    (jdbc({"operation": "Insert"}, incremental={"column": "at"}), "it goes with operation Upsert"),
    (jdbc({"engine": "Spark"}, url="mysql://db/shop"), "engine Spark does not go with MySQL and MariaDB"),
    (jdbc({"mode": "Continuous"}), "mode Continuous of type Jdbc or Sql needs incremental"),
    (jdbc({"freshness": "5m"}), "freshness goes with"),
    (jdbc({"onUndecodable": "Quarantine"}), "goes with a source of type Kafka"),
]


def upstream(of_ingest: dict[str, Any] | None = None, /, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A table that follows another one."""
    outer = {name: changes.pop(name) for name in ("format", "columns", "path") if name in changes}
    inner = {"location": "s3://lake/orders"} | changes
    return table(ingest=[ingest(source={"type": "Hudi", **outer, "hudi": inner}, **(of_ingest or {}))])


KAFKA_GOOD += [
    upstream(),
    upstream({"freshness": "5m"}, deletes="Delete", maxInstants=10, onDataLoss="Continue", startFrom="Latest"),
    upstream({"operation": "Insert", "transform": [{"sql": "select * from source"}]}),
    upstream({"mode": "Continuous", "commitInterval": "2s", "freshness": "1m"}, deletes="Delete", maxInstants=10),
]
KAFKA_BAD += [
    (table(ingest=[ingest(source={"type": "Hudi"})]), "needs hudi and no format"),
    (table(ingest=[ingest(source={**FILES, "hudi": {"location": "s3://lake/orders"}})]), "no other has hudi"),
    (upstream(format="json"), "needs hudi and no format"),
    (upstream(path="s3://b/p"), "path belongs to type Files"),
    (upstream(columns={"n": "bigint"}), "columns belongs to format json or csv"),
    (upstream(location="orders"), "location"),
    (upstream(location="s3://lake/flights"), "must be another one"),
    (upstream(location="s3://lake/flights/more"), "must be another one"),
    (upstream(location="s3://lake"), "must be another one"),
    (upstream(maxInstants=0), "maxInstants"),
    (upstream({"operation": "Insert"}, deletes="Delete"), "go with operation Upsert"),
    (upstream({"operation": "Insert"}, onDataLoss="Continue"), "go with operation Upsert"),
    (upstream({"commitInterval": "5s"}), "commitInterval belongs to mode Continuous"),
    (upstream({"mode": "Continuous", "activeDeadline": "1h"}), "activeDeadline does not go with mode Continuous"),
    (upstream({"mode": "Backfill"}), "mode Backfill needs kafka.endAt"),
]


def custom(of_ingest: dict[str, Any] | None = None, /, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A table that is fed by a source of a package."""
    outer = {name: changes.pop(name) for name in ("format", "columns") if name in changes}
    inner = {"name": "shop.api"} | changes
    return table(ingest=[ingest(source={"type": "Custom", **outer, "custom": inner}, **(of_ingest or {}))])


KAFKA_GOOD += [
    custom(),
    custom({"mode": "Continuous"}),
    custom({"operation": "Insert"}, options={"site": "x"}, every="30s"),
]
KAFKA_BAD += [
    (table(ingest=[ingest(source={"type": "Custom"})]), "needs custom and no format"),
    (table(ingest=[ingest(source={**FILES, "custom": {"name": "a"}})]), "no other has custom"),
    (custom(format="json"), "needs custom and no format"),
    (custom(name="a b"), "name"),
    (custom(options={"n": 7}), "options"),
    (custom(every="soon"), "every"),
    (custom({"freshness": "5m"}), "freshness goes with"),
]


def statement(of_ingest: dict[str, Any] | None = None, /, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A table that is fed by a statement over others."""
    outer = {name: changes.pop(name) for name in ("format", "columns") if name in changes}
    inner = {"query": "SELECT * FROM orders", "tables": [{"name": "orders", "location": "s3://lake/orders"}]} | changes
    return table(ingest=[ingest(source={"type": "Sql", **outer, "sql": inner}, **(of_ingest or {}))])


KAFKA_GOOD += [
    statement(),
    statement({"mode": "Continuous", "commitInterval": "2s"}, incremental={"column": "seen"}),
    statement(incremental={"column": "seen", "lag": "10m"}, every="30s"),
    statement(tables=[{"name": f"t{number}", "location": f"s3://lake/{number}"} for number in range(16)]),
]
KAFKA_BAD += [
    (table(ingest=[ingest(source={"type": "Sql"})]), "needs sql and no format"),
    (
        table(
            ingest=[ingest(source={**FILES, "sql": {"query": "q", "tables": [{"name": "a", "location": "s3://a/b"}]}})]
        ),
        "no other has sql",
    ),
    (statement(format="json"), "needs sql and no format"),
    (statement(columns={"n": "bigint"}), "columns belongs to format json or csv"),
    (statement(query=""), "query"),
    (statement(tables=[]), "tables"),
    (statement(tables=[{"name": "a b", "location": "s3://lake/orders"}]), "name"),
    (statement(tables=[{"name": "orders", "location": "orders"}]), "location"),
    (
        statement(tables=[{"name": "mine", "location": "s3://lake/flights"}]),
        "must not read the table that it is answered into",
    ),
    (statement(tables=[{"name": "mine", "location": "s3://lake/flights/"}]), "must not read the table that it is"),
    (statement(tables=[{"name": "around", "location": "s3://lake"}]), "nor one that lies in it or around it"),
    (statement(incremental={"lag": "1m"}), "column"),
    (statement(every="soon"), "every"),
    (statement({"operation": "Insert"}), "goes with operation Upsert"),
    (statement({"mode": "Continuous"}), "mode Continuous of type Jdbc or Sql needs incremental"),
]


def notified(**changes: Any) -> tuple[str, dict[str, Any]]:
    """A table of files that a queue tells of."""
    queue = {"type": "Sqs", "queue": "https://sqs.eu-central-1.amazonaws.com/123456789012/landing"}
    told = queue | {name: changes.pop(name) for name in ("type", "queue") if name in changes}
    return table(ingest=[ingest(source={**FILES, "notifications": told, **changes})])


KAFKA_GOOD += [notified(), notified(path="s3a://b/p/"), notified(queue="http://queue:9324/000000000000/landing")]
KAFKA_BAD += [
    (notified(path="gs://b/p"), "notifications belongs to type Files with a path in S3"),
    (notified(type="Sqs", path=None), "needs path and format"),
    (
        table(
            ingest=[
                ingest(
                    source={
                        "type": "Kafka",
                        "format": "json",
                        "kafka": TOPICS,
                        "notifications": {"type": "Sqs", "queue": "https://sqs/1/q"},
                    }
                )
            ]
        ),
        "notifications belongs to type Files",
    ),
    (notified(type="Pubsub"), "type"),
    (notified(queue="landing"), "queue"),
    (notified(queue="https://user:secret@sqs/1/q"), "queue"),
]


def backfill(of_ingest: dict[str, Any] | None = None, /, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A table that takes a range of a topic."""
    end = {"position": "Timestamp", "timestamp": "2026-01-31T12:00:00Z"}
    return kafka({"mode": "Backfill", **(of_ingest or {})}, **{"endAt": end, **changes})


KAFKA_GOOD += [
    kafka(startFrom={"position": "ConsumerGroup", "group": "shop"}),
    kafka(startFrom={"position": "ConsumerGroup", "group": "shop", "fallback": "Latest"}),
    kafka(startFrom={"position": "ConnectFiles", "location": "s3://landing/topics/orders"}),
    kafka(startFrom={"position": "Table", "location": "s3://lake/orders-before"}),
    kafka(startFrom={"position": "Table", "location": "s3://lake/orders-before", "instant": "20260131120000000"}),
]
KAFKA_GOOD += [
    backfill(),
    backfill({"activeDeadline": "2h"}, endAt={"position": "Offsets", "offsets": ["orders,0:120,1:98"]}),
    backfill(startFrom={"position": "Timestamp", "timestamp": "2026-01-01T00:00:00Z"}),
]
KAFKA_BAD += [
    (backfill(endAt=None), "mode Backfill needs kafka.endAt"),
    (backfill({"mode": "Once"}), "no other mode has one"),
    (backfill({"mode": "Continuous"}), "no other mode has one"),
    (backfill({"operation": "Insert"}), "mode Backfill goes with operation Upsert"),
    (backfill(startFrom={"position": "Latest"}), "does not begin at Latest"),
    (backfill(of={"mergeMode": "CommitTime"}), "needs orderingFields and mergeMode EventTime"),
    (backfill(of={"orderingFields": []}), "orderingFields"),
    (backfill(endAt={"position": "Latest"}), "position"),
    (backfill(endAt={"position": "Timestamp"}), "position Timestamp needs timestamp"),
    (backfill(endAt={"position": "Timestamp", "timestamp": "soon"}), "timestamp is a moment"),
    (backfill(endAt={"position": "Offsets"}), "position Offsets needs offsets"),
    (backfill(endAt={"position": "Offsets", "offsets": ["orders"]}), "offsets are texts"),
]
