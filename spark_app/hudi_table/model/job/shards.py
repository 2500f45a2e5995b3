"""Where an ingest from Kinesis is: the positions in the shards of its stream that its commits hold.

A position is the sequence number of the last record that was taken. Sequence numbers grow and have
holes, so a difference of two of them is no number of records. The ARN and the moment at which the
stream was made stand beside the positions: a stream that was made again keeps its name alone.

Facts (Hudi 1.2's `KinesisOffsetGen`): Hudi Streamer keeps `stream,shard:last[@arrival][|end],…` in
the commit, under the key that Kafka's offsets have; `arrival` is in milliseconds since 1970, `end`
the last sequence number of a shard that is closed. (Kinesis developer guide:) an iterator behind a
record that retention took begins at the oldest there is, without a word.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hudi_table.model.digits import is_digits
from hudi_table.model.job.checkpoint_text import parsed, texts, written

SHARDS_FORMAT = "kinesis-1"
_PART = re.compile(r"(?P<shard>shardId-\d{1,32}):(?P<after>\d{1,128})(@(?P<time>\d{1,15}))?(\|(?P<end>\d{1,128}))?", re.ASCII)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ShardPosition:
    """Of one shard. `after`: sequence number of the last record that was taken, "" where none was:
    then reading begins at the moment `start`, or at the oldest record where that is -1. `time`:
    what arrived before this moment was taken, in milliseconds since 1970, -1 where it is not known.
    `ended`: the last sequence number of a closed shard of which everything was taken, "" else."""

    after: str = ""
    start: int = -1
    time: int = -1
    ended: str = ""


@dataclass(frozen=True, slots=True)
class ShardPositions:
    """What an ingest has read, as of the commit that holds this. `id`: ARN and making of the
    stream, "" where they are not known (as after a take-over from Hudi Streamer). `newest` and
    `refused`: as of positions in Kafka."""

    stream: str
    id: str
    shards: Mapping[str, ShardPosition]
    attempt: str = ""
    newest: int = -1
    refused: int = 0

    @property
    def batch(self) -> str:
        """Name of these positions: the same for the same positions of the same stream."""
        places = [(name, p.after, p.start, p.ended) for name, p in sorted(self.shards.items())]
        return hashlib.sha256(json.dumps([self.stream, self.id, places]).encode()).hexdigest()[:20]

    @property
    def seen(self) -> int:
        """What arrived before this moment was taken, of every shard; -1 where that is not known."""
        return min((each.time for each in self.shards.values() if not each.ended), default=-1)

    def to_text(self) -> str:
        """The value in extra metadata: compact JSON."""
        shards = {
            name: {key: value for key in ShardPosition.__slots__ if (value := getattr(each, key)) not in ("", -1)}
            for name, each in sorted(self.shards.items())
        }
        document: dict[str, Any] = {
            "batch": self.batch,
            "attempt": self.attempt,
            "stream": self.stream,
            "id": self.id,
            "newest": self.newest,
            "shards": shards,
        }
        if self.refused:
            document["refused"] = self.refused
        return written(SHARDS_FORMAT, document)

    @classmethod
    def from_text(cls, text: str) -> ShardPositions:
        """Parse. Raises ValueError for anything that `to_text` did not write."""

        def read(raw: Mapping[str, Any]) -> ShardPositions:
            shards = {str(name): _shard(each) for name, each in raw["shards"].items()}
            newest, refused = int(raw["newest"]), int(raw.get("refused", 0))
            stream, id_, attempt = texts(raw, "stream", "id", "attempt")
            return cls(stream, id_, shards, attempt, newest, refused)

        return parsed(text, SHARDS_FORMAT, "positions in Kinesis", read)


def _shard(raw: Any) -> ShardPosition:
    after, ended = str(raw.get("after", "")), str(raw.get("ended", ""))
    if (after and not is_digits(after)) or (ended and not is_digits(ended)):
        raise ValueError(f"holds {raw!r}, which is no position in a shard")
    return ShardPosition(after, int(raw.get("start", -1)), int(raw.get("time", -1)), ended)


def streamer_shards(positions: ShardPositions) -> str | None:
    """The positions as Hudi Streamer writes them, None where nothing was taken of any shard."""
    parts = []
    for name, each in sorted(positions.shards.items()):
        if each.ended:
            parts.append(f"{name}:{each.ended}|{each.ended}")
        elif each.after:
            parts.append(f"{name}:{each.after}" + (f"@{each.time}" if each.time >= 0 else ""))
    return ",".join([positions.stream, *parts]) if parts else None


def of_streamer_shards(text: str) -> ShardPositions:
    """Positions of Hudi Streamer's text; it holds no id. Raises ValueError for another text."""
    stream, *parts = text.strip().split(",")
    found = [_PART.fullmatch(part) for part in parts]
    if not found or _NAME.fullmatch(stream) is None or any(each is None for each in found):
        raise ValueError(f"is {text[:80]!r}; give stream,shard:sequence,… such as orders,shardId-000000000000:495")
    shards = {each["shard"]: _of_part(each) for each in found if each is not None}
    return ShardPositions(stream, "", shards)


