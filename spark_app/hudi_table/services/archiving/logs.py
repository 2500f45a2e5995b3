"""The archive of table version 6: files of log blocks, each created once and read back, with an
entry for each timeline file of an instant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hudi_table.codec.archive_entries import Entry, encode_entries, read_entries
from hudi_table.errors import CorruptTableError, ObjectExistsError, OutcomeUnknownError, UnavailableError
from hudi_table.model.timeline.instants import Instant
from hudi_table.services.archiving.bodies import FILE_BYTES, bodies_of, held
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.services.archiving.records import entry_of
from hudi_table.table.timeline.archived import archive_files, archive_path, file_number, merge_target
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

ATTEMPTS_MAX = 100


def into_logs(
    ctx: TableContext, timeline: Timeline, instants: Sequence[Instant], policy: ArchivePolicy
) -> Iterator[tuple[list[Instant], int]]:
    """Archive the instants; yields those that are in the archive now, oldest first, and the bytes
    of their file."""
    for taken, data in archive_files_of(ctx, timeline, instants, policy.batch):
        archive_file(ctx, data)
        yield taken, len(data)


def archive_files_of(
    ctx: TableContext, timeline: Timeline, instants: Sequence[Instant], batch: int
) -> Iterator[tuple[list[Instant], bytes]]:
    """(instants, bytes of the archive file that holds them), oldest first."""
    states = timeline.states()
    taken: list[Instant] = []
    blocks: list[bytes] = []
    waiting: list[Entry] = []
    for some, known in bodies_of(ctx, timeline, instants):
        some_states = [state for instant in some for state in states[instant.time, instant.grouped_action]]
        waiting += [entry_of(ctx, timeline, state, known.__getitem__) for state in some_states]
        taken += some
        while len(waiting) >= batch:
            blocks.append(encode_entries(waiting[:batch]))
            del waiting[:batch]
        if sum(map(len, blocks)) >= FILE_BYTES:
            blocks += [encode_entries(waiting)] if waiting else []
            yield taken, b"".join(blocks)
            taken, blocks, waiting = [], [], []
    blocks += [encode_entries(waiting)] if waiting else []
    if taken:
        yield taken, b"".join(blocks)


def archive_file(ctx: TableContext, data: bytes) -> None:
    """Create a new archive file and read it back. An unfinished merge of Hudi's deletes the file
    that it names: not ours."""
    number = max([0, *(file.number for file in archive_files(ctx)), file_number(merge_target(ctx) or "")])
    for _ in range(ATTEMPTS_MAX):
        number += 1
        path = archive_path(ctx, number)
        try:
            ctx.storage.put_if_absent(path, data)
        except ObjectExistsError:
            continue
        except OutcomeUnknownError:
            if held(ctx, path) != data:
                continue
        stored = held(ctx, path)
        if stored is None:
            # Another archiver has merged it already: written again, it is there twice.
            continue
        # Where a store can append, Hudi appends to the newest file.
        if not stored.startswith(data) or not all(entry["commitTime"] for entry in read_entries(data, path=path)):
            raise CorruptTableError(
                f"archive file {path} does not read back as it was written; nothing was deleted",
                base_path=ctx.base_path,
            )
        return
    raise UnavailableError(f"no archive file could be created in {ATTEMPTS_MAX} attempts", base_path=ctx.base_path)
