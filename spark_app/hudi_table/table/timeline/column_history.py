"""Columns that were renamed, dropped or added by name: Hudi's schema-on-read history.

Facts (Hudi 0.15.0, table version 6; 1.0.2 and 1.1.1 alike, but for the names of files): a table
altered with schema evolution on keeps `.hoodie/.schema/<T>.schemacommit`, from 1.0 on
`<T>_<completion>.schemacommit`, JSON `{"schemas": [newest, …]}`; each schema has a `version_id`
(the instant that made it, 0 for the first) and fields with ids that survive renaming. Files are not
rewritten: a base file or a log block of instant I has the names of the newest version at or before
I.

Hudi takes a table for one without a history if its newest commit has no `latest_schema`, and looks
only at a history whose instant is a commit of the active timeline. So every commit saves it anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa

from hudi_table.errors import CorruptTableError, UnsupportedTableError
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import ALL_META_COLUMNS, HOODIE
from hudi_table.model.timeline.commits import LATEST_SCHEMA, CommitMetadata
from hudi_table.model.timeline.instants import WRITE_ACTIONS, comparable_time, parse_instant
from hudi_table.table.store import retry
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

SCHEMA_FOLDER = f"{HOODIE}/.schema"
_SUFFIX = ".schemacommit"
_Version = Mapping[int, Mapping[str, Any]]
_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True, slots=True)
class ColumnHistory:
    """Schema versions, oldest first: (instant or "0", {field id: field}). `today`: the instant
    whose names are asked for."""

    versions: tuple[tuple[str, _Version], ...]
    base_path: str = ""
    today: str | None = None

    @property
    def names(self) -> frozenset[str]:
        """The columns of today."""
        return frozenset(found["name"] for found in self._at(self.today).values())

    def stored_names(self, instant: str) -> dict[str, str | None]:
        """{name today: name in files of `instant`} where they differ: None if what they hold under
        that name is another column, which was dropped.

        Raises UnsupportedTableError if fields inside a struct were renamed between.
        """
        then, now = self._at(instant), self._at(self.today)
        held = {found["name"] for found in then.values()}
        names: dict[str, str | None] = dict.fromkeys(held - {found["name"] for found in now.values()})
        for number, found in now.items():
            name, old = found["name"], then.get(number)
            if old is None and name in held:
                names[name] = None
            elif old is not None and old["name"] != name:
                names[name] = old["name"]
            if old is not None and _nested_ids(old["type"]) - _nested_ids(found["type"]):
                raise UnsupportedTableError(
                    f"fields inside column {name!r} were renamed or dropped after {instant}, which is not supported; let "
                    "Hudi rewrite the table (a clustering with schema evolution on)",
                    base_path=self.base_path,
                )
        # Hudi finds its own columns by name, and not all versions need have them.
        return {name: old for name, old in names.items() if name not in ALL_META_COLUMNS}

    def changed_since(self, instant: str) -> frozenset[str]:
        """The columns of today that files of `instant` or later hold under another name, or hold
        another column under that name. Raises as `stored_names` does."""
        since = comparable_time(instant)
        times = [instant, *(time for time, _ in self.versions if comparable_time(time) > since)]
        return frozenset(name for time in times for name in self.stored_names(time))

    def _at(self, instant: str | None) -> _Version:
        return self.versions[_number((time for time, _ in self.versions), instant)][1]


def load_column_history(ctx: TableContext, timeline: Timeline, shown: Timeline | None = None) -> ColumnHistory | None:
    """The history of an altered table, None for all others: their listing shows no folder of it.
    The names of today are those of `shown`, by default those of `timeline`. Raises
    CorruptTableError."""
    found = _documents(ctx, timeline)
    newest = (timeline if shown is None else shown).last_commit
    versions = tuple((time, {each["id"]: each for each in document["fields"]}) for time, document in found)
    return ColumnHistory(versions, ctx.base_path, newest.time if newest else None) if versions else None


def stored_as(history: ColumnHistory | None, instant: str, names: Iterable[str]) -> dict[str, str | None]:
    """{name today: name in files of `instant`, None if they do not have the column}. Raises
    UnsupportedTableError as `stored_names` does."""
    differing = {} if history is None else history.stored_names(instant)
    return {name: differing.get(name, name) for name in names}


def under_todays_names(rows: _Rows, stored: Mapping[str, str | None]) -> _Rows:
    """What was read of a file by the names that `stored_as` tells, under those of today."""
    names = {old: name for name, old in stored.items() if old is not None}
    return rows.rename_columns([names[name] for name in rows.schema.names])


def with_history(ctx: TableContext, timeline: Timeline, time: str, metadata: CommitMetadata) -> CommitMetadata:
    """The commit of the instant `time` with what Hudi's own say of a table whose columns it has
    changed. The history is saved for it, which counts once the commit is there; what was saved for
    commits that have left the timeline counts no more."""
    found = _documents(ctx, timeline)
    if not found:
        return metadata
    name = f"{time}_{time}" if ctx.layout.tells_completions else time
    path = f"{SCHEMA_FOLDER}/{name}{_SUFFIX}"
    start = comparable_time(timeline.start or "")
    old = [saved for saved in _saved(ctx)[:-1] if comparable_time(_time(saved)) < start]
    retry.put(ctx.storage, path, _text({"schemas": [document for _, document in reversed(found)]}).encode())
    retry.delete_all(ctx.storage, old)
    latest = _text(found[_number((version for version, _ in found), time)][1])
    return replace(metadata, extra_metadata={**metadata.extra_metadata, LATEST_SCHEMA: latest})


def _documents(ctx: TableContext, timeline: Timeline) -> list[tuple[str, Mapping[str, Any]]]:
    """The versions that count, oldest first, as Hudi writes them."""
    saved = _saved(ctx) if SCHEMA_FOLDER.rpartition("/")[2] in timeline.folders else []
    if not saved:
        return []
    path = saved[-1]
    try:
        schemas = parse_json(ctx.storage.get(path))["schemas"]
        found = [(str(each["version_id"]), each) for each in sorted(schemas, key=lambda each: int(each["version_id"]))]
        _ = [(each["id"], each["name"], each["type"]) for _, document in found for each in document["fields"]]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(f"{path} is no schema history: {error}", base_path=ctx.base_path, path=path) from error
    counted = _counted(timeline, (time for time, _ in found))
    return [(time, document) for time, document in found if time in counted]


def _number(versions: Iterable[str], instant: str | None) -> int:
    """Which of these versions, oldest first, is that of an instant: the last one without any."""
    known = [comparable_time(version) for version in versions]
    limit = known[-1] if instant is None else comparable_time(instant)
    return max(0, sum(version <= limit for version in known) - 1)


def _saved(ctx: TableContext) -> list[str]:
    """The paths of the histories that were saved, the newest last."""
    _, files = ctx.storage.list_dir(SCHEMA_FOLDER)
    return sorted(info.path for info in files if info.path.endswith(_SUFFIX) and info.size)


def _time(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0].partition("_")[0]


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _counted(timeline: Timeline, versions: Iterable[str]) -> set[str]:
    """The versions that commits have made: a write saves its own before it completes, and one that
    was rolled back leaves it there."""
    instants = [found for name in timeline.files if (found := parse_instant(name)) is not None]
    completed = {found.time for found in instants if found.completed and found.action in WRITE_ACTIONS}
    start = comparable_time(timeline.start) if timeline.start else ""
    return {version for version in versions if version in completed or comparable_time(version) < start}


def _nested_ids(kind: Any) -> set[tuple[int, str]]:
    """(id, name) of every field inside a nested type."""
    if not isinstance(kind, dict):
        return set()
    found = {(f["id"], f["name"]) for f in kind.get("fields", ())}
    inner = [f.get("type") for f in kind.get("fields", ())]
    inner += [kind.get(key) for key in ("element", "key", "value", "items", "values")]
    return found.union(*map(_nested_ids, inner))
