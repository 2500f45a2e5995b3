"""How late a table is behind a stream: one record of each shard is read, the next behind its
position.

What a read costs is a fifth of what AWS allows of a shard in a second, so no more shards are asked
than a bound: those first that were read least lately.
"""

from __future__ import annotations

import contextvars
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from hudi_table.model.job.lag import PartitionLag
from hudi_table.model.job.shards import ShardPosition, ShardPositions, StreamLag, begun
from hudi_table.sources.kinesis.settings import KinesisSettings
from hudi_table.sources.kinesis.stream import IteratorExpiredError, Stream, ThrottledError, millis
from hudi_table.table.store import threads
from hudi_table.table.store.at_once import REQUESTS_AT_ONCE
from hudi_table.table.store.ports import Clock

SHARDS_MAX = 50


def lag_of(settings: KinesisSettings, credentials: Mapping[str, str], held: ShardPositions, clock: Clock) -> StreamLag:
    """Since when records wait that arrived behind these positions, and how long the stream keeps
    them. Raises what `Stream` does."""
    found = _found(settings, credentials, held, clock)
    told = found.since.values()
    since = [each for each in told if each is not None and each >= 0]
    return StreamLag(found.kept, min(since, default=None), sum(each is None for each in told))


def lags_of(
    settings: KinesisSettings, credentials: Mapping[str, str], held: ShardPositions, clock: Clock
) -> list[PartitionLag]:
    """The same of every shard. How many records wait no stream tells, but where none does."""
    found = _found(settings, credentials, held, clock)
    lags = []
    for name, at in sorted(found.at.items()):
        since = -1 if at.ended else found.since.get(name)
        waits = since is None or since >= 0
        none, oldest = None if waits else 0, since if since is not None and since >= 0 else None
        lags.append(PartitionLag(settings.stream, name, at.ended or at.after or None, None, none, none, oldest))
    return lags


@dataclass(frozen=True, slots=True)
class _Found:
    """Positions in the shards that there are; since when records wait in those that may be read: in
    milliseconds since 1970, -1 where none does, None where that is not known."""

    kept: int
    at: Mapping[str, ShardPosition]
    since: Mapping[str, int | None]


def _found(settings: KinesisSettings, credentials: Mapping[str, str], held: ShardPositions, clock: Clock) -> _Found:
    stream = Stream(settings, credentials)
    found = stream.extent()
    at = begun(found, held, moment=-1, latest=False, attempt="").shards
    names = sorted(found.readable(at), key=lambda name: at[name].time)
    asked = names[:SHARDS_MAX]
    since: dict[str, int | None] = dict.fromkeys(names)
    if asked:
        calls = [partial(_waits_since, stream, name, at[name], clock) for name in asked]
        pool = threads.pool(min(len(calls), REQUESTS_AT_ONCE), "hudi-kinesis")
        try:
            futures = [pool.submit(contextvars.copy_context().run, call) for call in calls]
            since |= zip(asked, [future.result() for future in futures], strict=True)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return _Found(found.kept, at, since)


def _waits_since(stream: Stream, name: str, at: ShardPosition, clock: Clock) -> int | None:
    """When the next record of a shard arrived, in milliseconds since 1970, -1 if there is none;
    None where the shard had no read left for us."""
    try:
        read = stream.read(stream.iterator(name, at), 1)
    except (ThrottledError, IteratorExpiredError):
        return None
    if read.records:
        return millis(read.records[0]["ApproximateArrivalTimestamp"])
    return millis(clock.now()) - read.behind if read.behind else -1
