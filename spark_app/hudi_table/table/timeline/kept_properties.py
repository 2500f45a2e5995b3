"""What a table is by its properties, kept in `.hoodie/.txn/properties`, where no other engine
writes, and compared at every opening.

Measured: `CREATE TABLE … LOCATION` of Apache Hudi 0.15.0 and 1.0.2 writes `hoodie.properties` anew,
without what it does not know of a table of ours: its index and buckets, the rule of colons; 0.15.0
also the zone of its instants, and how it merges. The copy holds while the file does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from hudi_table.errors import CorruptTableError, ObjectNotFoundError, UnsupportedTableError
from hudi_table.model.metadata_table import METADATA_AWAITS, METADATA_HOLDS
from hudi_table.model.names import CHAIN
from hudi_table.model.options.known import INDEX_SETTINGS
from hudi_table.model.service.resizes import HISTORY
from hudi_table.model.table.index_properties import INDEX_KEYS
from hudi_table.model.table.java_properties import parse_properties, render_properties
from hudi_table.model.table.properties import KEY_ENCODING, METADATA_DROPPED
from hudi_table.model.table.version_properties import (
    MERGE_MODE,
    MERGER,
    OF_VERSION,
    ORDERING,
    PARTITION_TYPES,
    PAYLOAD,
    PRECOMBINE,
    STRATEGY,
    is_of_another_version,
)
from hudi_table.model.timeline.seals import KEY as CHECK_SUM
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext

KEPT = f"{CHAIN}/properties"
_OURS = "hoodie.lakeops."
_WRITER = "hoodie.datasource.write."
_FIXED = frozenset({
    PAYLOAD, MERGER, MERGE_MODE, STRATEGY, ORDERING, PRECOMBINE, KEY_ENCODING, PARTITION_TYPES, "hoodie.table.timeline.timezone",
    "hoodie.table.type", "hoodie.archivelog.folder", "hoodie.table.recordkey.fields", "hoodie.table.partition.fields",
    f"{_WRITER}hive_style_partitioning", f"{_WRITER}partitionpath.urlencode", "hoodie.populate.meta.fields",
    "hoodie.table.cdc.enabled", "hoodie.table.cdc.supplemental.logging.mode",
})  # fmt: skip
"""Never another value once the table exists."""
_PASSING = frozenset({METADATA_DROPPED, METADATA_AWAITS, METADATA_HOLDS, HISTORY})

Lost = dict[str, tuple[str, str | None]]
"""Key → its value in the copy, and that in `hoodie.properties`, None if it is gone."""


def kept_part(properties: Mapping[str, str]) -> dict[str, str]:
    """Those properties that say what the table is."""
    return {key: value for key, value in properties.items() if _is_kept(key)}


def read(storage: Storage) -> dict[str, str] | None:
    """The copy, None of a table without one. Raises CorruptTableError."""
    try:
        data = storage.get(KEPT)
    except ObjectNotFoundError:
        return None
    try:
        kept = parse_properties(data.decode("utf-8"))
        if kept.pop(CHECK_SUM, None) != _check_sum(kept):
            raise ValueError("its check sum is wrong")
    except (UnicodeDecodeError, ValueError) as error:
        raise CorruptTableError(
            f"{KEPT} cannot be read: {error}; delete it, and compare hoodie.properties with what the table should be",
            base_path=storage.base_path,
            path=KEPT,
        ) from error
    return kept


def compare(kept: Mapping[str, str] | None, properties: Mapping[str, str]) -> Lost | None:
    """What another engine has dropped or changed; None of a table without a copy, which `read`
    gives.

    Of what we change ourselves, such as the index, only its absence tells: a change of ours that
    stopped half-way is none of others.
    """
    if kept is None:
        return None
    lost: Lost = {}
    # An upgrade says some of it in other words.
    renamed = OF_VERSION if is_of_another_version(properties) else frozenset()
    for key, value in kept.items():
        if key in renamed:
            continue
        now = properties.get(key)
        if now is None or (key in _FIXED and now != value):
            lost[key] = (value, now)
    return lost


def keep(storage: Storage, properties: Mapping[str, str]) -> None:
    """Keep a copy of a table that has none."""
    _put(storage, kept_part(properties))


def forget(storage: Storage, keys: set[str]) -> None:
    """Before properties are removed: an absent one is not missed."""
    kept = read(storage)
    if kept is not None and keys & kept.keys():
        _put(storage, {key: value for key, value in kept.items() if key not in keys})


def note(storage: Storage, updates: Mapping[str, str]) -> None:
    """After properties were changed."""
    kept = read(storage)
    if kept is not None and (wanted := kept | kept_part(updates)) != kept:
        _put(storage, wanted)


def refuse_lost(ctx: TableContext) -> None:
    """Refuse to change a table whose properties another engine has dropped or changed. Raises
    UnsupportedTableError that names them."""
    if not ctx.lost:
        return
    raise UnsupportedTableError(
        f"another engine has dropped or changed properties of the table ({', '.join(sorted(ctx.lost))}), as CREATE TABLE … LOCATION of Hudi "
        f"0.15.0 and 1.0.2 does: it would write by other rules than we; put them back: hudictl doctor {ctx.base_path} --mend",
        base_path=ctx.base_path,
    )


def _is_kept(key: str) -> bool:
    ours = key in INDEX_KEYS or key in _FIXED or key.startswith((_OURS, INDEX_SETTINGS))
    return ours and key not in _PASSING


def _put(storage: Storage, properties: Mapping[str, str]) -> None:
    rendered = render_properties(
        {**properties, CHECK_SUM: _check_sum(properties)}, ("What the table is, whatever becomes of hoodie.properties",)
    )
    retry.put(storage, KEPT, rendered.encode())


def _check_sum(properties: Mapping[str, str]) -> str:
    """Of what is kept: a value that a changed byte makes would be read instead of the table's
    own."""
    return f"{crc32(repr(sorted(properties.items())).encode()):08x}"
