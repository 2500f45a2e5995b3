"""Where an ingest from Kafka is: the positions that its commits hold, beside what the broker has.

A position is the offset of the next message to read, as the client tells it. Offsets have holes
(transactions, compaction), so a difference of two of them is no number of rows; here it is reported
as what it is, at most so many messages. The ids of cluster and topics stand beside the positions: a
topic that was made again keeps its name and not its id.

Facts: Hudi Streamer keeps `topic,partition:offset,…` of one topic in the commit, under
`deltastreamer.checkpoint.key`, from table version 8 on under `streamer.checkpoint.key.v2`
(`StreamerCheckpointV1`, `StreamerCheckpointV2`, `KafkaOffsetGen.CheckpointUtils`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from hudi_table.model.job.checkpoint_text import parsed, written

POSITIONS_FORMAT = 3
"""Beside the formats of checkpoints of files."""
AWAY_MAX = 1000
"""Topics of which a place is kept though they are not there."""
OFFSET_MAX = (1 << 63) - 1
_STREAMER = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})(?P<offsets>(,\d{1,10}:\d{1,19})+)", re.ASCII)

Offsets = Mapping[int, int]
"""Partition → offset."""


@dataclass(frozen=True, slots=True)
class TopicPositions:
    """Of one topic: its id, "" where it is not known (as after a take-over from Hudi Streamer), and
    partition → next offset to read."""

    id: str
    offsets: Offsets


class SkipReason(StrEnum):
    """Why messages were passed over: the brokers deleted them, the partition ends before the
    checkpoint or is gone, the topic is another one of its name, or somebody set the checkpoint."""

    DELETED = "Deleted"
    CUT_BACK = "CutBack"
    PARTITION_GONE = "PartitionGone"
    RECREATED = "Recreated"
    SET = "Set"


@dataclass(frozen=True, slots=True)
class Skipped:
    """Messages that were passed over: offsets `start` to `stop` of a partition; -1 each where that
    is not known, or all partitions are meant."""

    reason: SkipReason
    topic: str
    partition: int = -1
    start: int = -1
    stop: int = -1

    def to_document(self) -> dict[str, Any]:
        """As a checkpoint keeps it."""
        found = {"reason": self.reason.value, "topic": self.topic}
        places = {"partition": self.partition, "from": self.start, "to": self.stop}
        return {**found, **{name: number for name, number in places.items() if number >= 0}}

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Skipped:
        """Raises ValueError, KeyError."""
        places = (int(raw.get(name, -1)) for name in ("partition", "from", "to"))
        return cls(SkipReason(raw["reason"]), str(raw["topic"]), *places)


@dataclass(frozen=True, slots=True)
class Positions:
    """What an ingest has read, as of the commit that holds this. `cluster`: the cluster's id, ""
    where it is not known. `newest`: the greatest timestamp of a message that was read, in
    milliseconds since 1970, -1 where none is known. `refused`: messages in all that went to the
    error table. `ended`: the end of a range that was read to it, "" else. `skipped`: what this very
    commit has passed over since the one before, for the brokers no longer had it. `away`: the
    positions in topics that are not there now, or that the ingest does not name now; those that
    have been away longest come first."""

    cluster: str
    topics: Mapping[str, TopicPositions]
    attempt: str = ""
    newest: int = -1
    refused: int = 0
    ended: str = ""
    skipped: tuple[Skipped, ...] = ()
    away: Mapping[str, TopicPositions] = field(default_factory=dict)

    def of(self, topic: str) -> TopicPositions | None:
        """Those in a topic, wherever it is."""
        return self.topics.get(topic) or self.away.get(topic)

    def without(self, topics: Iterable[str]) -> Mapping[str, TopicPositions]:
        """What is away where these topics are there."""
        there = frozenset(topics)
        left = [(name, each) for name, each in {**self.away, **self.topics}.items() if name not in there]
        return dict(left[-AWAY_MAX:])

    @property
    def recorded(self) -> Positions:
        """These positions once a commit holds them: what it passes over is told once."""
        return replace(self, skipped=()) if self.skipped else self

    @property
    def batch(self) -> str:
        """Name of these positions: the same for the same positions of the same topics."""
        places = sorted((t, p.id, sorted(p.offsets.items())) for t, p in self.topics.items())
        return hashlib.sha256(json.dumps([self.cluster, places]).encode()).hexdigest()[:20]

    def to_text(self) -> str:
        """The value in extra metadata: compact JSON."""
        topics = {name: _document(each) for name, each in sorted(self.topics.items())}
        document: dict[str, Any] = {
            "source": "Kafka",
            "batch": self.batch,
            "attempt": self.attempt,
            "cluster": self.cluster,
            "newest": self.newest,
            "topics": topics,
        }
        if self.refused:
            document["refused"] = self.refused
        if self.ended:
            document["ended"] = self.ended
        if self.skipped:
            document["skipped"] = [each.to_document() for each in self.skipped]
        if self.away:
            document["away"] = {name: _document(each) for name, each in self.away.items()}
        return written(POSITIONS_FORMAT, document)

    @classmethod
    def from_text(cls, text: str) -> Positions:
        """Parse. Raises ValueError for anything that `to_text` did not write."""

        def read(raw: Mapping[str, Any]) -> Positions:
            topics, away = (
                {str(name): _topic(each) for name, each in raw.get(key, {}).items()} for key in ("topics", "away")
            )
            refused, ended = int(raw.get("refused", 0)), str(raw.get("ended", ""))
            skipped = tuple(Skipped.of(each) for each in raw.get("skipped", ()))
            newest = int(raw["newest"])
            return cls(str(raw["cluster"]), topics, str(raw["attempt"]), newest, refused, ended, skipped, away)

        return parsed(text, POSITIONS_FORMAT, "positions in Kafka", read)


def _document(topic: TopicPositions) -> dict[str, Any]:
    return {"id": topic.id, "offsets": {str(p): topic.offsets[p] for p in sorted(topic.offsets)}}


def _topic(raw: Any) -> TopicPositions:
    return TopicPositions(str(raw["id"]), {int(p): checked_offset(o) for p, o in raw["offsets"].items()})


def checked_offset(raw: Any) -> int:
    """An offset of a document. Raises ValueError for what is none."""
    if isinstance(raw, bool) or not isinstance(raw, int) or not 0 <= raw <= OFFSET_MAX:
        raise ValueError(f"holds {raw!r}, which is no offset")
    return raw


def streamer_text(positions: Positions) -> str | None:
    """The positions as Hudi Streamer writes them, None unless they are of one topic with
    partitions."""
    if len(positions.topics) != 1:
        return None
    ((name, topic),) = positions.topics.items()
    if not topic.offsets:
        return None
    return ",".join([name, *(f"{partition}:{topic.offsets[partition]}" for partition in sorted(topic.offsets))])


def parse_streamer(text: str) -> tuple[str, dict[int, int]]:
    """(topic, partition → offset) of Hudi Streamer's text. Raises ValueError for another text."""
    found = _STREAMER.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"is {text[:80]!r}; give topic,partition:offset,… such as orders,0:120,1:98")
    pairs = [pair.split(":") for pair in found["offsets"][1:].split(",")]
    offsets = {int(partition): checked_offset(int(offset)) for partition, offset in pairs}
    if len(offsets) != len(pairs):
        raise ValueError(f"names a partition twice: {text[:80]!r}")
    return found["topic"], offsets


