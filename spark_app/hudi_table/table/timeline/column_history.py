"""Columns that were renamed, dropped or added by name: Hudi's schema-on-read history.

Facts (Hudi 0.15.0, table version 6): a table altered with schema evolution on keeps
`.hoodie/.schema/<T>.schemacommit`, JSON `{"schemas": [newest, …]}`; each schema has a `version_id`
(the instant that made it, 0 for the first) and fields with ids that survive renaming. Files are not
rewritten: one of instant I has the names of the newest version at or before I.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_table.errors import CorruptTableError, UnsupportedTableError
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import HOODIE
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

SCHEMA_FOLDER = f"{HOODIE}/.schema"
_SUFFIX = ".schemacommit"


@dataclass(frozen=True, slots=True)
class ColumnHistory:
    """Schema versions, oldest first: (instant or "0", {field id: field})."""

    versions: tuple[tuple[str, Mapping[int, Mapping[str, Any]]], ...]
    base_path: str = ""

    def stored_names(self, instant: str, as_of: str | None = None) -> dict[str, str | None]:
        """{name today (or at `as_of`): name in files of `instant`, None if the column did not
        exist} where they differ.

        Raises UnsupportedTableError if fields inside a struct were renamed since.
        """
        then, now = self._at(instant), self._at(as_of)
        names: dict[str, str | None] = {}
        for number, field in now.items():
            old = then.get(number)
            if old is None or old["name"] != field["name"]:
                names[field["name"]] = None if old is None else old["name"]
            if old is not None and _nested_ids(old["type"]) - _nested_ids(field["type"]):
                raise UnsupportedTableError(
                    f"fields inside column {field['name']!r} were renamed or dropped after {instant}, which is not supported",
                    base_path=self.base_path,
                )
        return names

    def _at(self, instant: str | None) -> Mapping[int, Mapping[str, Any]]:
        limit = None if instant is None else comparable_time(instant)
        found = [fields for time, fields in self.versions if limit is None or comparable_time(time) <= limit]
        return found[-1] if found else self.versions[0][1]


def load_column_history(ctx: TableContext, timeline: Timeline) -> ColumnHistory | None:
    """The history of an altered table, None for all others: their listing shows no folder of it.
    Raises CorruptTableError."""
    if SCHEMA_FOLDER.rpartition("/")[2] not in timeline.folders:
        return None
    _, files = ctx.storage.list_dir(SCHEMA_FOLDER)
    commits = [info for info in files if info.path.endswith(_SUFFIX) and info.size]
    if not commits:
        return None
    path = commits[-1].path
    try:
        schemas = parse_json(ctx.storage.get(path))["schemas"]
        versions = {str(s["version_id"]): {f["id"]: f for f in s["fields"]} for s in schemas}
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(f"{path} is no schema history: {error}", base_path=ctx.base_path, path=path) from error
    return ColumnHistory(tuple(sorted(versions.items(), key=lambda v: int(v[0]))), ctx.base_path) if versions else None


def _nested_ids(kind: Any) -> set[tuple[int, str]]:
    """(id, name) of every field inside a nested type."""
    if not isinstance(kind, dict):
        return set()
    found = {(f["id"], f["name"]) for f in kind.get("fields", ())}
    inner = [f.get("type") for f in kind.get("fields", ())]
    inner += [kind.get(key) for key in ("element", "key", "value", "items", "values")]
    return found.union(*map(_nested_ids, inner))
