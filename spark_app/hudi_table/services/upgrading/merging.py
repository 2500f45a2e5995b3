"""How rows merge before a change of the version and after it.

Facts (measured on Hudi 1.0.2 and 1.1.1): versions 6 and 8 store a payload class, version 9 says in
properties what it does. There base files and logs merge by one rule, where a class may have two. In
version 8 a class does to base files what it does in 6, and the two releases merge logs by different
rules. Rows stay equal where no log waits to be merged, so all are merged first, by the rule of
before; where this release does not know it, no log may wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.model.counts import counted
from hudi_table.model.table.config import MergeMode, TableConfig, TableType
from hudi_table.model.table.layouts import has_merge_settings
from hudi_table.model.table.merging import PAYLOADS, payload_as, payload_of
from hudi_table.model.table.properties import table_payload
from hudi_table.model.table.version_properties import (
    LEGACY_PAYLOAD,
    MYSQL_PAYLOAD,
    PAYLOAD,
    PLAIN_PAYLOADS,
    ordering_in_9,
)
from hudi_table.model.timeline.instants import Action
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.write.checks.merge_mode import unknown_merging

_KNOWN = {*PAYLOADS, MYSQL_PAYLOAD}


@dataclass(frozen=True, slots=True)
class Merging:
    """`payload`: the class that merges so in the words of version 6, `mode` its mode. `unknown`:
    what of it this release does not know, '' if it merges logs so."""

    payload: str
    mode: MergeMode
    unknown: str = ""


def merging_before(ctx: TableContext, properties: Mapping[str, str], version: int) -> Merging:
    """How the table merges that is to be brought to a version. Raises UnsupportedTableError for
    what no class and no setting of that version does."""
    config, later = ctx.config, ctx.config.later_merge
    stored = properties.get(LEGACY_PAYLOAD) or properties.get(PAYLOAD, "")
    unknown = next(iter(unknown_merging(config)), "")
    if unknown:
        _refuse_unknown(ctx, stored, unknown, version)
    if later is None or later.refused:
        # Of a plain class the mode tells as much, and more where an upgrade of Hudi's has changed it.
        plain = not stored or stored in PLAIN_PAYLOADS.values()
        name = payload_of(config.merge_mode).class_name if plain else stored
        return Merging(name, MergeMode.EVENT_TIME if name == MYSQL_PAYLOAD else PAYLOADS[name].mode, unknown)
    found = payload_as(later, stored)
    if found is None and not has_merge_settings(version):
        why = "has no payload class" if stored != MYSQL_PAYLOAD else f"has {stored}, which this release does not write"
        raise UnsupportedTableError(
            f"table {config.name!r} merges rows by {_shown(config)}, for which version {version} {why}: it stays in version {config.version}",
            base_path=ctx.base_path,
        )
    name = found.class_name if found else payload_of(config.merge_mode).class_name
    return Merging(name, config.merge_mode, unknown)


def _refuse_unknown(ctx: TableContext, stored: str, unknown: str, version: int) -> None:
    settled = not has_merge_settings(ctx.config.version) and stored in _KNOWN
    if settled and has_merge_settings(version):
        return
    step = (
        "bring it to version 9, which says in properties what the class does" if settled else "it stays in its version"
    )
    raise UnsupportedTableError(
        f"table {ctx.config.name!r} {unknown}, which this release does not write: {step}", base_path=ctx.base_path
    )


def _shown(config: TableConfig) -> str:
    """What no payload class does, of a table of version 9."""
    later = config.later_merge
    if later is None or len(later.ordering) > 1:
        return f"several ordering fields ({', '.join(config.ordering_fields)})"
    parts = [
        f"{later.partial}" if later.partial else "",
        f"deletes where {later.marker[0]} is {later.marker[1]}" if later.marker else "",
    ]
    return f"{' and '.join(filter(None, parts))} by {config.merge_mode.value}"


def refuse_otherwise(ctx: TableContext, merging: Merging, config: TableConfig) -> None:
    """Refuse a version in which the table would merge by another class or other fields. `config`:
    the table as it would be. Raises UnsupportedTableError."""
    name, version = ctx.config.name, config.version
    if unknown_merging(config):
        step = "it stays in version" if has_merge_settings(ctx.config.version) else "bring it to version"
        raise UnsupportedTableError(
            f"table {name!r} is merge-on-read and merges rows by {merging.payload}, and in version {version} releases of Hudi merge its logs by "
            f"different rules: {step} 9",
            base_path=ctx.base_path,
        )
    if not (_merges_as(ctx.config, merging, config) and _orders_as(ctx, merging, config)):
        raise UnsupportedTableError(
            f"table {name!r} merges rows by {merging.payload} and {', '.join(ctx.config.ordering_fields) or 'no ordering field'}, and would by other "
            f"rules in version {version}: it stays in version {ctx.config.version}",
            base_path=ctx.base_path,
        )


def _merges_as(before: TableConfig, merging: Merging, after: TableConfig) -> bool:
    later = after.later_merge
    if merging.payload == MYSQL_PAYLOAD or (later is not None and later == before.later_merge):
        return True
    payload = table_payload(after) if later is None else payload_as(later, merging.payload)
    return payload is not None and payload.class_name == merging.payload


def _orders_as(ctx: TableContext, merging: Merging, after: TableConfig) -> bool:
    """Whether the same fields are compared, or those that version 9 has for the class."""
    fields = after.ordering_fields
    if fields == ctx.config.ordering_fields:
        return True
    schema = table_schema(ctx, load_timeline(ctx))
    return fields == ordering_in_9(merging.payload) and schema is not None and {*fields} <= {*schema.names}


def refuse_logs(ctx: TableContext, timeline: Timeline, merging: Merging) -> None:
    """Refuse a table whose logs wait, where this release does not know how they merge. Raises
    InvalidRequestError."""
    if not merging.unknown or ctx.config.type is not TableType.MERGE_ON_READ:
        return
    waiting = [instant.time for instant in timeline.pending if instant.action is Action.COMPACTION]
    logs = sum(bool(slice_.logs) for slice_ in FileSystemView(ctx, timeline).latest_slices())
    if waiting or logs:
        what = f"the compaction {waiting[0]} is pending" if waiting else f"{counted(logs, 'slice')} with logs wait"
        raise InvalidRequestError(
            f"table {ctx.config.name!r} {merging.unknown}, which this release does not merge, and {what}: compact first with the engine that "
            "wrote them (CALL run_compaction(op => 'scheduleAndExecute', …) in Hudi), then begin again",
            base_path=ctx.base_path,
        )
