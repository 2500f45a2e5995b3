"""What keeps a table whole while it is brought to another version: a note that every listing shows,
and the right of the one process that made it.

The note, `.hoodie/.upgrade/change.json`, is there before anything is rewritten, and goes last. Each
writer and planner lists `.hoodie/` after its claim: who finds the folder of the note gives way. So
nobody of ours works beside a change that has begun, and the decision in the chain ends whoever had
begun before (section 2.9 of `docs/explanation/commit-protocol.md`).

It names the attempt that made it. Whoever goes on after a crash makes it his own. A process that
has slept looks at the note before it writes or deletes: what lies in the place of a new timeline
may be the table by then.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field

from hudi_table.errors import (
    CorruptTableError,
    InvalidRequestError,
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
    UnsupportedTableError,
    WriteAbortedError,
)
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
    """A change that has begun: from which version to which, and by which attempt."""

    source: int
    target: int
    attempt: str = field(default_factory=lambda: str(uuid.uuid4()))

    def command(self, base_path: str) -> str:
        """By which it is ended."""
        verb = "upgrade" if self.target > self.source else "downgrade"
        return f"hudictl {verb} {base_path} --to {self.target} --yes --resume"

    def to_json(self) -> bytes:
        """What stands in the note."""
        return json.dumps({"from": self.source, "to": self.target, "attempt": self.attempt}).encode()


def noted_change(storage: Storage) -> VersionChange | None:
    """The change that has begun and not ended, None if there is none. Raises CorruptTableError."""
    try:
        document = parse_json(storage.get(NOTE))
        return VersionChange(int(document["from"]), int(document["to"]), str(document["attempt"]))
    except ObjectNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{NOTE} cannot be read: {error}; delete it if nobody is upgrading the table",
            base_path=storage.base_path,
            path=NOTE,
        ) from error


@dataclass(slots=True)
class ChangeRight:
    """The right to bring a table to another version: the note names this attempt, as was seen less
    than H/2 ago."""

    ctx: TableContext
    change: VersionChange
    seen: float

    @classmethod
    def taken(cls, ctx: TableContext, change: VersionChange, *, resume: bool) -> ChangeRight:
        """Make the note, or with `resume` make one of another process one's own, who must have
        ended. Raises InvalidRequestError that names the change that is there."""
        seen = ctx.clock.boot_seconds()
        if resume:
            retry.put(ctx.storage, NOTE, change.to_json())
        else:
            try:
                ctx.storage.put_if_absent(NOTE, change.to_json())
            except (ObjectExistsError, OutcomeUnknownError):
                other = noted_change(ctx.storage)
                if other is not None and other != change:
                    raise being_changed(ctx, other) from None
        right = cls(ctx, change, seen)
        right.prove()
        return right

    def prove(self) -> None:
        """Look at the note. Raises WriteAbortedError if it is another's, or gone."""
        begun = self.ctx.clock.boot_seconds()
        if noted_change(self.ctx.storage) != self.change:
            raise WriteAbortedError(
                f"another process brings the table from version {self.change.source} on, or has ended it; nothing more is done here",
                base_path=self.ctx.base_path,
            )
        self.seen = begun

    def renew_if_due(self) -> None:
        """Before each request that writes or deletes: look again if the last look is older than
        H/4."""
        if self.ctx.clock.boot_seconds() - self.seen > self.ctx.settings.renew_seconds:
            self.prove()

    def put(self, path: str, data: bytes) -> None:
        """Put an object under the right."""
        self.renew_if_due()
        retry.put(self.ctx.storage, path, data)

    def delete(self, path: str) -> None:
        """Delete an object under the right."""
        self.renew_if_due()
        retry.delete(self.ctx.storage, path)

    def end(self) -> None:
        """The change has ended, or is given up."""
        self.delete(NOTE)


def being_changed(ctx: TableContext, change: VersionChange) -> InvalidRequestError:
    """What is raised where a change has begun already."""
    return InvalidRequestError(
        f"the table is being brought from version {change.source} to {change.target}; if the process that began it has ended, end it: "
        f"{change.command(ctx.base_path)}",
        base_path=ctx.base_path,
    )


def refuse_beside_change(ctx: TableContext, timeline: Timeline) -> None:
    """Give way to a change of the version. Raises UnsupportedTableError that names it and what to
    do."""
    if FOLDER not in timeline.folders or ctx.changes_version:
        return
    change = noted_change(ctx.storage)
    if change is not None:
        raise UnsupportedTableError(being_changed(ctx, change).message, base_path=ctx.base_path)