def of_streamer(text: str) -> Positions:
    """Positions of Hudi Streamer's text; it holds no ids. Raises ValueError for another text."""
    topic, offsets = parse_streamer(text)
    return Positions("", {topic: TopicPositions("", offsets)})


def commit_keys(key: str, positions: Positions, streamer_key: str) -> dict[str, str]:
    """What a commit records of positions: our own key, and Hudi Streamer's, which differs by
    the table's layout, where it can hold them."""
    theirs = streamer_text(positions)
    found = {key: positions.to_text()}
    if theirs is not None:
        found[streamer_key] = theirs
    return found


@dataclass(frozen=True, slots=True)
class TopicExtent:
    """What the broker has of a topic: its id; by partition the first offset there is, the end for
    `read_committed` (the last stable offset), and the end with what open transactions have
    written."""

    id: str
    begin: Offsets
    end: Offsets
    high: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Extent:
    """What a cluster has of the topics of an ingest at one moment."""

    cluster: str
    topics: Mapping[str, TopicExtent]

    @property
    def ends(self) -> Positions:
        """The ends, as positions."""
        return Positions(self.cluster, {n: TopicPositions(t.id, t.end) for n, t in self.topics.items()})

    def until(self, ends: Mapping[tuple[str, int], int]) -> Extent:
        """What of it lies before these offsets, by (topic, partition); of others nothing does."""
        return Extent(self.cluster, {name: _until(topic, name, ends) for name, topic in self.topics.items()})


