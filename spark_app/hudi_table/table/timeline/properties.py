"""`hoodie.properties`: read with its backup, created exclusively, replaced without ever being
absent.

Facts (Hudi 0.15.0): Hudi deletes the file between writing its backup and the new one, so a reader
that finds no valid file uses the backup and tries again. We replace it by one atomic put instead.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress

from hudi_table.errors import (
    CorruptTableError,
    HudiError,
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
    TableNotFoundError,
    UnavailableError,
)
from hudi_table.model.names import PROPERTIES, PROPERTIES_BACKUP
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.java_properties import parse_properties, render_properties
from hudi_table.model.table.layouts import VERSIONS, Archive, layout_of
from hudi_table.model.table.properties import (
    CHECKSUM,
    checksum,
    from_properties,
    to_properties,
)
from hudi_table.model.timeline.instants import parse_instant
from hudi_table.table.store import retry
from hudi_table.table.store.at_once import at_once
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.errors import ObjectChangedError
from hudi_table.table.store.local_files import is_file
from hudi_table.table.store.ports import Clock, ObjectInfo, Storage
from hudi_table.table.timeline import kept_properties
from hudi_table.table.timeline.context import MetadataPort, TableContext, TxnSettings
from hudi_table.table.timeline.lsm import empty_archive

READ_ATTEMPTS_MAX = 5
REPLACE_ATTEMPTS_MAX, REPLACE_PAUSE_SECONDS = 8, 0.2
READ_PAUSE_SECONDS = 1.0


def load_context(
    storage: Storage, metadata: MetadataPort, clock: Clock | None = None, settings: TxnSettings | None = None
) -> TableContext:
    """Load the table at the storage's base path, with the metadata table as `metadata` reads and
    writes it.

    Raises TableNotFoundError, CorruptTableError, UnsupportedTableError, and what the storage
    raises.
    """
    used = clock or SystemClock()
    properties, lost = _compared(storage, used)
    if lost:
        # A change of ours may have come between the two: lost is what a second look misses too.
        properties, lost = _compared(storage, used)
    properties |= {key: value for key, (value, _) in (lost or {}).items()}
    config = from_properties(properties, storage.base_path)
    txn_settings = settings or TxnSettings.from_properties(properties)
    return TableContext(storage, config, used, metadata, txn_settings, lost=lost or {}, kept=lost is not None)


def _compared(storage: Storage, clock: Clock) -> tuple[dict[str, str], kept_properties.Lost | None]:
    """The properties, and what they lack of their copy, which is asked for at the same time."""
    properties, kept = at_once(storage, lambda: read_properties(storage, clock), lambda: kept_properties.read(storage))
    return properties, kept_properties.compare(kept, properties)


def read_properties(storage: Storage, clock: Clock) -> dict[str, str]:
    """The table's properties, from the file or else its backup."""
    for attempt in range(READ_ATTEMPTS_MAX):
        failure: HudiError | None = None
        for path in (PROPERTIES, PROPERTIES_BACKUP):
            try:
                return parsed_properties(storage.get(path), storage.base_path)
            except ObjectNotFoundError:
                continue
            except CorruptTableError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        if not _has_timeline(storage):
            break
        if attempt + 1 < READ_ATTEMPTS_MAX:
            clock.sleep(READ_PAUSE_SECONDS)
    raise TableNotFoundError(_what_is_there(storage), base_path=storage.base_path)


def create_properties(storage: Storage, config: TableConfig) -> None:
    """Create the file exclusively. Raises ObjectExistsError if the table exists,
    OutcomeUnknownError if unsure."""
    properties = to_properties(config)
    # Before there is a table, and never over what is there: who slept here finds one that others have archived.
    for path, data in _archive_of_new(config).items():
        with suppress(ObjectExistsError, OutcomeUnknownError):
            storage.put_if_absent(path, data)
    storage.put_if_absent(PROPERTIES, render_properties(properties, ("Hudi table properties",)).encode())
    kept_properties.keep(storage, properties)


def remove_properties(storage: Storage, config: TableConfig) -> bool:
    """Remove what `create_properties` made, if nothing else lies there: no instant, no decision, no
    file. Whether it is gone."""
    beside = _archive_of_new(config)
    if not {info.path for info in storage.list()} <= {PROPERTIES, kept_properties.KEPT, *beside}:
        return False
    # The copy before the properties: properties without one are those of a table that has none yet.
    for path in (*beside, kept_properties.KEPT, PROPERTIES):
        retry.delete(storage, path)
    return True


def _archive_of_new(config: TableConfig) -> dict[str, bytes]:
    layout = layout_of(config.version)
    return empty_archive(layout.timeline_path(config.archive_folder)) if layout.archive is Archive.LSM else {}


