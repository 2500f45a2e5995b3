"""Dropping the metadata table, while nobody builds one in its place.

Files of two metadata tables have the same names, so who deletes by an old listing would take the
files of a new one. Therefore a drop puts a note into the folder first, and deletes it last. Where a
note lies there is no metadata table, and none is built. Each request of a drop is sent at most H/2
after its note was, so a note that is older than H is of a process whose requests have all ended:
another drop takes it away. (`docs/explanation/commit-protocol.md` section 2.8)

The note has no name of an instant, so it is none to Hudi's timelines, nor to ours.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from hudi_table.errors import UnavailableError
from hudi_table.model.metadata_table import METADATA_AWAITS, METADATA_HOLDS
from hudi_table.model.names import HOODIE, METADATA_TABLE, PROPERTIES, join
from hudi_table.model.table.properties import METADATA_DROPPED, METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from hudi_table.table.store import retry
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.properties import read_properties, replace_properties

_NOTE = f"{HOODIE}/dropping-"
_LATE = ("dropping", "drop it again, which goes on")


def notes_in(infos: Iterable[ObjectInfo]) -> list[ObjectInfo]:
    """The notes of drops in a listing of the metadata table, whose paths are relative to it or to
    the data table."""
    return [info for info in infos if info.path.removeprefix(f"{METADATA_TABLE}/").startswith(_NOTE)]


def drop_metadata_table(ctx: TableContext, why: str | None) -> bool:
    """Switch Hudi's metadata table off: a note, the properties, then its files. Returns whether
    there was one.

    A stale one loses rows for every reader that trusts it (measured). `why` stays in the properties
    of a table that had a ready one, for whoever asks; "": somebody wished it, None: what is dropped
    was not ready, and what is said of an earlier one stays. Raises UnavailableError if it took too
    long: what is left then the next drop deletes.
    """
    said: dict[str, str | None] = {}
    if why == "" and METADATA_DROPPED in ctx.config.extra:
        said = {METADATA_DROPPED: None}
    named = bool(ctx.config.metadata_partitions or ctx.config.extra.get(METADATA_PARTITIONS_INFLIGHT))
    if not named and not ctx.storage.list(METADATA_TABLE):
        if said:
            replace_properties(ctx, said)
        return False
    note, begun = join(METADATA_TABLE, f"{_NOTE}{uuid.uuid4().hex}"), ctx.clock.boot_seconds()
    retry.put(ctx.storage, note, b"")
    if why:
        ready = read_properties(ctx.storage, ctx.clock).get(METADATA_PARTITIONS, "")
        said = {METADATA_DROPPED: f"{' '.join(why.split())} (it had {ready})"} if ready else {}
    refuse_late(ctx, begun, *_LATE)
    # Even if our copy of the properties names none: another writer may have built it since we read them.
    none: dict[str, str | None] = {METADATA_PARTITIONS: "", METADATA_PARTITIONS_INFLIGHT: ""}
    replace_properties(ctx, none | {METADATA_AWAITS: None, METADATA_HOLDS: None} | said)
    # Listed behind the note: what was begun before it and is put later is found by its maker, who looks for notes.
    for path in _to_delete(ctx, note):
        refuse_late(ctx, begun, *_LATE)
        retry.delete(ctx.storage, path)
    return True


def _to_delete(ctx: TableContext, note: str) -> list[str]:
    """All files, then the notes of the dead, and the own one last."""
    files = ctx.storage.list(METADATA_TABLE)
    notes = {info.path: info.modified for info in notes_in(files)}
    if note not in notes:
        raise UnavailableError(
            "the metadata table was being dropped for so long that another process has gone on with it; try again",
            base_path=ctx.base_path,
        )
    now = store_now(ctx) if len(notes) > 1 else notes[note]
    dead = [p for p, at in notes.items() if p != note and (now - at).total_seconds() > ctx.settings.quarantine_seconds]
    # The properties of the metadata table go last: while they are there a later call finds the rest.
    paths = sorted((info.path for info in files), key=lambda path: path == f"{METADATA_TABLE}/{PROPERTIES}")
    return [*(path for path in paths if path not in notes), *dead, note]


def refuse_late(ctx: TableContext, begun: float, doing: str, advice: str) -> None:
    """Raise UnavailableError if what was begun at this moment of the boot-time clock is older than
    a request may be: by the time that one arrives others may have dropped, built or archived what
    it is about."""
    if ctx.clock.boot_seconds() - begun > ctx.settings.fresh_seconds:
        raise UnavailableError(
            f"{doing} the metadata table took longer than {ctx.settings.fresh_seconds:.0f} s; {advice}",
            base_path=ctx.base_path,
        )
