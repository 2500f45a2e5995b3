"""What keeps writers away while a table is brought to another version: a note that every listing shows.

The note, `.hoodie/.upgrade/change.json`, is there before anything is rewritten, and goes last. Each writer and planner lists `.hoodie/` after its claim:
who finds the folder of the note gives way. So nobody of ours works beside a change that has begun, and the decision in the chain ends whoever had begun
before (section 2.9 of `docs/explanation/commit-protocol.md`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hudi_table.errors import CorruptTableError, ObjectNotFoundError, UnsupportedTableError
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import HOODIE
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

FOLDER = ".upgrade"
NOTE = f"{HOODIE}/{FOLDER}/change.json"


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A change that has begun: from which version to which."""

    source: int
    target: int

    @property
    def verb(self) -> str:
        """By which it is asked for."""
        return "upgrade" if self.target > self.source else "downgrade"


def note_change(storage: Storage, change: VersionChange) -> None:
    """Note it before it begins."""
    retry.put(storage, NOTE, json.dumps({"from": change.source, "to": change.target}).encode())


def noted_change(storage: Storage) -> VersionChange | None:
    """The change that has begun and not ended, None if there is none. Raises CorruptTableError."""
    try:
        document = parse_json(storage.get(NOTE))
        return VersionChange(int(document["from"]), int(document["to"]))
    except ObjectNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{NOTE} cannot be read: {error}; delete it if nobody is upgrading the table",
            base_path=storage.base_path,
            path=NOTE,
        ) from error


def forget_change(storage: Storage) -> None:
    """It has ended, or is given up."""
    retry.delete(storage, NOTE)


def refuse_beside_change(ctx: TableContext, timeline: Timeline) -> None:
    """Give way to a change of the version. Raises UnsupportedTableError that names it and what to do."""
    if FOLDER not in timeline.folders or ctx.changes_version:
        return
    change = noted_change(ctx.storage)
    if change is None:
        return
    raise UnsupportedTableError(
        f"the table is being brought from version {change.source} to {change.target}; if nobody is at it any more, end it: "
        f"hudictl {change.verb} {ctx.base_path} --to {change.target} --yes",
        base_path=ctx.base_path,
    )
