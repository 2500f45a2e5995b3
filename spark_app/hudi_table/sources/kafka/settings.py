"""What is asked of a Kafka source, as a JobSpec says it, and the client's configuration. Secrets
come from the environment alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.positions import Positions, TopicPositions, parse_streamer
from hudi_table.model.job.variables import CA, CERTIFICATE, KEY, SASL_PASSWORD, SASL_USERNAME

PROTOCOLS = {"Plaintext": "plaintext", "Tls": "ssl", "SaslPlaintext": "sasl_plaintext", "SaslTls": "sasl_ssl"}
METADATA = ("topic", "partition", "offset", "timestamp", "key", "headers")
ROWS_MAX, BYTES_MAX = 1_000_000, 64 << 20
PREFETCH_KIB = 32 << 10


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A source of type Kafka. `topics` or `pattern`; `position` is Earliest, Latest, Timestamp
    (`timestamp`, milliseconds since 1970), Offsets (`offsets`), ConsumerGroup (`group`, and for
    partitions of which it has committed none `fallback`, Earliest or Latest), ConnectFiles or Table
    (`location`). `end`: before which moment or
    offsets reading ends, None if it does not. `format` is json, avro, protobuf
    or raw, `key_format` that of the keys of tombstones. `schema_file`: URI of an Avro schema, or of
    a definition of Protocol Buffers, of which `message` names one. `json_registry`: that of the
    schemas of JSON, None where it comes without ids. `keeps_keys`: keys are wanted in
    any case, as those of messages that are refused. `debezium`: messages are change events, whose
    dates without an end are null if `infinite_is_null`; `on_truncate`: what becomes of rows when
    their table is truncated."""

    brokers: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    format: str = "json"
    position: str = "Earliest"
    timestamp: int = 0
    offsets: Positions | None = None
    group: str = ""
    fallback: str = "Earliest"
    location: str = ""
    instant: str = ""
    tombstones: str = "Refuse"
    key_format: str = "raw"
    metadata: tuple[str, ...] = ()
    max_rows: int = ROWS_MAX
    max_bytes: int = BYTES_MAX
    continues: bool = False
    protocol: str = "Plaintext"
    mechanism: str = "SCRAM-SHA-512"
    registry: str | None = None
    schema_file: str | None = None
    message: str | None = None
    json_registry: str | None = None
    keeps_keys: bool = False
    debezium: bool = False
    infinite_is_null: bool = False
    on_truncate: str = "Refuse"
    end: End | None = None

    @property
    def only_topic(self) -> str | None:
        """The one topic, if there can be no other."""
        return self.topics[0] if len(self.topics) == 1 and self.pattern is None else None

    def matches(self, topic: str) -> bool:
        """Whether a topic of the cluster is of the pattern. Topics of Kafka's own are not."""
        return self.pattern is not None and not topic.startswith("__") and _found(_whole(self.pattern), topic)

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> KafkaSettings:
        """From the `source` of a JobSpec. Raises InvalidRequestError that names the field."""
        raw = source.get("kafka")
        if not isinstance(raw, Mapping) or not raw.get("brokers"):
            raise InvalidRequestError("a source of type Kafka needs kafka.brokers")
        pattern = raw.get("topicPattern")
        if bool(raw.get("topics")) == bool(pattern):
            raise InvalidRequestError("a source of type Kafka needs kafka.topics or kafka.topicPattern, one of them")
        if pattern is not None:
            checked_pattern(pattern)
        debezium = source.get("type") == "Debezium"
        events = source.get("debezium") or {}
        form = _one_of("format", str(source.get("format", "json")), ("json", "avro", "protobuf", "raw"))
        start, security = raw.get("startFrom", {}), raw.get("security", {})
        codec = raw.get("protobuf" if form == "protobuf" else "avro", {})
        return cls(
            brokers=str(raw["brokers"]),
            topics=tuple(map(str, raw.get("topics", ()))),
            pattern=pattern,
            format=form,
            position=_one_of(
                "kafka.startFrom.position",
                str(start.get("position", "Earliest")),
                ("Earliest", "Latest", "Timestamp", "Offsets", "ConsumerGroup", "ConnectFiles", "Table"),
            ),
            group=_needed(start, "group", "ConsumerGroup"),
            fallback=_one_of(
                "kafka.startFrom.fallback", str(start.get("fallback") or "Earliest"), ("Earliest", "Latest")
            ),
            location=_needed(start, "location", "ConnectFiles", "Table"),
            instant=str(start.get("instant") or ""),
            timestamp=int(start.get("timestampMillis", 0)),
            offsets=explicit_offsets(start.get("offsets", ())),
            end=End.of(raw.get("endAt")),
            # Each tombstone of Debezium comes behind the event that deletes.
            tombstones="Ignore"
            if debezium
            else _one_of("kafka.tombstones", str(raw.get("tombstones", "Refuse")), ("Refuse", "Ignore", "Delete")),
            key_format=_one_of("kafka.keyFormat", str(raw.get("keyFormat", "raw")), ("raw", "json", "avro")),
            metadata=tuple(_one_of("kafka.metadata", str(name), METADATA) for name in raw.get("metadata", ())),
            max_rows=_positive("kafka.maxRows", raw.get("maxRows", ROWS_MAX)),
            max_bytes=_positive("kafka.maxBytes", raw.get("maxBytes", BYTES_MAX)),
            continues=_one_of("kafka.onDataLoss", str(raw.get("onDataLoss", "Stop")), ("Stop", "Continue"))
            == "Continue",
            protocol=_one_of("kafka.security.protocol", str(security.get("protocol", "Plaintext")), tuple(PROTOCOLS)),
            mechanism=str(security.get("mechanism", "SCRAM-SHA-512")),
            registry=codec.get("registry"),
            schema_file=codec.get("schemaFile"),
            message=codec.get("message"),
            json_registry=(raw.get("json") or {}).get("registry"),
            debezium=debezium,
            infinite_is_null=_one_of("debezium.infinite", str(events.get("infinite", "Refuse")), ("Refuse", "AsNull"))
            == "AsNull",
            on_truncate=_one_of(
                "debezium.onTruncate", str(events.get("onTruncate", "Refuse")), ("Refuse", "Delete", "Ignore")
            ),
        )


