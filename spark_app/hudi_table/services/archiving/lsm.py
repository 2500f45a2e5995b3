"""The archive of table versions 8 and 9: Parquet files with a row for each instant, and manifests
that name those which count.

Files are put before the manifest that names them, each manifest is created exclusively as the next
number of the one that it was made from, and nothing is deleted from the timeline that the newest
manifest does not lead to. So whatever dies on the way leaves the archive as it was, or with the
instants in it; and two archivers at once build on each other. Hudi's readers go by `_version_`, and
by the newest manifest while there is none: it is deleted first and then created exclusively, so a
process that slept does not set it back. See `docs/explanation/commit-protocol.md` section 2.4 [A].
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.lsm_entries import LSM_SCHEMA, lsm_bytes, lsm_file, read_lsm_rows
from hudi_table.errors import (
    CorruptTableError,
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant, State
from hudi_table.services.archiving.bodies import FILE_BYTES, bodies_of, held
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.table.store import retry
from hudi_table.table.timeline.archived import archive_folder
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.layout import decode_commit, decode_records
from hudi_table.table.timeline.lsm import (
    MANIFEST,
    VERSION,
    LsmFile,
    Manifest,
    lsm_completions,
    manifest_number,
    read_files,
    read_manifest,
)
from hudi_table.table.timeline.timeline import Timeline

ATTEMPTS_MAX = 100
MERGED_BYTES = 128 << 20
"""Files whose rows take more memory than this together are not merged into one."""
_FilesOf = Callable[[Manifest], Sequence[LsmFile] | None]
LEVEL_MAX = 9
"""A level is one digit of a file's name."""
_PLANNED = (Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.REPLACE_COMMIT)
"""Whose requested file is kept too."""


def into_lsm(
    ctx: TableContext, timeline: Timeline, instants: Sequence[Instant], policy: ArchivePolicy
) -> Iterator[tuple[list[Instant], int]]:
    """Archive the instants; yields those that are in the archive now, oldest first, and the bytes
    that were put for them."""
    del policy
    states = timeline.states()
    taken: list[Instant] = []
    rows: list[dict[str, object]] = []
    size = 0
    for some, bodies in bodies_of(ctx, timeline, instants):
        for instant in some:
            rows.append(_row(ctx, states[instant.time, instant.grouped_action], bodies))
            taken.append(instant)
        size += sum(map(len, bodies.values()))
        if size >= FILE_BYTES:
            yield taken, add_rows(ctx, pa.Table.from_pylist(rows, schema=LSM_SCHEMA))
            taken, rows, size = [], [], 0
    if taken:
        yield taken, add_rows(ctx, pa.Table.from_pylist(rows, schema=LSM_SCHEMA))


def _row(ctx: TableContext, states: Sequence[Instant], bodies: Mapping[str, bytes]) -> dict[str, object]:
    done, first = states[-1], states[0]
    metadata, plan = bodies[done.file_name], b""
    if first.state is State.REQUESTED and first.action in _PLANNED:
        plan = bodies[first.file_name]
    try:
        # What cannot be read now never can be: of an archive it would end the reading.
        if metadata and done.action in WRITE_ACTIONS:
            decode_commit(metadata)
        elif metadata:
            decode_records(metadata)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTableError(
            f"{done.file_name} cannot be archived: {error}", base_path=ctx.base_path, path=done.file_name
        ) from error
    return {
        "instantTime": done.time,
        "completionTime": done.moment,
        "action": done.grouped_action.value,
        "metadata": metadata or None,
        "plan": plan or None,
        "version": 1,
    }


def add_rows(ctx: TableContext, rows: pa.Table) -> int:
    """Bring rows into the archive, those that are not in it yet. Returns the bytes that were put.

    Raises UnavailableError if the archive does not hold all of them afterwards: then nothing may be
    deleted.
    """
    rows = rows.sort_by("instantTime")
    times = rows.column("instantTime").to_pylist()
    within = (times[0], times[-1])
    folder = archive_folder(ctx)
    known = lsm_completions(ctx.storage, folder, within)
    missing = rows.filter(pc.invert(pc.is_in(rows.column("instantTime"), pa.array(known, pa.string()))))
    put = 0
    if missing.num_rows:
        begun = ctx.clock.boot_seconds()
        files = _put(ctx, missing, 0)
        _publish(ctx, begun, lambda now: (*now.files, *(file for file in files if file not in now.files)))
        put = sum(file.size for file in files)
        known = lsm_completions(ctx.storage, folder, within)
    _tell_version(ctx)
    if set(times) - known.keys():
        raise UnavailableError(
            "the archive changed while instants were brought into it; nothing was deleted, archive again",
            base_path=ctx.base_path,
        )
    return put


def _put(ctx: TableContext, rows: pa.Table, level: int) -> list[LsmFile]:
    """Put rows as one file, or as more where its name is taken for other rows with the same
    ends."""
    times = rows.column("instantTime")
    name = f"{times[0].as_py()}_{times[-1].as_py()}_{level}.parquet"
    path, data = f"{archive_folder(ctx)}/{name}", lsm_file(rows)
    try:
        ctx.storage.put_if_absent(path, data)
    except (ObjectExistsError, OutcomeUnknownError):
        there = held(ctx, path)
        if there is None or (there != data and rows.num_rows == 1):
            # Of one instant everybody writes the same.
            retry.put(ctx.storage, path, data)
        elif there != data and not _same_rows(there, rows, path):
            half = rows.num_rows // 2
            return _put(ctx, rows.slice(0, half), level) + _put(ctx, rows.slice(half), level)
        else:
            data = there
    return [LsmFile(name, len(data))]


