"""Time travel: which instant a reader means, and whether its rows are still there.

Facts (Hudi 0.15.0): a time of 17 digits counts as it is, one of 14 reads to the end of its second (`999` follows); a
date means its midnight; what completed at or before the instant is read. Hudi itself reads on when a cleaner
has taken slices of that moment, and rows are missing without a word: we refuse instead, naming the clean.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from hudi_table.codec.avro_file import read_container
from hudi_table.errors import CorruptTableError, InvalidOptionError
from hudi_table.model.instants import Action, Instant, comparable_time, format_instant_time
from hudi_table.model.names import parse_base_file
from hudi_table.table.context import TableContext
from hudi_table.table.timeline import Timeline, body, has_archive
from hudi_table.table.view import FileSystemView, replaced_groups

_LENGTHS = (8, 10, 12, 14, 17)


def instant_of(value: str | date | datetime, timezone: str) -> str:
    """The 17-digit instant time that `value` names in a table whose timeline zone is `timezone` (`UTC` or `LOCAL`).

    Digits `yyyyMMdd[HH[mm[ss[SSS]]]]`, an ISO date or time, a date or a datetime. A moment without a zone is in the
    table's zone. Raises InvalidOptionError for anything else.
    """
    if isinstance(value, str) and (text := value.strip()).isdigit():
        return _from_digits(text)
    moment = _moment(value)
    if moment.tzinfo is not None:
        moment = moment.astimezone(None if timezone == "LOCAL" else UTC).replace(tzinfo=None)
    return format_instant_time(moment)


def _from_digits(text: str) -> str:
    padded = comparable_time(text) if len(text) == 14 else text.ljust(17, "0")
    try:
        if len(text) not in _LENGTHS:
            raise ValueError
        datetime.strptime(padded[:14], "%Y%m%d%H%M%S")
    except ValueError:
        raise _unreadable(text) from None
    return padded


def _moment(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            pass
    raise _unreadable(value)


def _unreadable(value: object) -> InvalidOptionError:
    return InvalidOptionError(
        f"as_of {value!r} is no moment: give 17 digits yyyyMMddHHmmssSSS or a shorter prefix (at least the day), "
        "an ISO date or time such as 2026-11-21T09:44:55Z, or a datetime"
    )


def check_retained(ctx: TableContext, timeline: Timeline, as_of: str) -> None:
    """Raise InvalidOptionError if files that a reader as of `as_of` needs are gone, or if nobody can tell any more."""
    cleans = [_Clean.load(ctx, i) for i in timeline.completed if i.action is Action.CLEAN]
    limit = comparable_time(as_of)
    start = timeline.start
    oldest = cleans[0] if cleans else None
    in_archive = start is not None and limit < comparable_time(start)
    cleaned_before = oldest is not None and limit < comparable_time(oldest.time) and not oldest.keeps(limit)
    if (in_archive or cleaned_before) and has_archive(ctx):
        raise InvalidOptionError(
            f"as_of {as_of} lies in the archived part of the timeline: which files were visible then is no longer known; "
            f"the active timeline starts at {start}",
            base_path=ctx.base_path,
        )
    gone = _missing(ctx, timeline, as_of, cleans)
    if gone is not None:
        raise InvalidOptionError(
            f"as_of {as_of} cannot be read: the clean {gone} deleted files that were current then; choose a later "
            f"instant (hudictl timeline shows them)",
            base_path=ctx.base_path,
        )


class _Clean:
    """One completed clean: its time, what it says it retains, and (partition, file id, instant) of what it deleted."""

    def __init__(self, time: str, retains: str, deleted: list[tuple[str, str, str]]) -> None:
        self.time = time
        self.retains = retains
        self.deleted = deleted

    def keeps(self, limit: str) -> bool:
        """Whether everything current at `limit` was retained (unknown under the file-version policy: no)."""
        return bool(self.retains) and limit >= comparable_time(self.retains)

    @classmethod
    def load(cls, ctx: TableContext, instant: Instant) -> _Clean:
        try:
            (record,) = read_container(body(ctx, instant))
            partitions = record["partitionMetadata"]
            retains = record["earliestCommitToRetain"]
            files = [(p, name.rpartition("/")[2]) for p in partitions for name in partitions[p]["successDeleteFiles"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptTableError(
                f"{instant.file_name} is no clean metadata: {error}", base_path=ctx.base_path, path=instant.file_name
            ) from error
        parsed = [(partition, parse_base_file(name)) for partition, name in files]
        return cls(instant.time, retains or "", [(p, b.file_id, b.instant) for p, b in parsed if b is not None])


def _missing(ctx: TableContext, timeline: Timeline, as_of: str, cleans: list[_Clean]) -> str | None:
    """The clean that deleted a slice which was the newest of its visible group at `as_of`."""
    limit = comparable_time(as_of)
    deleted = [
        (partition, file_id, comparable_time(instant), clean.time)
        for clean in cleans
        for partition, file_id, instant in clean.deleted
        if comparable_time(instant) <= limit
    ]
    if not deleted:
        return None
    hidden = replaced_groups(ctx, timeline.until(as_of))
    groups = FileSystemView(ctx, timeline, as_of).groups()
    kept = {(g.partition, g.file_id): comparable_time(g.latest.instant) for g in groups}
    gone = [
        (instant, clean)
        for partition, file_id, instant, clean in deleted
        if (partition, file_id) not in hidden and kept.get((partition, file_id), "") < instant
    ]
    return max(gone)[1] if gone else None