@dataclass(frozen=True, slots=True)
class End:
    """The end of a range: messages of `timestamp`, milliseconds since 1970, and later ones, or from
    `offsets` on, are not read; nothing of partitions that `offsets` does not name."""

    timestamp: int = 0
    offsets: Positions | None = None

    @property
    def text(self) -> str:
        """As a checkpoint keeps it."""
        return f"Offsets:{self.offsets.batch}" if self.offsets is not None else f"Timestamp:{self.timestamp}"

    @classmethod
    def of(cls, raw: Any) -> End | None:
        """From `kafka.endAt` of a JobSpec. Raises InvalidRequestError."""
        if raw is None:
            return None
        if _one_of("kafka.endAt.position", str(raw.get("position")), ("Timestamp", "Offsets")) == "Timestamp":
            return cls(timestamp=int(raw["timestampMillis"]))
        offsets = explicit_offsets(raw.get("offsets", ()), "kafka.endAt.offsets")
        if offsets is None:
            raise InvalidRequestError("kafka.endAt.position Offsets needs kafka.endAt.offsets")
        return cls(offsets=offsets)


@dataclass(frozen=True, slots=True)
class Secrets:
    """What the client alone gets; never shown."""

    config: Mapping[str, Any] = field(repr=False)


def checked_pattern(pattern: str) -> None:
    """Raises InvalidRequestError for what is no regular expression."""
    try:
        for form in (pattern, _whole(pattern)):
            _found(form, "")
    except pa.ArrowInvalid as error:
        raise InvalidRequestError(f"kafka.topicPattern {pattern!r} is no regular expression: {error}") from error


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"


def _found(pattern: str, text: str) -> bool:
    """By RE2, as the API server judges patterns. It takes time as the text is long; Python's own
    would take for ever with some, and lets no other thread of the process work meanwhile."""
    return bool(pc.match_substring_regex(pa.scalar(text), pattern).as_py())


def explicit_offsets(texts: Any, name: str = "kafka.startFrom.offsets") -> Positions | None:
    """Offsets, one text a topic, as Hudi Streamer writes them, of the field `name`. Raises
    InvalidRequestError."""
    topics: dict[str, TopicPositions] = {}
    for text in texts:
        try:
            topic, offsets = parse_streamer(str(text))
        except ValueError as error:
            raise InvalidRequestError(f"{name} {error}") from error
        if topic in topics:
            raise InvalidRequestError(f"{name} names topic {topic} twice")
        topics[topic] = TopicPositions("", offsets)
    return Positions("", topics) if topics else None


def client_config(settings: KafkaSettings, environment: Mapping[str, str]) -> Secrets:
    """What every client of the source is made with. Raises InvalidRequestError if the environment
    lacks what the protocol needs."""
    config: dict[str, Any] = {
        "bootstrap.servers": settings.brokers,
        "security.protocol": PROTOCOLS[settings.protocol],
        "client.id": "hudi-table",
        # Nobody is to guess what the broker of an older release understands.
        "socket.keepalive.enable": True,
    }
    if settings.protocol.startswith("Sasl"):
        missing = [name for name in (SASL_USERNAME, SASL_PASSWORD) if not environment.get(name)]
        if missing:
            raise InvalidRequestError(
                f"kafka.security.protocol {settings.protocol} needs {' and '.join(missing)} in the Secret of storage.credentialsSecretRef"
            )
        config |= {
            "sasl.mechanism": settings.mechanism,
            "sasl.username": environment[SASL_USERNAME],
            "sasl.password": environment[SASL_PASSWORD],
        }
    if settings.protocol.endswith("Tls"):
        pems = {"ssl.ca.pem": CA, "ssl.certificate.pem": CERTIFICATE, "ssl.key.pem": KEY}
        config |= {key: environment[name] for key, name in pems.items() if environment.get(name)}
    return Secrets(config)


def consumer_config(settings: KafkaSettings, environment: Mapping[str, str]) -> Secrets:
    """What the consumer is made with: no group is joined and nothing is stored in the cluster, for
    the table holds the positions."""
    return Secrets(
        {
            **client_config(settings, environment).config,
            "group.id": "hudi-table",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "check.crcs": True,
            "queued.max.messages.kbytes": PREFETCH_KIB,
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 10,
        }
    )


def _needed(start: Mapping[str, Any], name: str, *positions: str) -> str:
    """A field that some positions of `kafka.startFrom` need."""
    found = str(start.get(name) or "")
    if start.get("position") in positions and not found:
        raise InvalidRequestError(f"kafka.startFrom.position {start['position']} needs kafka.startFrom.{name}")
    return found


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InvalidRequestError(f"{name} is {value!r}; give one of {', '.join(known)}")
    return value


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise InvalidRequestError(f"{name} is {value!r}; give a whole number, at least 1")
    return value
