"""`startFrom` and `endAt` of topics: where reading begins, and where a range ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from hudi_operator.api.fields.patterns import LOCATION
from hudi_operator.api.schema import Rule, prop
from hudi_table.model.job.positions import parse_streamer

_MOMENT = "'^[0-9]{4}-[0-9]{2}-[0-9]{2}T.*(Z|[+-][0-9]{2}:[0-9]{2})$'"
_OFFSETS = "'^[A-Za-z0-9._-]+(,[0-9]{1,10}:[0-9]{1,19})+$'"


class StartPosition(StrEnum):
    """Where an ingest begins that has no checkpoint."""

    EARLIEST = "Earliest"
    LATEST = "Latest"
    TIMESTAMP = "Timestamp"
    OFFSETS = "Offsets"
    CONSUMER_GROUP = "ConsumerGroup"
    CONNECT_FILES = "ConnectFiles"
    TABLE = "Table"


class StartFallback(StrEnum):
    """Where partitions begin of which a consumer group has committed no offset."""

    EARLIEST = "Earliest"
    LATEST = "Latest"


class EndPosition(StrEnum):
    """Where a range ends."""

    TIMESTAMP = "Timestamp"
    OFFSETS = "Offsets"


def _are_offsets(texts: tuple[str, ...]) -> bool:
    try:
        return len({parse_streamer(text)[0] for text in texts}) == len(texts)
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


MOMENT_RULES = (
    Rule(
        "(self.position == 'Timestamp') == has(self.timestamp)",
        "position Timestamp needs timestamp, and no other has one",
        "timestamp",
        lambda s: (s.position == StartPosition.TIMESTAMP) == (s.timestamp is not None),
    ),
    Rule(
        f"!has(self.timestamp) || self.timestamp.matches({_MOMENT})",
        "timestamp is a moment such as 2026-01-31T12:00:00Z",
        "timestamp",
        lambda s: s.timestamp is None or _is_moment(s.timestamp),
    ),
)
"""Of every beginning that may be a moment."""
_RULES = (
    *MOMENT_RULES,
    Rule(
        "(self.position == 'Offsets') == (size(self.offsets) > 0)",
        "position Offsets needs offsets, and no other has any",
        "offsets",
        lambda s: (s.position == StartPosition.OFFSETS) == bool(s.offsets),
    ),
    Rule(
        f"self.offsets.all(o, o.matches({_OFFSETS}))",
        "offsets are texts such as orders,0:120,1:98, one a topic, as Hudi Streamer keeps them",
        "offsets",
        lambda s: _are_offsets(s.offsets),
    ),
)
"""Of a beginning and of an end alike: positions of the two are equal as texts."""
_START_RULES = (
    Rule(
        "(self.position == 'ConsumerGroup') == has(self.group)",
        "position ConsumerGroup needs group, and no other has one",
        "group",
        lambda s: (s.position == StartPosition.CONSUMER_GROUP) == (s.group is not None),
    ),
    Rule(
        "!has(self.fallback) || self.position == 'ConsumerGroup'",
        "fallback belongs to position ConsumerGroup",
        "fallback",
        lambda s: s.fallback is None or s.position == StartPosition.CONSUMER_GROUP,
    ),
    Rule(
        "(self.position in ['ConnectFiles', 'Table']) == has(self.location)",
        "positions ConnectFiles and Table need location, and no other has one",
        "location",
        lambda s: (s.position in (StartPosition.CONNECT_FILES, StartPosition.TABLE)) == (s.location is not None),
    ),
    Rule(
        "!has(self.instant) || self.position == 'Table'",
        "instant belongs to position Table",
        "instant",
        lambda s: s.instant is None or s.position == StartPosition.TABLE,
    ),
)
"""Of a beginning alone."""


@dataclass(frozen=True, slots=True)
class StartFromSpec:
    """Where an ingest begins that has no checkpoint. Partitions and topics that come later are read
    from their beginning."""

    RULES: ClassVar[tuple[Rule, ...]] = (*_RULES, *_START_RULES)

    position: StartPosition = prop(
        "at which end, moment or offsets; where a consumer group has committed, the files of a Kafka Connect sink end, or the checkpoint of another table stands",
        StartPosition.EARLIEST,
    )
    timestamp: str | None = prop("messages of this moment and later, RFC 3339", None, max_length=40)
    offsets: tuple[str, ...] = prop(
        "of each topic partition:offset, …: the next to read, such as orders,0:120,1:98",
        (),
        max_items=16,
        item_max_length=4096,
    )
    group: str | None = prop(
        "of position ConsumerGroup: its name; nothing of it is changed", None, min_length=1, max_length=255
    )
    fallback: StartFallback | None = prop(
        "of position ConsumerGroup: where partitions begin of which it has committed nothing, Earliest if absent", None
    )
    location: str | None = prop(
        "of position ConnectFiles: folder of the files of Kafka Connect's HDFS sink, named topic+partition+start+end; of position Table: the other table, whose ingest has the same name, or is Hudi Streamer's of the same topic",
        None,
        pattern=LOCATION,
        max_length=1024,
    )
    instant: str | None = prop(
        "of position Table: the commit of that table whose checkpoint is taken, as hudictl timeline lists it; the newest that holds one if absent",
        None,
        pattern="^[0-9]{14}([0-9]{3})?$",
        max_length=17,
    )


class RangeBy(StrEnum):
    """What of a file lies in a range."""

    MODIFIED = "Modified"
    NAME = "Name"


@dataclass(frozen=True, slots=True)
class RangeSpec:
    """What an ingest of mode Backfill takes of files, a database, a stream or a table: from one
    place on to before another. The places are moments of a file's last change, or of a record's
    arrival in Kinesis (RFC 3339), or names below path, values of the column of jdbc.incremental, or
    instants of the other table by their completion."""

    until: str = prop("what lies there, and behind it, is not taken", min_length=1, max_length=1024)
    since: str | None = prop(
        "what lies there, and behind it, is; absent: from the first", None, min_length=1, max_length=1024
    )
    by: RangeBy = prop("of files: their last change, or their name", RangeBy.MODIFIED)

    @property
    def are_moments(self) -> bool:
        """Whether both ends are."""
        return _is_moment(self.until) and (self.since is None or _is_moment(self.since))


@dataclass(frozen=True, slots=True)
class EndAtSpec:
    """Where a range ends. What lies there, and behind it, is not read."""

    RULES: ClassVar[tuple[Rule, ...]] = _RULES

    position: EndPosition = prop("at which moment or offsets")
    timestamp: str | None = prop("messages of this moment and later are not read, RFC 3339", None, max_length=40)
    offsets: tuple[str, ...] = prop(
        "of each topic partition:offset, …: the first that is not read, such as orders,0:120,1:98; nothing is read of partitions that are not named",
        (),
        max_items=16,
        item_max_length=4096,
    )


def _has_range(source: Any) -> bool:
    if source.type == "Files":
        return source.notifications is None
    return source.type in ("Hudi", "Kinesis") or (source.jdbc is not None and source.jdbc.incremental is not None)


def is_bounded(source: Any) -> bool:
    """Whether the source of an ingest says where it ends."""
    return source.range is not None or (source.kafka is not None and source.kafka.end_at is not None)


RANGE_RULES = (
    Rule(
        "!has(self.range) || (self.type == 'Files' && !has(self.notifications)) || self.type in ['Hudi', 'Kinesis'] || (has(self.jdbc) && has(self.jdbc.incremental))",
        "range belongs to type Files without notifications, Kinesis, Hudi, or Jdbc with incremental: Kafka has kafka.endAt, others have no range",
        "range",
        lambda s: s.range is None or _has_range(s),
    ),
    Rule(
        "!has(self.range) || self.range.by != 'Name' || self.type == 'Files'",
        "range.by Name belongs to type Files",
        "range",
        lambda s: s.range is None or s.range.by is not RangeBy.NAME or s.type == "Files",
    ),
    Rule(
        f"!has(self.range) || !(self.type in ['Files', 'Kinesis']) || self.range.by != 'Modified' || (self.range.until.matches({_MOMENT}) && (!has(self.range.since) || self.range.since.matches({_MOMENT})))",
        "of files and Kinesis range.since and range.until are moments such as 2026-01-31T12:00:00Z, or by: Name says that they are names",
        "range",
        lambda s: (
            s.range is None or s.type not in ("Files", "Kinesis") or s.range.by is RangeBy.NAME or s.range.are_moments
        ),
    ),
    Rule(
        "!has(self.range) || !has(self.kinesis) || self.kinesis.startFrom.position == 'TrimHorizon'",
        "range.since says where a range of Kinesis begins: leave kinesis.startFrom out",
        "range",
        lambda s: s.range is None or s.kinesis is None or s.kinesis.start_from.position == "TrimHorizon",
    ),
    Rule(
        "!has(self.range) || !has(self.hudi) || (self.hudi.deletes != 'Delete' && self.hudi.startFrom != 'Latest')",
        "a range goes with neither hudi.deletes Delete, for an old delete could take a newer row, nor hudi.startFrom Latest",
        "range",
        lambda s: s.range is None or s.hudi is None or (s.hudi.deletes != "Delete" and s.hudi.start_from != "Latest"),
    ),
)
"""Of a source, whose range they judge."""
