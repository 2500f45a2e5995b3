"""What an ingest from Kafka has passed over, as the table's commits tell, and the ingests that read
it again, as far as the brokers still have it.

A commit tells what it passed over since the one before (`onDataLoss: Continue`), and one that set a
checkpoint what it was before. A step back takes out what is read again. Commits of releases that
did not record what they passed over tell nothing of it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.positions import Extent, Positions, Skipped, SkipReason, lost
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.services.setting_checkpoints.audit import CheckpointSet
from hudi_table.sources.checkpoints import current_positions, read_positions
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import archived_commits
from hudi_table.table.timeline.context import TableContext

NAME_MAX, TOPICS_MAX = 40, 16
KEPT_FIELDS = ("transform", "expectations", "onUndecodable", "maxErrorRatio", "schemaPolicy", "engine")
"""Of an ingest what shapes its rows: a Backfill beside it is to make the same ones."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages that are not in the table. `number`: the topic's id then. `after`, `by`: the commit
    before, and the one that passed them over, "" while none has; `since`, `until`: the greatest
    timestamp of a message in either, in milliseconds since 1970, -1 where none is known.
    `there`: the offsets that the brokers still have, None where nobody asked."""

    skipped: Skipped
    number: str
    after: str
    by: str
    since: int = -1
    until: int = -1
    there: tuple[int, int] | None = None

    @property
    def messages(self) -> int | None:
        """At most so many; None where that is not known."""
        known = self.skipped.start >= 0 and self.skipped.stop >= 0
        return self.skipped.stop - self.skipped.start if known else None


def gaps_of(ctx: TableContext, ingest: str) -> list[Gap]:
    """What the commits of an ingest have passed over, archived ones among them, oldest first.
    Raises InvalidRequestError where the ingest has no checkpoint, CorruptTableError."""
    gaps: list[Gap] = []
    before: tuple[str, Positions] | None = None
    for step in _steps(ctx, ingest):
        time, held = step.time, read_positions(ctx, ingest, step.time, step.text)
        after, known = before if before is not None else ("", Positions("", {}))
        found = list(held.skipped)
        if step.is_set:
            gaps = [left for gap in gaps for left in _unread(gap, held)]
            found += _set_past(known, held)
        for each in found:
            topic = known.topics.get(each.topic) or held.topics.get(each.topic)
            gaps.append(Gap(each, topic.id if topic is not None else "", after, time, known.newest, held.newest))
        before = time, held
    if before is None:
        raise InvalidRequestError(
            f"no commit holds a checkpoint of ingest {ingest!r}: hudictl checkpoint show names them"
        )
    return gaps


def standing_gaps(ctx: TableContext, ingest: str, extent: Extent) -> list[Gap]:
    """What the brokers no longer have of what comes next, and no commit has passed over yet."""
    last = current_positions(ctx, ingest, None)
    if last is None:
        return []
    held, found = last.positions, []
    for each in lost(extent, held):
        topic = held.topics.get(each.skipped.topic)
        found.append(Gap(each.skipped, topic.id if topic is not None else "", last.instant, "", held.newest))
    return found


def looked_up(gaps: Sequence[Gap], extent: Extent) -> list[Gap]:
    """With what the brokers still have of each: nothing of a topic that is gone, or another one."""
    return [replace(gap, there=_there(gap, extent)) for gap in gaps]


def backfills(ingest: Mapping[str, Any], gaps: Sequence[Gap]) -> list[dict[str, Any]]:
    """Ingests of mode Backfill, as a manifest has them, that read what is still there: of one
    partition one range each. `ingest`: the one that has passed it over."""
    layers: list[dict[str, dict[int, tuple[int, int]]]] = []
    for gap in gaps:
        if gap.there is None or gap.there[0] >= gap.there[1]:
            continue
        topic, partition = gap.skipped.topic, gap.skipped.partition
        free = (e for e in layers if partition not in e.get(topic, {}) and (topic in e or len(e) < TOPICS_MAX))
        layer = next(free, None)
        if layer is None:
            layers.append(layer := {})
        layer.setdefault(topic, {})[partition] = gap.there
    return [_backfill(ingest, layer) for layer in layers]


def _backfill(ingest: Mapping[str, Any], ranges: Mapping[str, Mapping[int, tuple[int, int]]]) -> dict[str, Any]:
    def at(end: int) -> dict[str, Any]:
        told = [
            ",".join([topic, *(f"{partition}:{places[partition][end]}" for partition in sorted(places))])
            for topic, places in sorted(ranges.items())
        ]
        return {"position": "Offsets", "offsets": told}

    source = dict(ingest["source"])
    kafka = {name: value for name, value in source["kafka"].items() if name != "topicPattern"}
    kafka |= {"topics": sorted(ranges), "startFrom": at(0), "endAt": at(1)}
    # Its checkpoint is found by its name: of other ranges it is another one, of the same it is not read twice.
    tail = f"-replay-{hashlib.sha256(json.dumps([at(0), at(1)]).encode()).hexdigest()[:8]}"
    kept = {name: ingest[name] for name in KEPT_FIELDS if name in ingest}
    name = str(ingest["name"])[: NAME_MAX - len(tail)].rstrip("-") + tail
    return {"name": name, "mode": "Backfill", "source": {**source, "kafka": kafka}, **kept}


@dataclass(frozen=True, slots=True)
class _Step:
    """A commit that holds a checkpoint: its instant, the text, and whether somebody set it."""

    time: str
    text: str
    is_set: bool


def _steps(ctx: TableContext, ingest: str) -> list[_Step]:
    """Of the commits that hold a checkpoint of the ingest, the oldest first."""
    key = key_of(ingest)
    commits = ((instant.time, commit_metadata(ctx, instant)) for instant in load_timeline(ctx).commits)
    found = {
        time: _Step(time, commit.extra_metadata[key], _is_set(commit.extra_metadata, ingest))
        for time, commit in itertools.chain(archived_commits(ctx), commits)
        if key in commit.extra_metadata
    }
    return sorted(found.values(), key=lambda step: comparable_time(step.time))


def _is_set(extra: Mapping[str, str], ingest: str) -> bool:
    found = CheckpointSet.of(extra)
    return found is not None and found.ingest == ingest


def _set_past(before: Positions, held: Positions) -> list[Skipped]:
    """What lies between the positions before and those that somebody has set further on."""
    return [
        Skipped(SkipReason.SET, topic, partition, before.topics[topic].offsets[partition], offset)
        for topic, place in sorted(held.topics.items())
        for partition, offset in sorted(place.offsets.items())
        if topic in before.topics and before.topics[topic].offsets.get(partition, offset) < offset
    ]


def _unread(gap: Gap, held: Positions) -> list[Gap]:
    """What is left of a gap where somebody has set the ingest back, before or into it."""
    topic, place = held.topics.get(gap.skipped.topic), gap.skipped
    at = topic.offsets.get(place.partition) if topic is not None else None
    if at is None or gap.messages is None or at >= place.stop:
        return [gap]
    return [replace(gap, skipped=replace(place, stop=at))] if at > place.start else []


def _there(gap: Gap, extent: Extent) -> tuple[int, int]:
    topic, place = extent.topics.get(gap.skipped.topic), gap.skipped
    if topic is None or (gap.number and topic.id != gap.number) or gap.messages is None:
        return 0, 0
    begin, end = topic.begin.get(place.partition), topic.end.get(place.partition)
    if begin is None or end is None:
        return 0, 0
    return max(begin, place.start), max(begin, min(end, place.stop))
