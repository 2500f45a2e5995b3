"""`source` of an ingest: where rows come from. What no release reads is no value here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields.brokers import BROKERS, TOPIC_LENGTH_MAX, SaslMechanism, SecurityProtocol
from hudi_operator.api.fields.patterns import LOCATION, QUANTITY, is_pattern
from hudi_operator.api.ingests.change_events import DebeziumSpec
from hudi_operator.api.ingests.codecs import AvroSpec, CsvSpec, JsonSpec, ProtobufSpec
from hudi_operator.api.ingests.custom import CustomSpec
from hudi_operator.api.ingests.databases import JdbcSpec
from hudi_operator.api.ingests.kinesis import KinesisSpec
from hudi_operator.api.ingests.notifications import NotificationsSpec
from hudi_operator.api.ingests.ranges import RANGE_RULES, EndAtSpec, RangeSpec, StartFromSpec
from hudi_operator.api.ingests.statements import SqlSpec
from hudi_operator.api.ingests.upstreams import UpstreamSpec
from hudi_operator.api.schema import Rule, prop


class SourceType(StrEnum):
    """Where rows come from."""

    FILES = "Files"
    KAFKA = "Kafka"
    DEBEZIUM = "Debezium"
    KINESIS = "Kinesis"
    JDBC = "Jdbc"
    HUDI = "Hudi"
    SQL = "Sql"
    CUSTOM = "Custom"


STREAMS = (SourceType.KAFKA, SourceType.DEBEZIUM)
MESSAGES = (*STREAMS, SourceType.KINESIS)
FOLLOWED = (*MESSAGES, SourceType.HUDI)
"""What tells since when something waits."""


class SourceFormat(StrEnum):
    """Format of files, or of the values of messages."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    RAW = "raw"


FILE_FORMATS = (SourceFormat.PARQUET, SourceFormat.CSV, SourceFormat.JSON)
KAFKA_FORMATS = (SourceFormat.JSON, SourceFormat.AVRO, SourceFormat.PROTOBUF, SourceFormat.RAW)


class Tombstones(StrEnum):
    """What becomes of messages without a value."""

    REFUSE = "Refuse"
    IGNORE = "Ignore"
    DELETE = "Delete"


class KeyFormat(StrEnum):
    """Format of the keys of tombstones."""

    RAW = "raw"
    JSON = "json"
    AVRO = "avro"


class MetadataColumn(StrEnum):
    """What of a message beside its value becomes a column `_kafka_…`."""

    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    KEY = "key"
    HEADERS = "headers"


class OnDataLoss(StrEnum):
    """What is done where the brokers no longer have what comes next."""

    STOP = "Stop"
    CONTINUE = "Continue"


@dataclass(frozen=True, slots=True)
class SecuritySpec:
    """How the brokers are spoken to. User, password and PEM texts are in the Secret of
    storage.credentialsSecretRef: KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD, KAFKA_CA,
    KAFKA_CLIENT_CERTIFICATE, KAFKA_CLIENT_KEY."""

    protocol: SecurityProtocol = prop("with TLS, with a user, both or none", SecurityProtocol.PLAINTEXT)
    mechanism: SaslMechanism = prop("of the protocols with a user", SaslMechanism.SCRAM_SHA_512)