def replace_properties(ctx: TableContext, updates: Mapping[str, str | None]) -> None:
    """Set keys (None removes one) and reload `ctx.config`; every key that is not named stays as it
    is. What another engine has dropped meanwhile stays lost: the config has it from the copy, as
    `load_context`."""
    storage = ctx.storage
    wanted = _replaced(ctx, updates)
    ctx.lost = kept_properties.compare(kept_properties.read(storage), wanted) or {}
    ctx.config = from_properties(wanted | {key: value for key, (value, _) in ctx.lost.items()}, storage.base_path)


def _replaced(ctx: TableContext, updates: Mapping[str, str | None]) -> dict[str, str]:
    """The properties once they have the updates. Each put has the condition that the file is as it
    was read: so one whose reply was lost and that comes late brings back nothing older, an earlier
    version of the table perhaps. Who finds it changed merges the updates into what is there now."""
    storage = ctx.storage
    for attempt in range(REPLACE_ATTEMPTS_MAX):
        if attempt:
            ctx.clock.sleep(random.uniform(0.5, 1) * REPLACE_PAUSE_SECONDS)  # noqa: S311 - no secret
        seen = _seen(storage)
        current = read_properties(storage, ctx.clock)
        wanted = {k: v for k, v in {**current, **updates}.items() if v is not None}
        if wanted == current and not attempt:
            return wanted
        if wanted != current:
            kept_properties.forget(storage, {key for key, value in updates.items() if value is None})
            retry.put(storage, PROPERTIES_BACKUP, render_properties(current, ("Backup of hoodie.properties",)).encode())
            data = render_properties(wanted, ("Hudi table properties",)).encode()
            # Another writer's change, or a lost reply to ours, which the next look tells.
            with suppress(ObjectChangedError, ObjectExistsError, OutcomeUnknownError):
                storage.put_if_absent(PROPERTIES, data) if seen is None else storage.replace(seen, data)
                current = wanted
        if wanted == current:
            retry.delete(storage, PROPERTIES_BACKUP)
            kept_properties.note(storage, {key: value for key, value in updates.items() if value is not None})
            return wanted
    raise UnavailableError(
        f"{PROPERTIES} was changed by others, or the store did not confirm, in each of {REPLACE_ATTEMPTS_MAX} attempts; try again",
        base_path=storage.base_path,
        path=PROPERTIES,
    )


def _seen(storage: Storage) -> ObjectInfo | None:
    """The file before it is read, None if it is not there."""
    with suppress(ObjectNotFoundError):
        return storage.head(PROPERTIES)
    return None


def keep_properties(ctx: TableContext) -> None:
    """Keep a copy of what the table is, before its first write by us: of one that a release before
    made, or whose creation was cut short. A table that stores no index is another engine's, which
    may change it."""
    if not ctx.kept and ctx.config.index is not None:
        kept_properties.keep(ctx.storage, read_properties(ctx.storage, ctx.clock))
        ctx.kept = True


def mend_properties(ctx: TableContext) -> tuple[str, ...]:
    """Put back what another engine has dropped from the properties or changed in them; returns the
    keys."""
    lost = _compared(ctx.storage, ctx.clock)[1] or {}
    if lost:
        replace_properties(ctx, {key: value for key, (value, _) in lost.items()})
    ctx.lost = {}
    return tuple(sorted(lost))


def parsed_properties(data: bytes, base_path: str) -> dict[str, str]:
    """The properties in a file's bytes. Raises CorruptTableError if they name no table, or their
    checksum is wrong."""
    try:
        properties = parse_properties(data.decode("utf-8"))
    except UnicodeDecodeError:
        properties = parse_properties(data.decode("latin-1"))
    if not properties.get("hoodie.table.name"):
        raise CorruptTableError(
            f"{PROPERTIES} is damaged: it names no hoodie.table.name; restore it from its backup or a copy",
            base_path=base_path,
            path=PROPERTIES,
        )
    stored = properties.get(CHECKSUM)
    expected = str(checksum(properties.get("hoodie.database.name", ""), properties["hoodie.table.name"]))
    if stored and stored != expected:
        raise CorruptTableError(
            f"{PROPERTIES} is damaged: its checksum is {stored}, not {expected}; restore it from its backup or a copy",
            base_path=base_path,
            path=PROPERTIES,
        )
    return properties


def _has_timeline(storage: Storage) -> bool:
    folders = {layout_of(version).timeline_folder for version in VERSIONS}
    names = (info.path.rpartition("/")[2] for folder in sorted(folders) for info in storage.list_dir(folder)[1])
    return any(parse_instant(name) for name in names)


def _what_is_there(storage: Storage) -> str:
    folders, files = storage.list_dir("")
    names = [f"{name}/" for name in folders] + [info.path for info in files]
    if is_file(storage.base_path):
        return f"there is no Hudi table at {storage.base_path}: it is a file; a table is a folder"
    if not names:
        return f"there is no Hudi table at {storage.base_path}: the location is empty or does not exist"
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"there is no Hudi table at {storage.base_path}: no {PROPERTIES}, but {shown}; check the location"
