"""Entries of one key put together, column by column.

Facts (public source of Hudi's payload, agreeing with the golden tables): of `files` and of the list
of partitions the entries of a key are joined name by name; a tombstone removes the name, and
otherwise the greatest size counts. Statistics of a partition are put together: the least and the
greatest bound, the sums of what is counted; but an entry that is deleted or has tight bounds
replaces what came before, and one behind a deleted one that. Of every other kind the last entry of
a key counts, and one that says it is deleted, or a delete block, removes the key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.metadata.column_stats import combined

LISTED = pa.schema([("key", pa.string()), ("name", pa.string()), ("size", pa.int64())])
"""Rows of `listed`: a key, one of its names, and the file's size in bytes."""
DELETED = "_deleted"
"""Column of a part: true where a delete block names the key."""
_FLAGS = ("bloom", "stats", "secondary")


def listed(parts: Sequence[pa.Table]) -> pa.Table:
    """The names that the `files` entries of `parts` (oldest first; columns `key`, `files`) leave,
    sorted by key and name."""
    flat = [_flat(part, number) for number, part in enumerate(parts)]
    rows = pa.concat_tables([*flat, _FLAT.empty_table()]).combine_chunks()
    if not len(rows):
        return LISTED.empty_table()
    order = pc.sort_indices(rows, sort_keys=[("key", "ascending"), ("name", "ascending"), ("part", "ascending")])
    rows = rows.take(order)
    starts = _starts(rows, ("key", "name"))
    begins = np.flatnonzero(starts)
    group = np.cumsum(starts) - 1
    place = np.arange(len(rows))
    dead = rows["deleted"].to_numpy()
    # The last tombstone of each name; what comes before it is gone.
    last = np.full(len(begins), -1)
    np.maximum.at(last, group[dead], place[dead])
    sizes = np.where(place > last[group], rows["size"].to_numpy(), -1)
    best = np.maximum.reduceat(sizes, begins)
    alive = pa.array(best >= 0)
    kept = rows.take(pa.array(begins)).select(["key", "name"])
    return kept.append_column("size", pa.array(best, pa.int64())).filter(alive)


def latest(parts: Sequence[pa.Table]) -> pa.Table:
    """The last entry of each key in `parts`, oldest first, without keys that are deleted; sorted by
    key."""
    rows = pa.concat_tables(parts).combine_chunks()
    number = pa.array(np.arange(len(rows)))
    order = pc.sort_indices(
        pa.table({"key": rows["key"], "number": number}), sort_keys=[("key", "ascending"), ("number", "ascending")]
    )
    keys = rows["key"].take(order)
    ends = np.ones(len(rows), dtype=bool)
    if len(rows) > 1:
        ends[:-1] = np.asarray(pc.not_equal(keys.slice(1), keys.slice(0, len(rows) - 1)))
    last = rows.take(order.filter(pa.array(ends)))
    return last.filter(pc.invert(_gone(last)))


def widest(parts: Sequence[pa.Table]) -> pa.Table:
    """The entries of the partition `partition_stats` that `parts` (oldest first) leave, sorted by
    key.

    Raises UnsupportedTableError for bounds of one key that do not compare.
    """
    rows = pa.concat_tables(parts).combine_chunks()
    rows = rows.append_column("number", pa.array(np.arange(len(rows))))
    rows = rows.take(pc.sort_indices(rows, sort_keys=[("key", "ascending"), ("number", "ascending")]))
    if not len(rows):
        return rows.drop_columns(["number"])
    stats = rows["stats"].combine_chunks()
    gone = np.asarray(pc.or_(rows[DELETED], stats.field("deleted").fill_null(True)))
    begins = np.flatnonzero(_starts(rows, ("key",)))
    group = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(rows))))
    # What a key begins with: behind the last one that is deleted, at the last one that is tight.
    first = begins.copy()
    tight = np.asarray(stats.field("tight").fill_null(False)) & ~gone
    place = np.arange(len(rows))
    np.maximum.at(first, group[gone], place[gone] + 1)
    np.maximum.at(first, group[tight], place[tight])
    kept = pa.array(place >= first[group])
    live = rows.filter(kept).combine_chunks()
    if not len(live):
        return live.drop_columns(["number"])
    begins = np.flatnonzero(_starts(live, ("key",)))
    ends = live.take(pa.array(np.append(begins[1:], len(live)) - 1))
    whole = combined(live["stats"].combine_chunks(), begins)
    place_of = ends.schema.get_field_index("stats")
    return ends.set_column(place_of, "stats", whole).drop_columns(["number"])


def nested(rows: pa.Table) -> pa.Table:
    """The inverse of `listed`: one row for each key, with its names in a map of (size, deleted)."""
    starts = _starts(rows, ("key",))
    begins = np.flatnonzero(starts)
    offsets = pa.array(np.append(begins, len(rows)), pa.int32())
    names = rows["name"].combine_chunks()
    deleted = rows["deleted"].combine_chunks() if "deleted" in rows.column_names else _false(len(rows))
    values = pa.StructArray.from_arrays(
        [rows["size"].combine_chunks().cast(pa.int64()), deleted], names=["size", "deleted"]
    )
    files = pa.MapArray.from_arrays(offsets, names, values)
    return pa.table({"key": rows["key"].take(pa.array(begins)), "files": files})


_FLAT = pa.schema([*LISTED, ("deleted", pa.bool_()), ("part", pa.int64())])


def _flat(part: pa.Table, number: int) -> pa.Table:
    """One row for each name in the maps of a part; a delete block's keys have none."""
    if "files" in part.column_names:
        part = part.filter(pc.is_valid(part["files"])).combine_chunks()
    if not len(part) or "files" not in part.column_names:
        return _FLAT.empty_table()
    column = part["files"].combine_chunks()
    maps = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    offsets = np.asarray(maps.offsets)
    counts = np.diff(offsets)
    inside = slice(int(offsets[0]), int(offsets[-1]))
    names, items = maps.keys[inside], maps.items[inside]
    keys = part["key"].take(pa.array(np.repeat(np.arange(len(part)), counts)))
    return pa.table(
        {
            "key": keys,
            "name": names,
            "size": pc.struct_field(items, "size"),
            "deleted": pc.struct_field(items, "deleted"),
            "part": pa.repeat(pa.scalar(number, pa.int64()), len(names)),
        }
    ).cast(_FLAT)


def _starts(rows: pa.Table, names: Sequence[str]) -> np.ndarray:
    """Where sorted rows begin another value of the columns."""
    starts = np.zeros(len(rows), dtype=bool)
    if len(rows):
        starts[0] = True
    for name in names:
        column = rows[name]
        if len(rows) > 1:
            starts[1:] |= np.asarray(pc.not_equal(column.slice(1), column.slice(0, len(rows) - 1)))
    return starts


def _gone(rows: pa.Table) -> pa.Array:
    found = rows[DELETED] if DELETED in rows.column_names else _false(len(rows))
    for name in _FLAGS:
        if name in rows.column_names:
            found = pc.or_(found, pc.fill_null(pc.struct_field(rows[name], "deleted"), False))
    return found


def _false(count: int) -> pa.Array:
    return pa.repeat(pa.scalar(False), count)