@dataclass(frozen=True, slots=True)
class KafkaSpec:
    """Topics of Kafka. Of transactions what is committed is read."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(size(self.topics) > 0) != has(self.topicPattern)",
            "give topics or topicPattern, one of them",
            "topics",
            lambda k: bool(k.topics) != (k.topic_pattern is not None),
        ),
        Rule(
            "!has(self.topicPattern) || ''.matches(self.topicPattern) in [true, false]",
            "topicPattern is a regular expression, such as orders-.*",
            "topicPattern",
            lambda k: k.topic_pattern is None or is_pattern(k.topic_pattern),
        ),
    )

    brokers: str = prop(
        "brokers to begin with, such as kafka-0:9092,kafka-1:9092", pattern=BROKERS, min_length=1, max_length=1024
    )
    topics: tuple[str, ...] = prop(
        "topics by their names", (), max_items=100, item_max_length=TOPIC_LENGTH_MAX, unique=True
    )
    topic_pattern: str | None = prop(
        "regular expression of whole names of topics; those that come later are read, too", None, max_length=256
    )
    start_from: StartFromSpec = prop("where an ingest begins that has no checkpoint", StartFromSpec)
    end_at: EndAtSpec | None = prop("of mode Backfill: where it ends", None)
    tombstones: Tombstones = prop(
        "messages without a value end the ingest, are passed over, or delete the row of their key", Tombstones.REFUSE
    )
    key_format: KeyFormat = prop(
        "of the keys of tombstones: raw is the text of the record key's one column, json and avro are objects with all of them and the partition's",
        KeyFormat.RAW,
    )
    metadata: tuple[MetadataColumn, ...] = prop(
        "what becomes a column beside those of the value: _kafka_offset of offset, and so on",
        (),
        max_items=6,
        unique=True,
    )
    max_rows: int = prop("messages of one commit at the most", 1_000_000, minimum=1, maximum=100_000_000)
    max_bytes: str = prop("size of the messages of one commit, about", "64Mi", pattern=QUANTITY, max_length=16)
    on_data_loss: OnDataLoss = prop(
        "where the brokers no longer have what comes next: stop and say how much is lost, or go on without it",
        OnDataLoss.STOP,
    )
    security: SecuritySpec = prop("how the brokers are spoken to", SecuritySpec)
    json: JsonSpec | None = prop(
        "of format or keyFormat json: where the schemas are of messages, or keys, that begin with the id of one; absent: they are JSON alone",
        None,
    )
    avro: AvroSpec | None = prop("where the schemas of format avro are", None)
    protobuf: ProtobufSpec | None = prop("where the definitions of format protobuf are", None)


def _holds_events(source: SourceSpec) -> bool:
    """Whether change events can be read: in JSON, or in Avro with the registry that the connector
    needs itself."""
    kafka = source.kafka
    if kafka is None or source.format is not SourceFormat.AVRO:
        return kafka is not None and source.format is SourceFormat.JSON
    return kafka.avro is not None and kafka.avro.registry is not None


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Where rows come from."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *RANGE_RULES,
        Rule(
            "self.type != 'Files' || (has(self.path) && has(self.format) && self.format in ['parquet', 'csv', 'json'])",
            "a source of type Files needs path and format: parquet, csv or json",
            "",
            lambda s: s.type is not SourceType.FILES or (s.path is not None and s.format in FILE_FORMATS),
        ),
        Rule(
            "!has(self.notifications) || (has(self.path) && (self.path.startsWith('s3://') || self.path.startsWith('s3a://')))",
            "notifications belongs to type Files with a path in S3",
            "notifications",
            lambda s: s.notifications is None or (s.path or "").startswith(("s3://", "s3a://")),
        ),
        Rule(
            "!has(self.maxBytes) || self.type == 'Files'",
            "maxBytes belongs to type Files: others have theirs beside their own settings",
            "maxBytes",
            lambda s: s.max_bytes is None or s.type is SourceType.FILES,
        ),
        Rule(
            "!has(self.csv) || (has(self.format) && self.format == 'csv')",
            "csv belongs to format csv",
            "csv",
            lambda s: s.csv is None or s.format is SourceFormat.CSV,
        ),
        Rule(
            "!has(self.columns) || size(self.columns) == 0 || self.type in ['Debezium', 'Jdbc'] || (has(self.format) && self.format in ['json', 'csv'])",
            "columns belongs to format json or csv, or to type Debezium or Jdbc: others have types of their own",
            "columns",
            lambda s: (
                not s.columns
                or s.type in (SourceType.DEBEZIUM, SourceType.JDBC)
                or s.format in (SourceFormat.JSON, SourceFormat.CSV)
            ),
        ),
        Rule(
            "self.type != 'Kafka' || (has(self.kafka) && has(self.format) && self.format in ['json', 'avro', 'protobuf', 'raw'])",
            "a source of type Kafka needs kafka and format: json, avro, protobuf or raw",
            "",
            lambda s: s.type is not SourceType.KAFKA or (s.kafka is not None and s.format in KAFKA_FORMATS),
        ),
        Rule(
            "(self.type == 'Files' || !has(self.path)) && (self.type in ['Kafka', 'Debezium'] || !has(self.kafka))",
            "path belongs to type Files, kafka to type Kafka or Debezium",
            "type",
            lambda s: (s.type is SourceType.FILES or s.path is None) and (s.type in STREAMS or s.kafka is None),
        ),
        Rule(
            "(self.type == 'Kinesis') == has(self.kinesis) && (self.type != 'Kinesis' || (has(self.format) && self.format in ['json', 'avro', 'protobuf', 'raw']))",
            "a source of type Kinesis needs kinesis and format: json, avro, protobuf or raw; no other has kinesis",
            "",
            lambda s: (
                (s.type is SourceType.KINESIS) == (s.kinesis is not None)
                and (s.type is not SourceType.KINESIS or s.format in KAFKA_FORMATS)
            ),
        ),
        Rule(
            "!has(self.kinesis) || !has(self.format) || (has(self.kinesis.avro) == (self.format == 'avro') && has(self.kinesis.protobuf) == (self.format == 'protobuf'))",
            "format avro needs kinesis.avro, and format protobuf kinesis.protobuf: a registry, or a schemaFile; no other has them",
            "kinesis",
            lambda s: (
                s.kinesis is None
                or s.format is None
                or (
                    (s.kinesis.avro is not None) == (s.format is SourceFormat.AVRO)
                    and (s.kinesis.protobuf is not None) == (s.format is SourceFormat.PROTOBUF)
                )
            ),
        ),
        Rule(
            "(self.type == 'Jdbc') == has(self.jdbc) && (self.type != 'Jdbc' || !has(self.format))",
            "a source of type Jdbc needs jdbc and no format, and no other has jdbc",
            "",
            lambda s: (
                (s.type is SourceType.JDBC) == (s.jdbc is not None)
                and (s.type is not SourceType.JDBC or s.format is None)
            ),
        ),
        Rule(
            "(self.type == 'Custom') == has(self.custom) && (self.type != 'Custom' || !has(self.format))",
            "a source of type Custom needs custom and no format, and no other has custom",
            "",
            lambda s: (
                (s.type is SourceType.CUSTOM) == (s.custom is not None)
                and (s.type is not SourceType.CUSTOM or s.format is None)
            ),
        ),
        Rule(
            "(self.type == 'Hudi') == has(self.hudi) && (self.type != 'Hudi' || !has(self.format))",
            "a source of type Hudi needs hudi and no format, and no other has hudi",
            "",
            lambda s: (
                (s.type is SourceType.HUDI) == (s.hudi is not None)
                and (s.type is not SourceType.HUDI or s.format is None)
            ),
        ),
        Rule(
            "(self.type == 'Sql') == has(self.sql) && (self.type != 'Sql' || !has(self.format))",
            "a source of type Sql needs sql and no format, and no other has sql",
            "",
            lambda s: (
                (s.type is SourceType.SQL) == (s.sql is not None) and (s.type is not SourceType.SQL or s.format is None)
            ),
        ),
        Rule(
            "self.type != 'Debezium' || (has(self.kafka) && has(self.format) && (self.format == 'json' || "
            "(self.format == 'avro' && has(self.kafka.avro) && has(self.kafka.avro.registry))))",
            "a source of type Debezium needs kafka and format json, or avro with kafka.avro.registry",
            "",
            lambda s: s.type is not SourceType.DEBEZIUM or _holds_events(s),
        ),
        Rule(
            "!has(self.debezium) || self.type == 'Debezium'",
            "debezium belongs to type Debezium",
            "debezium",
            lambda s: s.debezium is None or s.type is SourceType.DEBEZIUM,
        ),
        Rule(
            "self.type != 'Debezium' || !has(self.kafka) || self.kafka.tombstones != 'Delete'",
            "change events delete by themselves: leave kafka.tombstones out",
            "kafka",
            lambda s: (
                s.type is not SourceType.DEBEZIUM or s.kafka is None or s.kafka.tombstones is not Tombstones.DELETE
            ),
        ),
        Rule(
            "!has(self.kafka) || has(self.kafka.avro) || ((!has(self.format) || self.format != 'avro') && self.kafka.keyFormat != 'avro')",
            "format avro needs kafka.avro: a registry, or a schemaFile",
            "kafka",
            lambda s: (
                s.kafka is None
                or s.kafka.avro is not None
                or (s.format is not SourceFormat.AVRO and s.kafka.key_format is not KeyFormat.AVRO)
            ),
        ),
        Rule(
            "!has(self.kafka) || !has(self.kafka.json) || (self.type == 'Kafka' && ((has(self.format) && self.format == 'json') || self.kafka.keyFormat == 'json'))",
            "kafka.json belongs to type Kafka with format json, or keyFormat json",
            "kafka",
            lambda s: (
                s.kafka is None
                or s.kafka.json is None
                or (
                    s.type is SourceType.KAFKA
                    and (s.format is SourceFormat.JSON or s.kafka.key_format is KeyFormat.JSON)
                )
            ),
        ),
        Rule(
            "!has(self.kinesis) || !has(self.kinesis.json) || (has(self.format) && self.format == 'json')",
            "kinesis.json belongs to format json",
            "kinesis",
            lambda s: s.kinesis is None or s.kinesis.json is None or s.format is SourceFormat.JSON,
        ),
        Rule(
            "!has(self.kafka) || has(self.kafka.protobuf) == (has(self.format) && self.format == 'protobuf')",
            "format protobuf needs kafka.protobuf, a registry or a schemaFile, and no other has it",
            "kafka",
            lambda s: s.kafka is None or (s.kafka.protobuf is not None) == (s.format is SourceFormat.PROTOBUF),
        ),
        Rule(
            "!has(self.kafka) || !has(self.format) || self.format != 'protobuf' || self.kafka.keyFormat != 'avro'",
            "keyFormat avro does not go with format protobuf: give raw or json",
            "kafka",
            lambda s: (
                s.kafka is None or s.format is not SourceFormat.PROTOBUF or s.kafka.key_format is not KeyFormat.AVRO
            ),
        ),
    )

    type: SourceType = prop("kind of source")
    path: str | None = prop(
        "of type Files: their folder, as a URI such as s3://landing/flights/", None, pattern=LOCATION, max_length=1024
    )
    notifications: NotificationsSpec | None = prop(
        "of type Files: the queue that tells which files came; absent: their folder is listed", None
    )
    max_bytes: str | None = prop(
        "of type Files: size of the files of one commit, about; absent: all that wait, in mode Continuous 256Mi. With notifications the first commit takes all that lie there",
        None,
        pattern=QUANTITY,
        max_length=16,
    )
    range: RangeSpec | None = prop(
        "of mode Backfill of types Files, Kinesis, Jdbc with incremental, and Hudi: what it takes", None
    )
    format: SourceFormat | None = prop("format of the files, or of the messages' values", None)
    csv: CsvSpec | None = prop("details of CSV files", None)
    columns: dict[str, str] = prop(
        "of json, csv, change events or a database: types of columns, in Spark's words, such as bigint or decimal(10,2); a column that rows lack is null then",
        dict,
        max_items=256,
        item_max_length=256,
    )
    debezium: DebeziumSpec | None = prop("of type Debezium: how change events are read", None)
    kafka: KafkaSpec | None = prop("of type Kafka or Debezium: which topics, and how they are read", None)
    kinesis: KinesisSpec | None = prop("of type Kinesis: which stream, and how it is read", None)
    jdbc: JdbcSpec | None = prop("of type Jdbc: which rows of a database", None)
    custom: CustomSpec | None = prop("of type Custom: which source of which package", None)
    hudi: UpstreamSpec | None = prop("of type Hudi: which other table, and what of it", None)
    sql: SqlSpec | None = prop("of type Sql: which statement over which other tables", None)

    @property
    def deletes(self) -> bool:
        """Whether tombstones delete rows."""
        return self.kafka is not None and self.kafka.tombstones is Tombstones.DELETE

    @property
    def grows(self) -> bool:
        """Whether a look takes only what has come since the last one."""
        return all(each is None or each.incremental is not None for each in (self.jdbc, self.sql))
