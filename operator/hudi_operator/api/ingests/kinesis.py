"""`source.kinesis` of an ingest: a stream of Kinesis."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields.patterns import DURATION, ENDPOINT, QUANTITY
from hudi_operator.api.ingests.codecs import AvroSpec, JsonSpec, ProtobufSpec
from hudi_operator.api.ingests.databases import EVERY
from hudi_operator.api.ingests.ranges import MOMENT_RULES
from hudi_operator.api.schema import Rule, prop


class KinesisPosition(StrEnum):
    """Where an ingest begins that has no checkpoint."""

    TRIM_HORIZON = "TrimHorizon"
    LATEST = "Latest"
    TIMESTAMP = "Timestamp"


class KinesisColumn(StrEnum):
    """What of a record beside its data becomes a column `_kinesis_…`."""

    STREAM = "stream"
    SHARD = "shard"
    SEQUENCE = "sequence"
    TIMESTAMP = "timestamp"
    KEY = "key"


class KinesisLoss(StrEnum):
    """What is done where the stream no longer has what comes next."""

    STOP = "Stop"
    CONTINUE = "Continue"


@dataclass(frozen=True, slots=True)
class KinesisStartSpec:
    """Where an ingest begins that has no checkpoint."""

    RULES: ClassVar[tuple[Rule, ...]] = MOMENT_RULES

    position: KinesisPosition = prop(
        "the oldest record there is, those to come, or a moment", KinesisPosition.TRIM_HORIZON
    )
    timestamp: str | None = prop("records that arrived at this moment and later, RFC 3339", None, max_length=40)


@dataclass(frozen=True, slots=True)
class KinesisSpec:
    """A stream of Kinesis. It is read with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
    AWS_SESSION_TOKEN of the Secret of storage.credentialsSecretRef, else with what the pod's
    service account may."""

    stream: str = prop("its name", pattern="^[A-Za-z0-9_.-]+$", min_length=1, max_length=128)
    region: str | None = prop(
        "its region, such as eu-central-1; absent: storage.region", None, pattern="^[a-z0-9-]+$", max_length=64
    )
    endpoint: str | None = prop(
        "URL of its endpoint, where it is not AWS's own", None, pattern=ENDPOINT, max_length=512
    )
    start_from: KinesisStartSpec = prop("where an ingest begins that has no checkpoint", KinesisStartSpec)
    metadata: tuple[KinesisColumn, ...] = prop(
        "what becomes a column beside those of the data: _kinesis_sequence of sequence, and so on",
        (),
        max_items=5,
        unique=True,
    )
    max_rows: int = prop("records of one commit at the most", 1_000_000, minimum=1, maximum=100_000_000)
    max_bytes: str = prop("size of the records of one commit, about", "64Mi", pattern=QUANTITY, max_length=16)
    on_data_loss: KinesisLoss = prop(
        "where retention took what comes next, or may have: stop and say so, or go on with what there is",
        KinesisLoss.STOP,
    )
    every: str = prop("of mode Once: how often the stream is asked", EVERY, pattern=DURATION, max_length=32)
    json: JsonSpec | None = prop(
        "of format json: where the schemas are of messages that begin with the id of one; absent: messages are JSON alone",
        None,
    )
    avro: AvroSpec | None = prop("where the schemas of format avro are", None)
    protobuf: ProtobufSpec | None = prop("where the definitions of format protobuf are", None)