def _until(topic: TopicExtent, name: str, ends: Mapping[tuple[str, int], int]) -> TopicExtent:
    def cut(offsets: Offsets) -> dict[int, int]:
        return {partition: min(offset, ends.get((name, partition), 0)) for partition, offset in offsets.items()}

    # What is behind the ends may have been read: it was not cut back.
    return TopicExtent(topic.id, cut(topic.begin), cut(topic.end), topic.high)


@dataclass(frozen=True, slots=True)
class Lost:
    """What can no more be read: a sentence about it, and at most how many messages, None where that
    cannot be known; and which they are."""

    why: str
    messages: int | None
    skipped: Skipped


def known_of(extent: Extent, positions: Positions | None, topic: str) -> TopicPositions | None:
    """The positions in a topic that are still of this topic of this cluster; None where there are
    none."""
    held = positions.of(topic) if positions is not None else None
    if positions is None or held is None or recreated(extent, positions, topic):
        return None
    return held


def recreated(extent: Extent, positions: Positions, topic: str) -> str:
    """Why the positions are of another topic of this name, "" if they are not."""
    held, there = positions.of(topic), extent.topics.get(topic)
    if held is None or there is None:
        return ""
    if positions.cluster and positions.cluster != extent.cluster:
        return f"the checkpoint is of cluster {positions.cluster}, and the brokers are of {extent.cluster}"
    if held.id and held.id != there.id:
        return f"topic {topic} was deleted and made again: its id was {held.id} and is {there.id}"
    return ""


def lost(extent: Extent, positions: Positions | None) -> tuple[Lost, ...]:
    """What an ingest that goes on from these positions would miss."""
    found: list[Lost] = []
    for topic, there in extent.topics.items():
        why = recreated(extent, positions, topic) if positions is not None else ""
        if why:
            found.append(Lost(why, None, Skipped(SkipReason.RECREATED, topic)))
            continue
        held = known_of(extent, positions, topic)
        for partition, offset in sorted(held.offsets.items()) if held is not None else ():
            begin = there.begin.get(partition)
            if begin is None:
                gone = Skipped(SkipReason.PARTITION_GONE, topic, partition, offset)
                found.append(Lost(f"topic {topic} has no partition {partition} any more", None, gone))
            elif offset < begin:
                why = f"partition {partition} of topic {topic} begins at offset {begin}, and the ingest is at {offset}"
                deleted = Skipped(SkipReason.DELETED, topic, partition, offset, begin)
                found.append(Lost(why, begin - offset, deleted))
            elif offset > max(there.high.get(partition, 0), there.end[partition]):
                end = max(there.high.get(partition, 0), there.end[partition])
                why = f"partition {partition} of topic {topic} ends at offset {end}, and the ingest is at {offset}: it was cut back"
                found.append(Lost(why, None, Skipped(SkipReason.CUT_BACK, topic, partition, offset)))
    return tuple(found)


def words_of(losses: Iterable[Lost]) -> str:
    """Losses as one sentence, with how many messages they are."""
    found = list(losses)
    total = sum(each.messages for each in found if each.messages is not None)
    unknown = any(each.messages is None for each in found)
    many = f"at most {total:,} messages are lost" if not unknown else "an unknown number of messages is lost"
    if unknown and total:
        many += f", and {total:,} at most besides"
    more = f", and {len(found) - 3} more" if len(found) > 3 else ""
    return f"{many}: {'; '.join(each.why for each in found[:3])}{more}"


def behind(extent: Extent, positions: Positions | None) -> int | None:
    """At most so many messages wait; None before the first commit, when it depends on where the
    ingest begins."""
    return None if positions is None else sum(count for _, count in unread(extent, positions).values())


def unread(extent: Extent, positions: Positions) -> dict[tuple[str, int], tuple[int, int]]:
    """Of each (topic, partition) the first offset that was not read and is there, and at most how
    many messages wait from it on."""
    found = {}
    for topic, there in extent.topics.items():
        held = known_of(extent, positions, topic)
        for partition, end in there.end.items():
            begin = there.begin.get(partition, 0)
            at = max(begin, held.offsets.get(partition, begin) if held is not None else begin)
            found[topic, partition] = at, max(0, end - at)
    return found