def _of_part(part: re.Match[str]) -> ShardPosition:
    drained = part["end"] is not None and int(part["after"]) >= int(part["end"])
    return ShardPosition(part["after"], -1, int(part["time"] or -1), part["end"] if drained else "")


def commit_keys(key: str, positions: ShardPositions, streamer_key: str) -> dict[str, str]:
    """What a commit records of positions: our own key, and Hudi Streamer's, which differs by
    the table's layout, where it can hold them."""
    theirs, found = streamer_shards(positions), {key: positions.to_text()}
    if theirs is not None:
        found[streamer_key] = theirs
    return found


@dataclass(frozen=True, slots=True)
class ShardExtent:
    """A shard as the stream has it: those that it was split or merged from, and its last sequence
    number if it is closed, "" else."""

    parents: tuple[str, ...] = ()
    end: str = ""


@dataclass(frozen=True, slots=True)
class StreamExtent:
    """What a stream has at one moment. `kept`: for how many milliseconds it keeps a record."""

    stream: str
    id: str
    kept: int
    shards: Mapping[str, ShardExtent]

    def readable(self, positions: Mapping[str, ShardPosition]) -> list[str]:
        """The shards that may be read: those whose parents are drained, or gone."""
        return [
            name
            for name, shard in sorted(self.shards.items())
            if not positions[name].ended
            and all(parent not in self.shards or positions[parent].ended for parent in shard.parents)
        ]


@dataclass(frozen=True, slots=True)
class StreamLag:
    """Since when records wait behind a checkpoint. `kept`: for how many milliseconds the stream
    keeps a record; `oldest`: when the oldest that waits arrived, in milliseconds since 1970, None
    where none waits; `silent`: shards of which that is not known."""

    kept: int
    oldest: int | None = None
    silent: int = 0


def recreated(extent: StreamExtent, positions: ShardPositions) -> str:
    """Why the positions are of another stream of this name, "" if they are not."""
    if positions.id and positions.id != extent.id:
        return f"stream {extent.stream} was deleted and made again, or is another one: it was {positions.id} and is {extent.id}"
    return ""


def losses(extent: StreamExtent, positions: ShardPositions, now: int) -> list[str]:
    """What an ingest that goes on from these positions may miss. `now`: milliseconds since 1970."""
    why = recreated(extent, positions)
    if why:
        return [why]
    found = []
    for name, each in sorted(positions.shards.items()):
        if each.ended:
            continue
        if name not in extent.shards:
            found.append(f"shard {name} is gone, and was not read to its end")
        elif 0 <= each.time < now - extent.kept:
            found.append(
                f"shard {name} was read up to {(now - each.time) / 3_600_000:.1f} hours ago, and the stream keeps {extent.kept / 3_600_000:.0f} hours"
            )
    return found


def words_of(found: Iterable[str]) -> str:
    """Losses as one sentence."""
    several = list(found)
    more = f", and {len(several) - 3} more" if len(several) > 3 else ""
    return f"records may be lost: {'; '.join(several[:3])}{more}"


def begun(
    extent: StreamExtent, before: ShardPositions | None, *, moment: int, latest: bool, attempt: str
) -> ShardPositions:
    """Positions in every shard that there is. A shard that the checkpoint does not know is read
    from its beginning; without a checkpoint from `moment` on, -1 for the oldest, and of those that
    are closed nothing if only the `latest` are wanted."""
    held = before if before is not None and not recreated(extent, before) else None
    shards = {}
    for name, shard in extent.shards.items():
        known = held.shards.get(name) if held is not None else None
        if known is None and before is None:
            known = ShardPosition(start=moment, ended=shard.end if latest else "")
        known = known or ShardPosition()
        # One that ended under a reader's eyes tells its last number later.
        shards[name] = replace(known, ended=shard.end) if known.ended and shard.end else known
    counted = before or ShardPositions(extent.stream, extent.id, {})
    return replace(counted, stream=extent.stream, id=extent.id, shards=shards, attempt=attempt)
