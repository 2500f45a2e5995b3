"""What a change of a table's version comes to: whether it can be, and what it would rewrite.
Nothing is written here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow.compute as pc

from hudi_table.codec.parquet import read_batches
from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.metadata.definitions import DEFINITIONS, defined_by_users
from hudi_table.model.names import HOODIE, RECORD_KEY, parse_log_file
from hudi_table.model.options.write_options import COLON_RULE
from hudi_table.model.table.config import KeyEncoding, TableConfig, TableType
from hudi_table.model.table.layouts import Layout, layout_of, written_version
from hudi_table.model.table.properties import MERGE_NAMES, from_properties
from hudi_table.model.table.readers import Feature, Reader, column_types, features_in, features_of, no_longer, unproven
from hudi_table.model.table.version_properties import brought_to
from hudi_table.model.timeline.instants import parse_instant
from hudi_table.services.cleaning.stored import stored_groups
from hudi_table.services.upgrading.merging import Merging, merging_before, refuse_logs, refuse_otherwise
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import archived_completions, hidden_by
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.kept_properties import refuse_lost
from hudi_table.table.timeline.properties import read_properties
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.schemas import table_avro_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.listing import list_data_files
from hudi_table.table.view.savepoints import Savepoint, savepoints
from hudi_table.write.checks.request import refuse_unsupported

INDEX_DEFINITIONS = f"{HOODIE}/.index_defs"
SCHEMA_HISTORY = f"{HOODIE}/.schema"
SAVED_BEFORE = "before table version "
"""How the comment of a savepoint begins that a change of the version has made."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the version that can be: `before` and `after` are the whole properties."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    config: TableConfig
    layout: Layout
    moves: bool
    merging: Merging

    @property
    def updates(self) -> dict[str, str | None]:
        """The properties that get another value, None for those that go."""
        keys = [*self.before, *(key for key in self.after if key not in self.before)]
        return {key: self.after.get(key) for key in keys if self.before.get(key) != self.after.get(key)}

    @property
    def merges_logs(self) -> bool:
        """Whether all logs are merged first: another layout names them otherwise, and orders what
        it merges otherwise. Where this release does not know how they merge, there are none."""
        return self.moves and not self.merging.unknown and self.config.type is TableType.MERGE_ON_READ

    @property
    def drops_older_logs(self) -> bool:
        """Whether the logs of older slices go, too: where a log names its slice, they would hide
        base files."""
        return self.merges_logs and not self.layout.logs_tell_writers


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """A dry run. `timeline_files` are written anew; `slices` have logs that are merged first;
    `waiting` are instants that are executed, or have to end, first; `dropped` goes: partitions of
    the metadata table, index definitions; `properties` get another value, None for those that go.
    `no_longer`: a line for each reader that was named and could not read the table any more;
    `unproven`: of which that is not known. `savepoints` of earlier changes go, too; an attempt that
    is given up lets them go, and leaves one."""

    source: int
    target: int
    timeline_files: int
    slices: int
    waiting: tuple[str, ...]
    dropped: tuple[str, ...]
    properties: Mapping[str, str | None]
    no_longer: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    savepoints: tuple[str, ...] = ()


def check_version(ctx: TableContext, target: int) -> Change:
    """Whether the table can have another version. Raises InvalidOptionError for a version that is
    not written, UnsupportedTableError for what that version, or this release in it, would not
    take."""
    version = written_version(target)
    refuse_lost(ctx)
    refuse_unsupported(ctx.config, merges=False)
    before = read_properties(ctx.storage, ctx.clock)
    merging = merging_before(ctx, before, version)
    after = brought_to(version, before, MERGE_NAMES[merging.mode], merging.payload)
    layout = layout_of(version)
    if COLON_RULE in after:
        after[COLON_RULE] = layout.colon_rule
    config = from_properties(after, ctx.base_path)
    refuse_unsupported(config, merges=False)
    refuse_otherwise(ctx, merging, config)
    if (config.record_key, config.index, config.partition_by) != (
        ctx.config.record_key, ctx.config.index, ctx.config.partition_by,
    ):  # fmt: skip
        raise UnsupportedTableError(
            f"table {ctx.config.name!r} would place rows otherwise in version {version}; let Hudi's procedure upgrade_table or downgrade_table do "
            "it, and compare its rows",
            base_path=ctx.base_path,
        )
    refuse_logs(ctx, load_timeline(ctx), merging)
    moves = layout is not ctx.layout
    if moves and ctx.storage.list(SCHEMA_HISTORY):
        raise UnsupportedTableError(
            f"table {ctx.config.name!r} has a history of schemas ({SCHEMA_HISTORY}), which this release brings to no other version; let Hudi's "
            "procedures upgrade_table and downgrade_table do it",
            base_path=ctx.base_path,
        )
    change = Change(before, after, config, layout, moves, merging)
    _refuse_kept_logs(ctx, change)
    _refuse_hole(ctx, change)
    return change


def _refuse_kept_logs(ctx: TableContext, change: Change) -> None:
    """Refuse where a savepoint keeps logs that have to go. Cleaning finds them too, but time travel
    has ended by then. Raises InvalidRequestError that names the savepoint."""
    if not change.drops_older_logs:
        return
    timeline = load_timeline(ctx)
    kept = {
        name: savepoint.instant
        for savepoint in savepoints(ctx, timeline)
        if not savepoint.comment.startswith(SAVED_BEFORE)
        for names in savepoint.files.values()
        for name in names
    }
    if not kept:
        return
    groups = stored_groups(list_data_files(ctx.storage), timeline, {}, partial(archived_completions, ctx))
    for names in (slice_.names for group in groups for slice_ in group.slices):
        savepoint = next((kept[name] for name in names if name in kept), None)
        log = next((name for name in names if parse_log_file(name) is not None), None)
        if savepoint is not None and log is not None:
            raise InvalidRequestError(
                f"the savepoint {savepoint} keeps the log {log}, which version {change.config.version} would take for one of another slice: delete "
                f"the savepoint (hudictl savepoint {ctx.base_path} --delete {savepoint}) if it is not needed any more, and begin again",
                base_path=ctx.base_path,
            )