def _same_rows(data: bytes, rows: pa.Table, path: str) -> bool:
    try:
        return bool(read_lsm_rows(data, path=path).equals(rows.combine_chunks()))
    except CorruptTableError:
        return False


def _publish(ctx: TableContext, begun: float, files_of: _FilesOf) -> Manifest | None:
    """Create the next manifest, with the files that `files_of` makes of the newest one, None for:
    nothing more to do.

    `begun`: when the first of its new files was put. One that nobody names for H is deleted, so it
    is named within H/2.
    """
    folder = archive_folder(ctx)
    for _ in range(ATTEMPTS_MAX):
        try:
            now = read_manifest(ctx.storage, folder)
        except ObjectNotFoundError:
            continue
        files = files_of(now)
        if files is None:
            return None
        if ctx.clock.boot_seconds() - begun > ctx.settings.fresh_seconds:
            raise UnavailableError(
                "archiving took too long to name its files; nothing was deleted, archive again", base_path=ctx.base_path
            )
        path, data = f"{folder}/{MANIFEST}{now.number + 1}", _manifest(files)
        try:
            ctx.storage.put_if_absent(path, data)
        except ObjectExistsError:
            continue
        except OutcomeUnknownError:
            if held(ctx, path) != data:
                continue
        return Manifest(now.number + 1, tuple(files))
    raise UnavailableError(f"no manifest could be created in {ATTEMPTS_MAX} attempts", base_path=ctx.base_path)


def _manifest(files: Iterable[LsmFile]) -> bytes:
    named = [{"fileName": file.name, "fileLen": file.size} for file in files]
    return json.dumps({"files": named}, indent=2, separators=(",", " : ")).encode()


def _tell_version(ctx: TableContext) -> None:
    """Let `_version_` tell the newest manifest. What another creates meanwhile is looked at
    again."""
    path = f"{archive_folder(ctx)}/{VERSION}"
    for _ in range(ATTEMPTS_MAX):
        _, infos = ctx.storage.list_dir(archive_folder(ctx))
        newest = str(max((manifest_number(info.path) for info in infos), default=0)).encode()
        told = held(ctx, path)
        if told == newest:
            return
        if told is not None:
            retry.delete(ctx.storage, path)
        try:
            ctx.storage.put_if_absent(path, newest)
        except (ObjectExistsError, OutcomeUnknownError):
            continue
    raise UnavailableError(
        f"{path} could not be brought to the newest manifest in {ATTEMPTS_MAX} attempts, since others archive beside us; archive again",
        base_path=ctx.base_path,
    )


def compact_levels(ctx: TableContext, policy: ArchivePolicy) -> int:
    """Merge files of a level into one of the next, the oldest first, where there are many; then
    delete what no manifest of the recent past names. Returns how many files were merged."""
    merged = merges = 0
    while (done := _merge_level(ctx, policy)) and merges < ATTEMPTS_MAX:
        merged, merges = merged + done, merges + 1
    if merges:
        _tell_version(ctx)
        _clean(ctx, policy.manifests + merges)
    return merged


def _merge_level(ctx: TableContext, policy: ArchivePolicy) -> int:
    """One merge. Returns how many files it replaced, 0 if there is none to do."""
    folder = archive_folder(ctx)
    try:
        files = read_manifest(ctx.storage, folder).files
        chosen = _chosen(files, policy.level_files)
        loaded = {file: ctx.storage.get(f"{folder}/{file.name}") for file in chosen}
    except ObjectNotFoundError:
        return 0
    if not chosen or sum(lsm_bytes(data, path=file.name) for file, data in loaded.items()) > MERGED_BYTES:
        return 0
    rows = pa.concat_tables([read_lsm_rows(data, path=file.name) for file, data in loaded.items()])
    begun = ctx.clock.boot_seconds()
    new = _put(ctx, _once(rows), chosen[0].level + 1)

    def replaced(now: Manifest) -> Sequence[LsmFile] | None:
        if not set(chosen) <= set(now.files):
            return None
        kept = [file for file in now.files if file not in chosen]
        return [*kept, *(file for file in new if file not in kept)]

    return len(chosen) if _publish(ctx, begun, replaced) else 0


def _once(rows: pa.Table) -> pa.Table:
    """The rows in the order of time, each instant once."""
    numbered = rows.sort_by("instantTime")
    numbered = numbered.append_column("row", pa.array(range(numbered.num_rows), pa.int64()))
    first = numbered.group_by("instantTime", use_threads=False).aggregate([("row", "min")]).column("row_min")
    return numbered.take(first).drop_columns("row").sort_by("instantTime")


def _chosen(files: Sequence[LsmFile], many: int) -> list[LsmFile]:
    """The oldest files of the lowest level that has as many."""
    for level in range(LEVEL_MAX):
        there = sorted((file for file in files if file.level == level), key=lambda file: file.span)
        if len(there) >= many:
            return there[:many]
    return []


def _clean(ctx: TableContext, manifests: int) -> None:
    """Delete manifests but the newest `manifests`, and files that none of those names and that are
    older than H: younger ones may be named yet."""
    folder = archive_folder(ctx)
    try:
        now = read_manifest(ctx.storage, folder)
        kept = now.others[-manifests:]
        named = {file.name for number in kept for file in read_files(ctx.storage, f"{folder}/{MANIFEST}{number}")}
    except ObjectNotFoundError:
        # Another archiver deletes them too.
        return
    present, age = store_now(ctx), ctx.settings.quarantine_seconds
    for info in now.listed:
        number, name = manifest_number(info.path), info.path.rpartition("/")[2]
        old = (present - info.modified).total_seconds() > age
        if (number and number < kept[0]) or (name.endswith(".parquet") and name not in named and old):
            retry.delete(ctx.storage, info.path)
