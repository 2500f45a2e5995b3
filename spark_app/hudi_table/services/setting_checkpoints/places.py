"""Setting where an ingest goes on, whatever its source: by Hudi Streamer's words of topics and
streams, and by words like those that are shown of the others."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from hudi_table.errors import InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import Checkpoint, SourceFile, advance, is_hidden, key_of
from hudi_table.model.job.custom import CustomMark
from hudi_table.model.job.marks import Mark
from hudi_table.model.job.query_mark import QueryMark
from hudi_table.model.job.upstream import Upstream
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.read.incremental import stable_commits
from hudi_table.services.ingesting import behind_held, commit_behind
from hudi_table.services.inline import ENABLED as SERVICES
from hudi_table.services.setting_checkpoints.audit import CheckpointSet, check_back, schema_of
from hudi_table.services.setting_checkpoints.positions import set_positions
from hudi_table.sources.checkpoints import AnyCheckpoint, Held, held_any
from hudi_table.sources.custom import POSITION_LENGTH_MAX
from hudi_table.sources.files.digests import store_digests
from hudi_table.sources.files.source import list_source
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import under
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.operations import WriteRequest
from hudi_table.write.result import CommitResult

STREAMS = ("Kafka", "Kinesis")
_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_BEFORE = "before "


@dataclass(frozen=True, slots=True)
class Sources:
    """How what a checkpoint speaks of is looked at: the folder of files, the other table. Each is
    None where nobody has said where it is."""

    folder: Callable[[], Storage] | None = None
    table: Callable[[], TableContext] | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked for, of an ingest whose checkpoint is `held`."""

    ctx: TableContext
    ingest: str
    text: str
    held: AnyCheckpoint | None
    sources: Sources

    @property
    def batch(self) -> str:
        """The name of the checkpoint, of what it replaces and by what."""
        before = self.held.to_text() if self.held is not None else "begin"
        return hashlib.sha256(f"set\n{before}\n{self.text}".encode()).hexdigest()[:20]

    def words(self, form: str) -> tuple[str, str]:
        """The first word, and the rest. Raises InvalidRequestError for another form than this."""
        first, _, rest = self.text.strip().partition(" ")
        if not first or not rest.strip():
            raise InvalidRequestError(f"the checkpoint {self.text!r} is not of the form {form}")
        return first, rest.strip()


def set_checkpoint(
    ctx: TableContext,
    ingest: str,
    text: str,
    *,
    by: str,
    again: bool = False,
    kind: str = "",
    sources: Sources | None = None,
) -> CommitResult:
    """Make an ingest go on at another place: a commit without rows holds it, and who set it in
    place of what.

    `kind`: the type of its source, where it has no checkpoint that tells it. `again`: rows may be
    taken a second time, though the ingest inserts them without looking for their keys. Raises
    InvalidRequestError for a text that is none of its source's, and for such a step back without
    `again`.
    """
    known = held_any(ctx, ingest)
    found = known[0] if known is not None else kind
    if kind and known is not None and kind != found:
        raise InvalidRequestError(f"the checkpoint of {ingest} is of type {found}, and not of type {kind}")
    if found in ("", *STREAMS):
        return set_positions(ctx, ingest, text, by=by, again=again)
    held = known[1] if known is not None else None
    asked = _Asked(ctx, ingest, text, held.checkpoint if held is not None else None, sources or Sources())
    checkpoint, back = _MAKERS[found](asked)
    check_back(ctx, under(key_of(ingest)), back, again=again)
    schema = schema_of(ctx)
    if isinstance(checkpoint, Checkpoint):
        before = asked.held if isinstance(asked.held, Checkpoint) else None
        checkpoint = store_digests(ctx, ingest, before, checkpoint)
    return _commit(asked, held, checkpoint.to_text(), by, schema.empty_table().to_reader())


def _commit(asked: _Asked, held: Held[AnyCheckpoint] | None, text: str, by: str, nothing: object) -> CommitResult:
    place = behind_held(asked.ingest, held)
    before = held.checkpoint.to_text() if held is not None else None
    request = WriteRequest(
        operation="upsert",
        options={
            "hoodie.write.set.null.for.missing.columns": "true",
            "hoodie.allow.empty.commit": "true",
            SERVICES: "false",
        },
        extra_metadata={key_of(asked.ingest): text, **CheckpointSet(asked.ingest, by, before).to_extra()},
        batch=place.batch,
        follows=place.follows,
    )
    return commit_behind(asked.ctx, nothing, request)


def _of_database(asked: _Asked) -> tuple[Mark, str]:
    """`COLUMN VALUE`. Its ingest upserts, so nothing is taken twice."""
    column, value = asked.words("COLUMN VALUE, such as updated_at 2026-01-31 12:00:00")
    held = asked.held if isinstance(asked.held, Mark) else None
    if held is not None:
        _check_column(held.column, column, "jdbc")
    _check_value(value, held.value if held is not None else "")
    # No state of the database has such a digest: the next run looks at what is there.
    return Mark(asked.batch, "", column, value, -1, ""), ""


