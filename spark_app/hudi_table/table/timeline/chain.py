"""The decision chain `.hoodie/.txn/<n>.json`: listing, reading and appending entries.

One exclusive create decides; nobody skips a slot unread. See `docs/explanation/commit-protocol.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_table.errors import CorruptTableError, ObjectExistsError, ObjectNotFoundError, OutcomeUnknownError
from hudi_table.model.digits import whole
from hudi_table.model.names import CHAIN
from hudi_table.model.timeline.chain import ChainEntry, Kind, entry_path, sequence_of
from hudi_table.model.timeline.instants import Instant
from hudi_table.table.store import retry
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.context import TAIL_AGE_SECONDS_MAX, ChainTail, TableContext

PAGE = 1_000
"""Objects that a store lists in one request."""
_SLACK = 8
_HINT = f"{CHAIN}/hint"


def read_tail(ctx: TableContext) -> ChainTail:
    """LIST the chain's end and GET its last entry."""
    seen = ctx.clock.boot_seconds()
    numbers = _newest(ctx)
    if not numbers:
        tail = ChainTail(0, "", seen)
    else:
        entry = get_entry(ctx, numbers[-1])
        if entry is None:
            path = entry_path(numbers[-1])
            raise ObjectNotFoundError(f"chain entry {path} was listed and is gone", base_path=ctx.base_path, path=path)
        tail = ChainTail(numbers[-1], entry.max_instant, seen)
    ctx.tail = tail
    return tail


def known_tail(ctx: TableContext) -> ChainTail:
    """The tail that this process remembers, if it is younger than H/2 (and than a day), else a
    fresh one.

    A remembered tail is safe: creating the next slot proves that nobody decided anything since. And
    what was decided since is on the timeline still, as it is not archived before it is older than
    H: so a snapshot tells whether it holds it.
    """
    tail = ctx.tail
    limit = min(TAIL_AGE_SECONDS_MAX, ctx.settings.quarantine_seconds / 2)
    if tail is not None and ctx.clock.boot_seconds() - tail.seen_boot_seconds < limit:
        return tail
    return read_tail(ctx)


def get_entry(ctx: TableContext, sequence: int) -> ChainEntry | None:
    """Entry number `sequence`, or None if the slot is free. Raises CorruptTableError for other
    bytes."""
    known = ctx.entries.get(sequence)
    if known is not None:
        return known
    path = entry_path(sequence)
    try:
        data = ctx.storage.get(path)
    except ObjectNotFoundError:
        return None
    try:
        entry = ChainEntry.from_json(data)
    except ValueError as error:
        raise CorruptTableError(
            f"chain entry {path} cannot be read: {error}", base_path=ctx.base_path, path=path
        ) from error
    ctx.entries[sequence] = entry
    return entry


def put_entry(ctx: TableContext, sequence: int, entry: ChainEntry) -> None:
    """Create the slot exclusively. Raises ObjectExistsError or OutcomeUnknownError: then read the
    slot."""
    ctx.storage.put_if_absent(entry_path(sequence), entry.to_json())
    ctx.entries[sequence] = entry


def append_abort(ctx: TableContext, tail: ChainTail, instant: str) -> bool:
    """Try to decide, right behind the tail, that an instant is no more. False: read the chain
    again, the slot's content decides and not this request's reply."""
    entry = ChainEntry(Kind.ABORT, instant, "recovery", max_instant=max(tail.max_instant, instant))
    try:
        put_entry(ctx, tail.sequence + 1, entry)
    except (ObjectExistsError, OutcomeUnknownError):
        return False
    return True


def entries_after(ctx: TableContext, sequence: int) -> list[tuple[int, ChainEntry]]:
    """All entries after number `sequence`, by a fresh listing, in order."""
    found = []
    for number in _listed(ctx, sequence):
        entry = get_entry(ctx, number)
        if entry is not None:
            found.append((number, entry))
    return found


def find_decision(ctx: TableContext, instant: str, upto: int) -> tuple[int, ChainEntry] | None:
    """`find_decisions` of one instant: its entry, or None."""
    return find_decisions(ctx, [instant], upto).get(instant)


