"""How fast an ingest goes on, from its newest commits: what they took between the first and the
last of them."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hudi_operator.plan.observed import Pace, Took
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.services.setting_checkpoints.audit import SET_KEY

COMMITS_MAX, WINDOW = 20, timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Step:
    """What one commit of an ingest tells: its attempt, the rows that it wrote, and of Kafka the sum
    of its offsets and of which partitions they are (`shape`, '' of other sources). `jumps`: it did
    not read its way there."""

    ingest: str
    attempt: str = ""
    rows: int = 0
    shape: str = ""
    offsets: int = 0
    jumps: bool = False
    event_times: tuple[int, int] | None = None


def step_of(ingest: str, text: str, commit: CommitMetadata) -> Step:
    """Of a commit that holds the checkpoint `text`; one that is damaged tells nothing, which its
    reader reports."""
    rows = sum(stat.num_inserts + stat.num_update_writes + stat.num_deletes for stat in commit.stats)
    jumps, times = SET_KEY in commit.extra_metadata, commit.event_times
    try:
        raw = json.loads(text)
        attempt = str(raw["attempt"])
        jumps = jumps or "skipped" in raw
        if raw.get("source") != "Kafka":
            return Step(ingest, attempt, rows, jumps=jumps, event_times=times)
        topics = {str(name): (str(each["id"]), each["offsets"]) for name, each in raw["topics"].items()}
        shape = json.dumps([raw["cluster"], [[n, i, sorted(o)] for n, (i, o) in sorted(topics.items())]])
        total = sum(int(offset) for _, offsets in topics.values() for offset in offsets.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Step(ingest)
    digest = hashlib.sha256(shape.encode()).hexdigest()[:12]
    return Step(ingest, attempt, rows, digest, total, jumps, times)


def pace_of(steps: Sequence[tuple[datetime, Step]], now: datetime) -> Pace:
    """Of the commits of one ingest with their moments, oldest first. What was taken is told of the
    `COMMITS_MAX` newest of the last hour, if there are two at least."""
    recent = [(at, step) for at, step in steps if now - at <= WINDOW][-COMMITS_MAX:]
    took = []
    for (before, old), (after, new) in itertools.pairwise(recent):
        count = new.offsets - old.offsets if new.shape else new.rows
        if not new.jumps and new.shape == old.shape and count >= 0:
            took.append(Took(before, (after - before).total_seconds(), count))
    times = [step.event_times for _, step in steps if step.event_times is not None]
    return Pace(
        tuple(took),
        times[-1][1] if times else None,
        max((most for _, most in times), default=None),
    )