def _of_statement(asked: _Asked) -> tuple[QueryMark, str]:
    """`COLUMN VALUE`, of the statement that the checkpoint is of."""
    column, value = asked.words("COLUMN VALUE, such as updated_at 2026-01-31 12:00:00")
    if not isinstance(asked.held, QueryMark):
        raise InvalidRequestError(
            f"{asked.ingest} has no checkpoint yet, and one of type Sql names its statement: let it run once, then set it"
        )
    _check_column(asked.held.column, column, "sql")
    _check_value(value, asked.held.value)
    return replace(asked.held, batch=asked.batch, attempt="", tables={}, value=value), ""


def _check_column(known: str, column: str, field: str) -> None:
    if not known:
        raise InvalidRequestError(
            f"the ingest reads all rows, if any has changed, so there is no place to go on at: {field}.incremental gives it one"
        )
    if known != column:
        raise InvalidRequestError(f"the ingest goes by column {known!r}, and not by {column!r}")


def _check_value(value: str, known: str) -> None:
    """Raises InvalidRequestError for what is neither a whole number nor a date or time, or another
    of these than the value that is known."""
    number = _NUMBER.fullmatch(value) is not None
    try:
        if not number:
            datetime.fromisoformat(value)
    except ValueError:
        raise InvalidRequestError(
            f"{value!r} is neither a whole number nor a date or time, such as 2026-01-31 12:00:00"
        ) from None
    if known and number is not (_NUMBER.fullmatch(known) is not None):
        raise InvalidRequestError(f"the checkpoint holds {known!r}, which is of another type than {value!r}")


def _of_table(asked: _Asked) -> tuple[Upstream, str]:
    """`[TABLE] INSTANT`: the newest commit of the other table that counts as taken."""
    if asked.sources.table is None:
        raise InvalidRequestError(
            "which commit that is only the other table tells: give its location (--of, hudi.location of the ingest)"
        )
    *names, instant = asked.text.split() or [""]
    above = asked.sources.table()
    if len(names) > 1 or (names and names[0] != above.config.name):
        raise InvalidRequestError(
            f"the table at {above.base_path} is called {above.config.name}, and not {' '.join(names)}"
        )
    stable = stable_commits(load_timeline(above))
    found = next((each for each in stable if each.time == instant), None)
    if found is None:
        raise InvalidRequestError(
            f"the timeline of the table at {above.base_path} has no completed commit {instant!r} that nothing pending can come before: "
            "hudictl timeline lists them"
        )
    held, back = asked.held, ""
    if isinstance(held, Upstream) and comparable_time(found.moment) < comparable_time(held.moment):
        back = f"{asked.ingest} has taken the commits up to {held.instant}, and {instant} lies before it"
    return Upstream(asked.batch, "", above.config.name, found.time, found.moment), back


def _of_package(asked: _Asked) -> tuple[CustomMark, str]:
    """`NAME POSITION`: what a position says only the package knows."""
    name, position = asked.words("NAME POSITION: the entry point, and its own text")
    if len(position) > POSITION_LENGTH_MAX:
        raise InvalidRequestError(
            f"the position has {len(position):,} characters, at most {POSITION_LENGTH_MAX:,} are kept"
        )
    held, back = asked.held, ""
    if isinstance(held, CustomMark):
        if held.source != name:
            raise InvalidRequestError(f"the checkpoint is of source {held.source!r}, and not of {name!r}")
        back = f"whether {position!r} lies before {held.position!r} only the package knows"
    return CustomMark(asked.batch, "", name, position), back


def _of_files(asked: _Asked) -> tuple[Checkpoint, str]:
    """`before MOMENT`: files that were last changed before it count as taken, the others wait."""
    moment = _moment(asked.text)
    if asked.sources.folder is None:
        raise InvalidRequestError("which files those are only their folder tells: give it (--of, path of the ingest)")
    there = [each for each in list_source(asked.sources.folder()) if each.size and not is_hidden(each.path)]
    taken = tuple(each for each in there if each.modified < moment)
    held = asked.held if isinstance(asked.held, Checkpoint) else None
    again = _again(held, there, taken)
    back = (
        f"{counted(again, 'file')} that {'is' if again == 1 else 'are'} in the table would wait again" if again else ""
    )
    checkpoint = advance(None, asked.ingest, "", taken, there)
    return replace(checkpoint, batch=asked.batch, files=()), back


def _again(held: Checkpoint | None, there: list[SourceFile], taken: tuple[SourceFile, ...]) -> int:
    known = held.consumed if held is not None else frozenset[int]()
    return len(known & ({each.digest for each in there} - {each.digest for each in taken}))


def _moment(text: str) -> datetime:
    """Raises InvalidRequestError for another text than `before` and a moment with its zone."""
    try:
        found = datetime.fromisoformat(text.strip().removeprefix(_BEFORE).strip())
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or not text.strip().startswith(_BEFORE):
        raise InvalidRequestError(
            f"the checkpoint {text!r} is not of the form before MOMENT, such as before 2026-01-31T12:00:00Z: files that were last changed "
            "before it count as taken"
        )
    return found


_Maker = Callable[[_Asked], tuple[Checkpoint | Mark | QueryMark | Upstream | CustomMark, str]]
_MAKERS: dict[str, _Maker] = {
    "Files": _of_files,
    "Jdbc": _of_database,
    "Sql": _of_statement,
    "Hudi": _of_table,
    "Custom": _of_package,
}
"""Of each type: the checkpoint, and how it goes back, \"\" where it does not."""