def find_decisions(ctx: TableContext, instants: Iterable[str], upto: int) -> dict[str, tuple[int, ChainEntry]]:
    """Of each instant that has one the entry that decides it (its last commit or abort), or its
    last plan, among the entries up to number `upto`.

    Goes backwards, once for all, and stops where the chain's running maximum is below the oldest of
    them: an entry is appended after its instant was drawn, so older entries cannot hold it.
    """
    decisions: dict[str, tuple[int, ChainEntry]] = {}
    wanted = set(instants)
    oldest = min(wanted, default="")
    for number in range(upto, 0, -1):
        entry = get_entry(ctx, number) if wanted else None
        if entry is None:
            break
        if entry.instant in wanted:
            if entry.kind is Kind.PLAN:
                decisions.setdefault(entry.instant, (number, entry))
            else:
                decisions[entry.instant] = (number, entry)
                wanted.discard(entry.instant)
                oldest = min(wanted, default="")
        if entry.max_instant < oldest:
            break
    return decisions


def unchained(ctx: TableContext, instants: Iterable[Instant], upto: int) -> Iterator[Instant]:
    """Those of completed instants that the chain up to number `upto` did not decide: another
    engine's."""
    instants = tuple(instants)
    decisions = find_decisions(ctx, (instant.time for instant in instants), upto)
    for instant in instants:
        decision = decisions.get(instant.time)
        # Of a plan of ours that another engine executes the chain has the plan alone.
        if decision is None or (decision[1].kind is Kind.PLAN and decision[1].name != instant.file_name):
            yield instant


def entries_of(ctx: TableContext, time: str, upto: int) -> Iterator[tuple[int, ChainEntry]]:
    """All entries of an instant up to number `upto`, the newest first."""
    for number in range(upto, 0, -1):
        entry = get_entry(ctx, number)
        if entry is None:
            return
        if entry.instant == time:
            yield number, entry
        if entry.max_instant < time:
            return


def find_commit(ctx: TableContext, instant: Instant, upto: int) -> ChainEntry | None:
    """The entry that decided a write of this instant, whatever was decided behind it; None where
    there is none up to number `upto`, and for the execution of a plan."""
    found: ChainEntry | None = None
    for number in range(upto, 0, -1):
        entry = get_entry(ctx, number)
        if entry is None or entry.max_instant < instant.time:
            break
        if entry.instant != instant.time or not entry.is_of(instant):
            continue
        if entry.is_plan_of_instant:
            return None
        if entry.kind is Kind.COMMIT:
            found = entry
    return found


def write_hint(ctx: TableContext, sequence: int) -> None:
    """Note a number near the chain's end, for processes that know none. Nothing depends on it: a
    false one costs a listing."""
    retry.put(ctx.storage, _HINT, str(sequence).encode())


def _newest(ctx: TableContext) -> list[int]:
    """Numbers of the chain's last entries, without those long before them: a chain keeps some days
    of entries.

    An entry that is listed is followed by all later ones, so whatever is listed after any number
    ends with the tail.
    """
    known = ctx.tail.sequence if ctx.tail is not None else 0
    if not known:
        first = ctx.storage.list(CHAIN, limit=PAGE)
        if len(first) < PAGE - _SLACK:
            return _numbers(first, 0)
        known = _hint(ctx)
    found = _listed(ctx, known - 1) if known > 1 else []
    return found or _listed(ctx, 0)


def _hint(ctx: TableContext) -> int:
    try:
        text = ctx.storage.get(_HINT).decode("ascii", "replace")
    except ObjectNotFoundError:
        return 0
    return whole(text) or 0


def _listed(ctx: TableContext, after: int) -> list[int]:
    start = entry_path(after) if after else None
    return _numbers(ctx.storage.list(CHAIN, start_after=start), after)


def _numbers(infos: list[ObjectInfo], after: int) -> list[int]:
    numbers = (sequence_of(info.path) for info in infos)
    return sorted(n for n in numbers if n is not None and n > after)
