"""From a folder of Parquet to a Hudi table: all of it or none.

Facts (measured on Hudi 0.15.0 and 1.1.1): partitions that are bootstrapped by their metadata alone
are one commit, 00000000000001, of operation BOOTSTRAP, those that are copied another,
00000000000002, of BULK_INSERT. A partition of the source is one of the table, by the same path.
Hudi looks for no key that comes twice: both rows stay, and an upsert of the key changes both.

`hoodie.properties` comes last, so that before it there is no table and after it there is the whole.
File names follow from what is bootstrapped: who does the same again, after a kill or at the same
time, writes the same bytes to the same places. A note says what the files are of until then.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_table.codec.bootstrap.index import BootstrapFile, write_index
from hudi_table.errors import (
    InvalidRequestError,
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
)
from hudi_table.metadata.port import open_context
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import (
    BOOTSTRAP_INSTANT,
    BOOTSTRAPS,
    FULL_BOOTSTRAP_INSTANT,
    PARTITION_METADATA,
    PROPERTIES,
    PROPERTIES_BACKUP,
    TEMP,
    is_skeleton,
    join,
)
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.layouts import layout_of
from hudi_table.model.table.properties import to_properties
from hudi_table.model.timeline.commits import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import Instant, State, format_instant_time, next_instant_time
from hudi_table.services.bootstrapping.checks import Modes, bootstrapped_config, check_source, modes_of
from hudi_table.services.bootstrapping.files import Work, check_place, write_file
from hudi_table.services.importing import (
    SOURCE_KEY,
    VERSION_KEY,
    ImportRequest,
    import_snapshot,
    refuse_repeated,
    write_of,
)
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.bootstrap.sources import BASE_PATH
from hudi_table.table.commit.transaction import write_action
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.store import retry
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import refuse_nested
from hudi_table.table.store.ports import Engine, Storage, has_object
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import all_writes
from hudi_table.table.timeline.instants import in_zone
from hudi_table.table.timeline.layout import encode_commit
from hudi_table.table.timeline.properties import create_properties
from hudi_table.write.checks.create_table import TableSpec, refuse_other_content
from hudi_table.write.keygen.table_keys import TableKeys
from hudi_table.write.operations import BATCH_KEY

NOTE = f"{TEMP}/{BOOTSTRAP_INSTANT}/bootstrap.json"
_MOMENT = "completion"


@dataclass(frozen=True, slots=True)
class BootstrapRequest:
    """What `bootstrap_folder` is asked. `spec`: the table, whose schema is the folder's, and whose
    partitions are where it names none. Partitions whose whole path `pattern` matches are of `mode`,
    all others of the other one; without a pattern all are of `mode`."""

    spec: TableSpec
    mode: str = "MetadataOnly"
    pattern: str | None = None
    max_memory: int = DEFAULT_MEMORY


@dataclass(frozen=True, slots=True)
class BootstrapResult:
    """What a bootstrap did: `skeletons` stand beside files of the source, `copied` are files whose
    rows were written anew, `bytes_written` those of both. `replayed`: it was done already."""

    table: str
    source: str
    version: str
    rows: int
    skeletons: int
    copied: int
    partitions: int
    bytes_written: int
    replayed: bool


def bootstrap_folder(
    storage: Storage, folder: ParquetFolder, request: BootstrapRequest, engine: Engine
) -> BootstrapResult:
    """Make the table at `storage`. Raises InvalidDataError, InvalidOptionError,
    InvalidSchemaError, InvalidRequestError if something else is there; then there is no table."""
    refuse_nested(storage, folder.storage)
    modes = modes_of(folder, request.mode, request.pattern)
    if not modes.skeletons:
        return _imported(storage, folder, request, engine)
    config = bootstrapped_config(storage, folder, request.spec)
    check_source(folder, config)
    digest = _digest(folder, request, config)
    done = _done_before(storage, digest)
    if done is not None:
        retry.delete(storage, NOTE)
        return _result(storage, folder, done, replayed=True)
    work = Work.of(storage, folder, config, request.spec.options, uuid.uuid5(uuid.NAMESPACE_URL, digest))
    refuse_repeated(_Placed(folder, TableKeys.of(config)), config, request.max_memory)
    moment = _take_place(storage, config, digest, folder.place)
    commits = _written(work, modes, digest, engine)
    folder.check_unchanged()
    _publish(storage, config, commits, moment)
    done = _done_before(storage, digest)
    if done is None:
        raise InvalidRequestError(
            f"the table at {storage.base_path} is of another: bootstrap into a place of its own",
            base_path=storage.base_path,
        )
    retry.delete(storage, NOTE)
    return _result(storage, folder, done, replayed=False)


def _imported(storage: Storage, folder: ParquetFolder, request: BootstrapRequest, engine: Engine) -> BootstrapResult:
    """All rows are copied, so this is an import."""
    done = import_snapshot(storage, folder, ImportRequest(request.spec, max_memory=request.max_memory), engine)
    ctx = open_context(storage)
    of_it = next(metadata for each, metadata in all_writes(ctx, load_timeline(ctx)) if each.time == done.instant)
    return _result(storage, folder, of_it, replayed=done.replayed)


def _digest(folder: ParquetFolder, request: BootstrapRequest, config: TableConfig) -> str:
    said = {
        "source": folder.place,
        "version": folder.version,
        "mode": request.mode,
        "pattern": request.pattern,
        "table": to_properties(config),
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:20]


def _done_before(storage: Storage, digest: str) -> CommitMetadata | None:
    """What stands on the timeline or in the archive, if the table there was made by this very
    bootstrap. Raises InvalidRequestError for another table."""
    if not any(map(partial(has_object, storage), (PROPERTIES, PROPERTIES_BACKUP))):
        # A timeline alone is what a bootstrap leaves that was cut short; opening would wait for the properties.
        return None
    ctx = open_context(storage)
    timeline = load_timeline(ctx)
    if write_of(ctx, timeline, _batch(digest)) is None:
        raise InvalidRequestError(
            f"there is another table {ctx.config.name!r} at {storage.base_path}: bootstrap into a place of its own",
            base_path=storage.base_path,
        )
    both = {each.time: metadata for each, metadata in all_writes(ctx, timeline) if each.time in BOOTSTRAPS}
    return CommitMetadata("BOOTSTRAP", tuple(stat for time in sorted(both) for stat in both[time].stats))


def _take_place(storage: Storage, config: TableConfig, digest: str, source: str) -> str:
    """Note what is written here from now on, and when that was, which is when the commits are to
    have completed, whoever ends it. Raises InvalidRequestError where something else lies."""
    mine = {"digest": digest, "source": source}
    moment = format_instant_time(in_zone(config, SystemClock().now()))
    for _ in range(2):
        try:
            found = _told(storage.get(NOTE))
        except ObjectNotFoundError:
            refuse_other_content(storage)
        else:
            if mine.items() <= found.items():
                return str(found.get(_MOMENT, moment))
            raise InvalidRequestError(
                f"{storage.base_path} holds files of a bootstrap that was cut short, of another source, or of this one as it was then, or "
                "that was asked for otherwise: delete the folder, then bootstrap",
                base_path=storage.base_path,
            )
        try:
            retry.until_confirmed(partial(storage.put_if_absent, NOTE, json.dumps({**mine, _MOMENT: moment}).encode()))
        except ObjectExistsError:
            continue
        return moment
    return moment


def _told(note: bytes) -> dict[str, Any]:
    try:
        found = parse_json(note)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _written(work: Work, modes: Modes, digest: str, engine: Engine) -> dict[str, CommitMetadata]:
    """Write all files, the index and the metadata of partitions; the commits by their instants."""
    storage, folder = work.storage, work.folder
    numbered = list(enumerate(folder.files))
    tasks = [partial(write_file, work, number, file, modes.instant_of(file.path)) for number, file in numbered]
    stats = engine.map(_call, tasks)
    by_instant: dict[str, list[WriteStat]] = {}
    for (_, file), stat in zip(numbered, stats, strict=True):
        by_instant.setdefault(modes.instant_of(file.path), []).append(stat)
    for instant, found in by_instant.items():
        for partition in sorted({stat.partition_path for stat in found}):
            retry.put(storage, join(partition, PARTITION_METADATA), _about_partition(instant, partition))
    skeletons = [
        BootstrapFile(
            stat.partition_path,
            stat.file_id,
            work.uri_of(file),
            file.size,
            int(file.modified.timestamp() * 1000),
            stat.partition_path,
        )
        for (_, file), stat in zip(numbered, stats, strict=True)
        if modes.instant_of(file.path) == BOOTSTRAP_INSTANT
    ]
    for path, data in write_index(skeletons, work.config.extra[BASE_PATH]).items():
        retry.put(storage, path, data)
    extra = {
        SCHEMA_KEY: work.avro_schema,
        BATCH_KEY: _batch(digest),
        SOURCE_KEY: folder.place,
        VERSION_KEY: f"parquet {folder.version}",
    }
    operations = {BOOTSTRAP_INSTANT: "BOOTSTRAP", FULL_BOOTSTRAP_INSTANT: "BULK_INSERT"}
    return {time: CommitMetadata(operations[time], tuple(by_instant[time]), extra) for time in sorted(by_instant)}


def _call(task: partial[WriteStat]) -> WriteStat:
    return task()


def _about_partition(instant: str, partition: str) -> bytes:
    depth = len(partition.split("/")) if partition else 0
    return f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n".encode()


def _publish(storage: Storage, config: TableConfig, commits: dict[str, CommitMetadata], moment: str) -> None:
    """The timeline, then the properties, with which there is a table. Names of the timeline follow
    from `moment`, too, where they tell when an instant completed."""
    layout, action = layout_of(config.version), write_action(config)
    for time, metadata in commits.items():
        done = Instant(time, action, State.COMPLETED, moment if layout.tells_completions else "")
        for instant, body in (
            (Instant(time, action, State.REQUESTED), b""),
            (Instant(time, action, State.INFLIGHT), b""),
            (done, encode_commit(layout, metadata)),
        ):
            retry.put(storage, layout.timeline_path(instant.file_name), body)
        moment = next_instant_time(moment)
    # Who was faster, or whose reply was lost, has made the same table; if it is another, the commits tell.
    with suppress(ObjectExistsError, OutcomeUnknownError):
        create_properties(storage, config)


def _result(storage: Storage, folder: ParquetFolder, done: CommitMetadata, *, replayed: bool) -> BootstrapResult:
    skeletons = sum(is_skeleton(stat.path) for stat in done.stats)
    return BootstrapResult(
        table=storage.base_path,
        source=folder.place,
        version=folder.version,
        rows=sum(stat.num_writes for stat in done.stats),
        skeletons=skeletons,
        copied=len(done.stats) - skeletons,
        partitions=len({stat.partition_path for stat in done.stats}),
        bytes_written=sum(stat.total_write_bytes for stat in done.stats),
        replayed=replayed,
    )


@dataclass(frozen=True, slots=True)
class _Placed:
    """The rows of a folder, each looked at whether it lies where a write would look for it."""

    folder: ParquetFolder
    keys: TableKeys

    @property
    def place(self) -> str:
        return self.folder.place

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        config = self.keys.config
        wanted = dict.fromkeys([*columns, *(name.partition(".")[0] for name in config.partition_fields)])
        for file in self.folder.files:
            for batch in self.folder.batches_of(file, list(wanted)):
                check_place(self.keys, batch, file.path.rpartition("/")[0], file.path)
                yield batch


def _batch(digest: str) -> str:
    return f"bootstrap@{digest}"
