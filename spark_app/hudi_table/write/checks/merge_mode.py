"""How a write merges rows: what the table and the options say of it, and what does not go
together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_table.errors import UnsupportedTableError
from hudi_table.index.base import Index
from hudi_table.model.options.known import explicit_option
from hudi_table.model.options.write_options import CUSTOM_KEYS, CUSTOM_MERGER, Operation
from hudi_table.model.table.config import MergeMode, TableConfig, TableType
from hudi_table.model.table.layouts import has_merge_settings
from hudi_table.model.table.merge_settings import LaterMerge
from hudi_table.model.table.merging import Payload, payload_named, payload_of
from hudi_table.model.table.properties import MERGE_NAMES, table_payload
from hudi_table.model.table.version_properties import MERGE_MODE, PAYLOAD
from hudi_table.table.rows.merge import MergeRule
from hudi_table.write.functions import Merger


def payload_option(config: TableConfig, options: Mapping[str, str]) -> Payload:
    """How rows merge. Copy-on-write tables made by Hudi's DataFrame writer store nothing of it:
    their writers tell it."""
    name = explicit_option(options, PAYLOAD)
    if name:
        return payload_named(name)
    mode = (explicit_option(options, MERGE_MODE) or "").upper()
    if not mode:
        return table_payload(config)
    if mode not in MERGE_NAMES.values():
        raise UnsupportedTableError(f"merging by {mode} is not supported by this release")
    return payload_of(next(known for known, text in MERGE_NAMES.items() if text == mode))


def merge_rule(
    payload: Payload, later: LaterMerge | None, orderings: Sequence[str], operation: Operation, merger: Merger | None
) -> MergeRule:
    """What an operation does with rows of one key. `later`: how the table merges from version 8
    on."""
    if operation is Operation.DELETE:
        return MergeRule()
    if merger is not None:
        return MergeRule(function=merger)
    ordering = orderings[0] if orderings else None
    if later is not None and operation is Operation.UPSERT:
        fills = later.partial is not None
        return MergeRule(ordering, later.partial, fills, marker=later.marker, then_by=tuple(orderings[1:]), later=True)
    compared = ordering if payload.event_time and operation is Operation.UPSERT else None
    return MergeRule(compared, payload.partial, payload.combines, payload.deletes_always, payload.marker)


def unknown_merging(config: TableConfig) -> tuple[str, ...]:
    """What of a table's way of merging this release does not know."""
    later, extra, found = config.later_merge, config.extra, []
    if later is not None and later.refused:
        found.append(f"merges rows in table version {config.version} {later.refused}")
    if len(config.ordering_fields) > 1 and not has_merge_settings(config.version):
        found.append(f"has several ordering fields ({', '.join(config.ordering_fields)}), which version 9 knows,")
    if config.nested_ordering:
        found.append(f"orders rows by {config.nested_ordering!r}, a field of a struct")
    if PAYLOAD in extra:
        found.append(f"merges rows by {extra[PAYLOAD]}")
    if MERGE_MODE in extra:
        found.append(f"merges rows by mode {extra[MERGE_MODE]}")
    return tuple(found)


def refuse_merging(config: TableConfig, payload: Payload, index: Index) -> None:
    """Raise UnsupportedTableError for a way of merging that does not go with the table's type,
    ordering field or index."""
    orderings, custom = config.compared_fields, config.extra.get(CUSTOM_MERGER)
    ordering = orderings[0] if orderings else None
    if payload.ordering not in (None, ordering):
        raise UnsupportedTableError(
            f"table {config.name!r} merges by {payload.class_name.rpartition('.')[2]}, which orders by {payload.ordering}, "
            f"and names {ordering or 'no ordering field'}; create it with ordering_fields={payload.ordering!r}"
        )
    if custom and (config.type is TableType.MERGE_ON_READ or payload != payload_of(MergeMode.COMMIT_TIME)):
        raise UnsupportedTableError(
            f"table {config.name!r} merges by the function {custom!r}: this goes with copy-on-write tables by CommitTime alone, "
            "since other engines could not repeat it when they read"
        )
    if config.type is TableType.MERGE_ON_READ and payload.event_time and index.moves:
        raise UnsupportedTableError(
            f"table {config.name!r} is merge-on-read by event time with a global index, which this release does not write"
        )
    if len(orderings) > 1 and index.moves:
        raise UnsupportedTableError(
            f"table {config.name!r} has a global index and several ordering fields ({', '.join(orderings)}), by which a key that moves "
            "is not compared with its stored row; use a Bucket or Simple index"
        )
    partial = payload.partial if config.later_merge is None else config.later_merge.partial
    if (custom or partial is not None) and index.moves:
        raise UnsupportedTableError(
            f"table {config.name!r} has a global index, where a key that moves leaves the stored row behind, so new rows cannot "
            "be merged with it column by column; use a Bucket or Simple index"
        )


def refuse_custom_keys(config: TableConfig) -> None:
    """Raise UnsupportedTableError where a key generator of one's own does not work."""
    name = config.extra.get(CUSTOM_KEYS)
    composite = config.index is not None and config.index.type.hashes and len(config.record_key) > 1
    if name and (composite or not config.populate_meta_fields):
        why = "a Bucket index over several key fields" if composite else "no meta columns that would store the keys"
        raise UnsupportedTableError(
            f"table {config.name!r} makes its keys by the function {name!r} and has {why}; use a Simple index"
        )