def _refuse_hole(ctx: TableContext, change: Change) -> None:
    """Refuse where a savepoint keeps a write on the timeline that is older than an archived one:
    the versions differ in which of them the timeline starts with. Raises InvalidRequestError that
    names both."""
    if not change.moves:
        return
    timeline = load_timeline(ctx)
    then = replace(timeline, layout=change.layout)
    archived = hidden_by(ctx, timeline, then) or hidden_by(ctx, then, timeline)
    older = [time for time in sorted(timeline.saved) if time < archived]
    if older:
        raise InvalidRequestError(
            f"the savepoint {older[-1]} keeps its write on the timeline, and the younger {archived} is archived (hoodie.archive.beyond.savepoint): "
            f"version {change.config.version} would read the table otherwise; delete the savepoint (hudictl savepoint {ctx.base_path} --delete {older[-1]}), "
            "and begin again",
            base_path=ctx.base_path,
            instant=older[-1],
        )


def check_colons(ctx: TableContext, change: Change, timeline: Timeline) -> None:
    """Refuse a table in which a key has a colon, where the place of such keys follows another rule
    in the other version.

    Reads the key column of every base file. Raises InvalidRequestError that names a file.
    """
    if change.before.get(COLON_RULE) == change.after.get(COLON_RULE):
        return
    config = ctx.config
    names = len(config.record_key)
    prefixed = names > 1 or config.key_encoding is KeyEncoding.FIELD_PREFIXED
    columns = [RECORD_KEY] if config.populate_meta_fields else list(config.record_key)
    most = names if prefixed and config.populate_meta_fields else 0
    for slice_ in FileSystemView(ctx, timeline).latest_slices():
        if slice_.base is None:
            continue
        with ctx.storage.open_read(slice_.base.path) as source:
            for batch in read_batches(source, columns, path=slice_.base.path):
                counts = (pc.count_substring(column.cast("string"), ":") for column in batch.columns)
                if any((pc.max(count).as_py() or 0) > most for count in counts):
                    raise InvalidRequestError(
                        f"{slice_.base.path} holds a record key with a colon, which version 6 and later versions place by different rules; write "
                        "the table anew in the other version",
                        base_path=ctx.base_path,
                    )


def refuse_readers(ctx: TableContext, target: int, readers: Iterable[Reader]) -> None:
    """Refuse a version that a reader of the table cannot read. Raises InvalidRequestError that
    names it."""
    lost = no_longer(readers, *_features(ctx, target))
    if lost:
        raise InvalidRequestError(
            f"{'; '.join(lost)}: the table stays in version {ctx.config.version}; bring that reader to a version that reads it, or leave it out of the "
            "readers, then begin again (docs/reference/readers.md)",
            base_path=ctx.base_path,
        )


def _features(ctx: TableContext, target: int) -> tuple[tuple[Feature, ...], tuple[Feature, ...]]:
    """What the table asks of its readers, and what it would in the other version."""
    columns = column_types(table_avro_schema(ctx, load_timeline(ctx)))
    return features_of(ctx.config, columns), features_in(ctx.config, target, columns)


@relists
def planned(ctx: TableContext, change: Change, readers: Iterable[Reader] = ()) -> VersionPlan:
    """What the change would do to the table as it is."""
    named, (before, after) = tuple(readers), _features(ctx, change.config.version)
    timeline = load_timeline(ctx)
    waiting = [i.file_name for i in timeline.pending if not timeline.is_leftover(i)]
    slices = sum(bool(s.logs) for s in FileSystemView(ctx, timeline).latest_slices()) if change.merges_logs else 0
    dropped = [f"metadata table: {name}" for name in ctx.config.metadata_partitions]
    return VersionPlan(
        ctx.config.version,
        change.config.version,
        sum(parse_instant(name) is not None for name in timeline.files) if change.moves else 0,
        slices,
        tuple(waiting),
        (*dropped, *index_definitions(ctx, change)),
        change.updates,
        no_longer(named, before, after),
        unproven(named, after),
        tuple(f"savepoint {s.instant} ({s.comment})" for s in outlived(ctx, change)),
    )


def outlived(ctx: TableContext, change: Change) -> list[Savepoint]:
    """Savepoints of earlier changes that go: a slice that one keeps would keep its later logs."""
    if not change.drops_older_logs:
        return []
    return [each for each in savepoints(ctx, load_timeline(ctx)) if each.comment.startswith(SAVED_BEFORE)]


def index_definitions(ctx: TableContext, change: Change) -> list[str]:
    """The files that define the indexes of a metadata table, and go: those that
    somebody has made by their name are built again in a version that has them."""
    stays = DEFINITIONS if keeps_indexes(ctx, change) else ""
    return [info.path for info in ctx.storage.list(INDEX_DEFINITIONS) if info.path != stays]


def keeps_indexes(ctx: TableContext, change: Change) -> bool:
    """Whether definitions of indexes that somebody has made by their name go along to the other
    version."""
    return change.layout.partition_stats and bool(defined_by_users(ctx))


def new_context(ctx: TableContext, change: Change) -> TableContext:
    """The same table as it will be: what is written with it lies beside the table as it is."""
    return replace(ctx, config=change.config, entries={}, bodies={}, settled=type(ctx.settled)())
