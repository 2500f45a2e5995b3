"""The archive of a table in the form of another version. What is in both archives, or on the
timeline yet, is brought over once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import pyarrow as pa

from hudi_table.codec.archive_entries import Entry, encode_entries
from hudi_table.codec.lsm_entries import LSM_SCHEMA, read_lsm_entries
from hudi_table.errors import CorruptTableError
from hudi_table.model.table.layouts import Archive, Layout
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant, State, comparable_time
from hudi_table.services.archiving.bodies import bodies_of
from hudi_table.services.archiving.logs import archive_file
from hudi_table.services.archiving.lsm import add_rows
from hudi_table.services.archiving.policy import DEFAULT_BATCH
from hudi_table.services.archiving.records import completed_entry
from hudi_table.table.timeline.archived import archive_folder, archived_entries, commit_of, instant_of
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import encode_commit, encode_record
from hudi_table.table.timeline.lsm import begin_archive, read_manifest
from hudi_table.table.timeline.timeline import Timeline

_REPORTS = {
    "clean": ("hoodieCleanMetadata", "HoodieCleanMetadata"),
    "rollback": ("hoodieRollbackMetadata", "HoodieRollbackMetadata"),
    "savepoint": ("hoodieSavePointMetadata", "HoodieSavepointMetadata"),
}
_PLANS = {
    "clean": ("hoodieCleanerPlan", "HoodieCleanerPlan"),
    "compaction": ("hoodieCompactionPlan", "HoodieCompactionPlan"),
    "logcompaction": ("hoodieCompactionPlan", "HoodieCompactionPlan"),
    "replacecommit": ("hoodieRequestedReplaceMetadata", "HoodieRequestedReplaceMetadata"),
}


def archived_times(ctx: TableContext) -> dict[str, str]:
    """When each archived instant completed, 17 digits, by its time: as its archive tells it, the
    time itself where that does not."""
    found: dict[str, str] = {}
    for entries in archived_entries(ctx):
        for entry in entries:
            if entry["actionState"] == State.COMPLETED.name:
                told = entry.get("completionTime") or entry.get("stateTransitionTime")
                found[entry["commitTime"]] = told or entry["commitTime"]
    return found


def bring_archive(
    old: TableContext, new: TableContext, active: Set[str], completions: Mapping[str, str], renew: Callable[[], None]
) -> int:
    """Write the archive of `old` as that of `new`. `active`: instants of the timeline;
    `completions`: when instants completed; `renew` is called before each file. Returns how many
    instants were brought over."""
    return _BRINGERS[new.layout.archive](old, new, active, completions, renew)


def _into_lsm(
    old: TableContext, new: TableContext, active: Set[str], completions: Mapping[str, str], renew: Callable[[], None]
) -> int:
    renew()
    begin_archive(new.storage, archive_folder(new))
    done: set[str] = set(active)
    for entries in archived_entries(old):
        rows = {
            row["instantTime"]: row
            for row in _rows(old, new.layout, entries, completions)
            if row["instantTime"] not in done
        }
        if rows:
            renew()
            add_rows(new, pa.Table.from_pylist(list(rows.values()), schema=LSM_SCHEMA))
            done |= rows.keys()
    return len(done - active)


def older_than_archived(timeline: Timeline, layout: Layout, archived: Iterable[str]) -> list[Instant]:
    """Completed instants of the timeline, no writes, that are older than an archived one, where
    nothing that stays may be (`services/archiving/plan.py`): oldest first."""
    newest = max(map(comparable_time, archived), default="")
    if not layout.tells_completions:
        return []
    kept = WRITE_ACTIONS | {Action.SAVEPOINT}
    return [i for i in timeline.completed if i.action not in kept and comparable_time(i.time) < newest]


def bring_older(
    old: TableContext, new: TableContext, timeline: Timeline, instants: Sequence[Instant], times: Mapping[str, str]
) -> None:
    """Into the archive of `new` from the timeline of `old`: their files keep what stands in
    them."""
    states = timeline.states()
    rows = []
    for some, bodies in bodies_of(old, timeline, instants):
        for instant in some:
            first, done = (states[instant.time, instant.grouped_action][at] for at in (0, -1))
            rows.append(
                {
                    "instantTime": instant.time,
                    "completionTime": times[instant.time],
                    "action": instant.grouped_action.value,
                    "metadata": bodies[done.file_name] or None,
                    "plan": bodies[first.file_name] or None if first.action is Action.CLEAN else None,
                    "version": 1,
                }
            )
    if rows:
        add_rows(new, pa.Table.from_pylist(rows, schema=LSM_SCHEMA))


def _rows(
    ctx: TableContext, layout: Layout, entries: list[Entry], completions: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    plans = {e["commitTime"]: _encoded(e, _PLANS) for e in entries if e["actionState"] != State.COMPLETED.name}
    for entry in entries:
        instant = instant_of(entry)
        if instant is None or not instant.completed:
            continue
        try:
            metadata = _encoded(entry, _REPORTS)
            if instant.action in WRITE_ACTIONS:
                metadata = encode_commit(layout, commit_of(entry))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(ctx, instant.time, error) from error
        yield {
            "instantTime": instant.time,
            "completionTime": completions[instant.time],
            "action": instant.grouped_action.value,
            "metadata": metadata,
            "plan": plans.get(instant.time),
            "version": 1,
        }


def _encoded(entry: Entry, kinds: Mapping[str, tuple[str, str]]) -> bytes | None:
    """The payload of an entry as the container that its timeline file was."""
    field, schema = kinds.get(entry["actionType"], ("", ""))
    record = entry.get(field)
    return encode_record(schema, record) if record else None


def _into_logs(
    old: TableContext, new: TableContext, active: Set[str], completions: Mapping[str, str], renew: Callable[[], None]
) -> int:
    del completions
    done = active | archived_times(new).keys()
    brought = 0
    # The oldest first, as Hudi numbers its files.
    for file in sorted(read_manifest(old.storage, archive_folder(old)).files, key=lambda file: file.span):
        path = f"{archive_folder(old)}/{file.name}"
        entries = read_lsm_entries(old.storage.get(path), path=path)
        found = {e["commitTime"]: e for e in entries if e["commitTime"] not in done and instant_of(e) is not None}
        made = [_entry(old, entry) for entry in found.values()]
        if made:
            # Each row becomes an entry: Hudi's downgrade drops every eleventh (measured).
            blocks = [encode_entries(made[at : at + DEFAULT_BATCH]) for at in range(0, len(made), DEFAULT_BATCH)]
            renew()
            archive_file(new, b"".join(blocks))
            done = done | found.keys()
            brought += len(made)
    return brought


def _entry(ctx: TableContext, entry: Entry) -> Entry:
    try:
        writes = entry["actionType"] in WRITE_ACTIONS
        return completed_entry(entry, commit_of(entry) if writes else None)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(ctx, entry["commitTime"], error) from error


def _unreadable(ctx: TableContext, time: str, error: Exception) -> CorruptTableError:
    return CorruptTableError(
        f"the archived instant {time} cannot be read: {error}", base_path=ctx.base_path, instant=time
    )


_BRINGERS = {Archive.LSM: _into_lsm, Archive.LOGS: _into_logs}
