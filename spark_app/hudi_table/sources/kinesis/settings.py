"""What is asked of a source of type Kinesis, as a JobSpec says it. Secrets come from the
environment alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.ranges import Range

METADATA = ("stream", "shard", "sequence", "timestamp", "key")
ROWS_MAX, BYTES_MAX = 1_000_000, 64 << 20
_POSITIONS = ("TrimHorizon", "Latest", "Timestamp")


@dataclass(frozen=True, slots=True)
class KinesisSettings:
    """`position`: TrimHorizon, Latest or Timestamp (`timestamp`, milliseconds since 1970).
    `end`: what arrived at this moment or later is not read, -1 where there is none. `continues`:
    what is lost is gone on without. `schema_file`, `registry`, `message` and
    `json_registry`: as of topics of Kafka."""

    stream: str
    region: str | None = None
    endpoint: str | None = None
    format: str = "json"
    position: str = "TrimHorizon"
    timestamp: int = 0
    end: int = -1
    metadata: tuple[str, ...] = ()
    max_rows: int = ROWS_MAX
    max_bytes: int = BYTES_MAX
    continues: bool = False
    registry: str | None = None
    schema_file: str | None = None
    message: str | None = None
    json_registry: str | None = None

    @classmethod
    def of(cls, source: Mapping[str, Any], region: str | None = None) -> KinesisSettings:
        """From the `source` of a JobSpec; `region`: where it names none. Raises
        InvalidRequestError that names the field."""
        raw = source.get("kinesis")
        if not isinstance(raw, Mapping) or not raw.get("stream"):
            raise InvalidRequestError("a source of type Kinesis needs kinesis.stream")
        form = _one_of("format", source.get("format", "json"), ("json", "avro", "protobuf", "raw"))
        start, codec = raw.get("startFrom", {}), raw.get("protobuf" if form == "protobuf" else "avro", {})
        within, end = Range.of(source), -1
        if within is not None:
            if start.get("position", "TrimHorizon") != "TrimHorizon":
                raise InvalidRequestError("range.since says where a range begins: leave kinesis.startFrom out")
            since, until = within.moments()
            start, end = _at(since) if since is not None else {}, _millis(until)
        return cls(
            stream=str(raw["stream"]),
            region=raw.get("region") or region,
            endpoint=raw.get("endpoint"),
            format=form,
            position=_one_of("kinesis.startFrom.position", start.get("position", "TrimHorizon"), _POSITIONS),
            timestamp=int(start.get("timestampMillis", 0)),
            end=end,
            metadata=tuple(_one_of("kinesis.metadata", name, METADATA) for name in raw.get("metadata", ())),
            max_rows=_positive("kinesis.maxRows", raw.get("maxRows", ROWS_MAX)),
            max_bytes=_positive("kinesis.maxBytes", raw.get("maxBytes", BYTES_MAX)),
            continues=_one_of("kinesis.onDataLoss", raw.get("onDataLoss", "Stop"), ("Stop", "Continue")) == "Continue",
            registry=codec.get("registry"),
            schema_file=codec.get("schemaFile"),
            message=codec.get("message"),
            json_registry=(raw.get("json") or {}).get("registry"),
        )


def _at(moment: datetime) -> dict[str, Any]:
    return {"position": "Timestamp", "timestampMillis": _millis(moment)}


def _millis(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _one_of(name: str, value: object, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InvalidRequestError(f"{name} is {value!r}; give one of {', '.join(known)}")
    return str(value)


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise InvalidRequestError(f"{name} is {value!r}; give a whole number, at least 1")
    return value
