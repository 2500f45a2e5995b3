"""How long brokers keep what an ingest has not read, and about how many bytes that is.

Facts (Kafka's `UnifiedLog`, `deleteRetentionMsBreachedSegments` and
`deleteRetentionSizeBreachedSegments`): a segment is deleted once its greatest timestamp is older
than `retention.ms`, and the oldest ones while what is left is no smaller than `retention.bytes`. So
this is about the earliest moments: the last message of a segment keeps all others of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a topic keeps messages, in milliseconds, and how many bytes of a partition; None
    where it keeps all."""

    millis: int | None = None
    bytes: int | None = None

    @property
    def bound(self) -> bool:
        """Whether anything is ever deleted."""
        return self.millis is not None or self.bytes is not None


@dataclass(frozen=True, slots=True)
class Unread:
    """What waits in a partition: at most so many messages, the timestamp of the oldest, in
    milliseconds since 1970, and the mean size of the first of them in bytes."""

    topic: str
    partition: int
    messages: int
    oldest: int
    size: float


@dataclass(frozen=True, slots=True)
class Left:
    """For how many seconds at least the oldest message is kept, and which part of the limit that
    is, 0 to 1."""

    seconds: float
    part: float


@dataclass(frozen=True, slots=True)
class Retention:
    """What topics keep, and what waits in their partitions; `silent`: partitions that delete and
    did not tell what waits there."""

    limits: Mapping[str, Limits]
    unread: tuple[Unread, ...] = ()
    silent: int = 0


def bytes_of(unread: Iterable[Unread], messages: int) -> int | None:
    """About how many bytes `messages` are that wait, of which these partitions told; None where
    none did.

    An estimate: a partition counts with the mean of its first messages, before compression, and one
    that did not tell with the mean of those that did.
    """
    told = list(unread)
    count = sum(each.messages for each in told)
    if not count:
        return None if messages else 0
    return round(sum(each.messages * each.size for each in told) * messages / count)


def left_of(waits: Unread, limits: Limits, now: int) -> Left | None:
    """When the oldest message that waits in a partition can be deleted, by time or by size,
    whichever comes first; None where neither deletes it. `now`: in milliseconds since 1970.

    Of size it is an estimate: messages come as fast as those that wait did, and are as large as the
    first of them, before compression. Timestamps of the future do not tell how fast they come.
    """
    found = []
    if limits.millis is not None:
        kept = max(0.0, (waits.oldest + limits.millis - now) / 1000)
        found.append(Left(kept, min(1.0, kept / max(0.001, limits.millis / 1000))))
    if limits.bytes is not None:
        room = max(0.0, limits.bytes - waits.messages * waits.size)
        age = max(1.0, (now - waits.oldest) / 1000) if waits.oldest <= now else math.inf
        coming = waits.messages * waits.size / age
        if waits.messages * waits.size:
            found.append(Left(room / coming if coming else math.inf, room / max(1, limits.bytes)))
    if not found:
        return None
    return Left(min(each.seconds for each in found), min(each.part for each in found))
