"""How far one partition of a topic, or one shard of a stream, is behind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Of one partition, or shard. `position`: what is read next of a topic, the record that was
    taken last of a stream, None where nothing was; `end`: where a topic ends. `rows`: at most so
    many messages wait, `bytes`: about how many these are; `oldest`: when the oldest of them came,
    `newest`: the greatest timestamp in the partition, in milliseconds since 1970. None is what is
    not known, or is not there."""

    stream: str
    partition: str
    position: str | None = None
    end: str | None = None
    rows: int | None = None
    bytes: int | None = None
    oldest: int | None = None
    newest: int | None = None
