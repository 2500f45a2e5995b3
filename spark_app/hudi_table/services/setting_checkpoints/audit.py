"""What every checkpoint that somebody sets has alike: who set it in place of what, on a table that
has columns, and no row taken twice unless that is wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from hudi_table.errors import InvalidRequestError
from hudi_table.model.json_text import parse_json
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import Holds
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema

UPSERT = "UPSERT"
SET_KEY = "lakeops.checkpoint.set"
"""Of a commit that sets a checkpoint: who did so, and what it was before."""


@dataclass(frozen=True, slots=True)
class CheckpointSet:
    """Of an ingest: who has set its checkpoint, and the text in whose place, None of none."""

    ingest: str
    by: str
    before: str | None

    @classmethod
    def of(cls, extra: Mapping[str, str]) -> Self | None:
        """What stands in the extra metadata of a commit; None where nothing does that can be
        read."""
        try:
            found = parse_json(extra.get(SET_KEY, ""))
        except ValueError:
            return None
        if not isinstance(found, dict) or not {"ingest", "by"} <= found.keys():
            return None
        before = found.get("before")
        return cls(str(found["ingest"]), str(found["by"]), None if before is None else str(before))

    def to_extra(self) -> dict[str, str]:
        """What the commit says of it."""
        return {SET_KEY: json.dumps({"ingest": self.ingest, "by": self.by, "before": self.before})}


def checkpoint_sets(ctx: TableContext) -> dict[str, tuple[str, CheckpointSet]]:
    """Of each ingest whose checkpoint somebody has set, the instant of the newest such commit of
    the active timeline, and what it says."""
    commits = ((each.time, commit_metadata(ctx, each).extra_metadata) for each in load_timeline(ctx).commits)
    found = ((time, CheckpointSet.of(extra)) for time, extra in commits)
    return {each.ingest: (time, each) for time, each in found if each is not None}


def schema_of(ctx: TableContext) -> pa.Schema:
    """Of the commit without rows. Raises InvalidRequestError for a table that has no schema yet."""
    schema = table_schema(ctx, load_timeline(ctx))
    if schema is None:
        raise InvalidRequestError(
            "the table has no schema yet: it takes a checkpoint once a first write has given it one"
        )
    return schema


def check_back(ctx: TableContext, holds: Holds, back: str, *, again: bool) -> None:
    """Raise InvalidRequestError for a step back (`back` says which, \"\" for none) of an ingest
    that inserts, unless rows may be taken `again`."""
    operation = _operation_of(ctx, holds) if back and not again else UPSERT
    if operation != UPSERT:
        raise InvalidRequestError(
            f"{back}: the ingest's last commit is of operation {operation}, which does not look for keys, "
            "so rows that come again would be in the table twice; give --yes (again=True) if that is wanted"
        )


def _operation_of(ctx: TableContext, holds: Holds) -> str:
    """Hudi's name of what the ingest's newest commit did that took rows; of an archived one it is
    not known."""
    for instant in reversed(load_timeline(ctx).commits):
        found = commit_metadata(ctx, instant)
        if holds(found.extra_metadata) is not None and SET_KEY not in found.extra_metadata:
            return found.operation_type
    return "unknown"
