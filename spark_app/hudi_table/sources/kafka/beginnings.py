"""Where others have come to, as the place where an ingest without a checkpoint begins: a consumer
group, a sink of Kafka Connect, or an ingest of another table. Nothing of theirs is changed.

Facts: the HDFS sink of Kafka Connect names its files `topic+partition+start+end.extension`, `end`
is the offset of the last message in it. Hudi's `KafkaConnectHdfsProvider` takes the greatest `end`
of a partition for the next offset, so one message of each comes twice; here the next one is behind
it. Hudi's `InitialCheckpointFromAnotherHoodieTimelineProvider` takes the newest checkpoint of
another table's commits; here a commit may be named, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hudi_table.errors import InvalidRequestError, ObjectNotFoundError
from hudi_table.model.job.positions import Extent, Positions, TopicPositions, checked_offset
from hudi_table.sources.checkpoints import HeldPositions, current_positions, positions_at
from hudi_table.sources.kafka.brokers import Brokers
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext

GIVEN = ("ConsumerGroup", "ConnectFiles", "Table")
"""Positions of `kafka.startFrom` that others have made."""
_FILE = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249})\+(?P<partition>\d{1,10})\+\d{1,19}\+(?P<end>\d{1,19})(\.[\w.]+)?", re.ASCII
)
_ENDLESS = re.compile(r"[A-Za-z0-9._-]{1,249}\+\d{1,10}\+\d{1,19}(\.[\w.]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """How what lies at another location is opened: a folder, or a table."""

    folder: Callable[[str], Storage]
    table: Callable[[str], TableContext]


def beginning_of(
    settings: KafkaSettings, ingest: str, found: Extent, brokers: Brokers, elsewhere: Elsewhere
) -> Positions:
    """Where an ingest begins whose `startFrom.position` is one of `GIVEN`. Raises
    InvalidRequestError where nothing is known of its topics there."""
    if settings.position == "ConsumerGroup":
        return _of_group(settings, found, brokers)
    if settings.position == "ConnectFiles":
        return _of_files(settings, found, elsewhere.folder(settings.location))
    return _of_table(settings, ingest, found, elsewhere.table(settings.location))


def _of_group(settings: KafkaSettings, found: Extent, brokers: Brokers) -> Positions:
    places = [(name, partition) for name, topic in found.topics.items() for partition in topic.end]
    offsets = brokers.committed(settings.group, places)
    if not offsets:
        raise InvalidRequestError(
            f"consumer group {settings.group!r} has committed no offset of topic {', '.join(sorted(found.topics))}: "
            "correct kafka.startFrom.group, or give another position"
        )
    topics: dict[str, dict[int, int]] = {}
    for (name, partition), offset in offsets.items():
        topics.setdefault(name, {})[partition] = offset
    return Positions("", {name: TopicPositions("", each) for name, each in topics.items()})


def _of_files(settings: KafkaSettings, found: Extent, folder: Storage) -> Positions:
    topics: dict[str, dict[int, int]] = {}
    others, endless = set(), ""
    try:
        for info in folder.list():
            name = info.path.rpartition("/")[2]
            match = _FILE.fullmatch(name)
            if match is None:
                endless = name if _ENDLESS.fullmatch(name) is not None else endless
                continue
            if match["topic"] not in found.topics:
                others.add(match["topic"])
                continue
            known = topics.setdefault(match["topic"], {})
            partition = int(match["partition"])
            known[partition] = max(known.get(partition, 0), _behind(int(match["end"]), name))
    except ObjectNotFoundError as error:
        raise InvalidRequestError(f"kafka.startFrom.location {settings.location} does not exist: correct it") from error
    if topics:
        return Positions("", {name: TopicPositions("", each) for name, each in topics.items()})
    said = f"no file at {settings.location} is of topic {', '.join(sorted(found.topics))}"
    if others:
        said += f", those there are of {', '.join(sorted(others)[:3])}"
    elif endless:
        said += f": {endless} names no end, as the files of the S3 sink do not"
    raise InvalidRequestError(
        f"{said}; files of Kafka Connect's HDFS sink are named topic+partition+start+end.extension: correct kafka.startFrom.location"
    )


def _behind(end: int, name: str) -> int:
    try:
        return checked_offset(end + 1)
    except ValueError as error:
        raise InvalidRequestError(f"the name of {name} {error}") from error


def _of_table(settings: KafkaSettings, ingest: str, found: Extent, table: TableContext) -> Positions:
    held: HeldPositions | None
    if settings.instant:
        held = positions_at(table, ingest, settings.only_topic, settings.instant)
    else:
        held = current_positions(table, ingest, settings.only_topic)
    if held is None:
        streamer = f", nor one of Hudi Streamer of topic {settings.only_topic}" if settings.only_topic else ""
        raise InvalidRequestError(
            f"no commit of the table at {settings.location} holds a checkpoint of an ingest {ingest!r}{streamer}: "
            "hudictl checkpoint show names what there is"
        )
    topics = {name: each for name, each in held.positions.topics.items() if name in found.topics}
    if not topics:
        there = ", ".join(sorted(held.positions.topics))
        raise InvalidRequestError(
            f"the checkpoint of the table at {settings.location} is of topic {there}, which is none of the source's"
        )
    return Positions(held.positions.cluster, topics, newest=held.positions.newest)
