"""Where a row goes whose key an index found in several file groups of one partition.

An insert looks for no key, and a log may delete a row that its base file still holds: so several
groups hold the key, and readers may see it in one, in some or in none. Rows go to those where a
reader sees the key; where he sees it nowhere, to the newest, so that a deleted key comes back once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.index.base import Codes, Keys, Lookup, Positions, Routed, Slot


def in_best_place(routed: Routed, keys: Keys, lookup: Lookup) -> Routed:
    """What an index answered, without the groups whose logs delete the key. Raises what reading a
    slice raises."""
    if len(routed.copies) == 0 or lookup.live is None:
        return routed
    several = np.unique(routed.copies)
    rows = np.concatenate([several, routed.copies]).astype(np.int64)
    codes = np.concatenate([routed.codes[several], routed.copy_codes]).astype(np.int32)
    worth = _worth(routed, keys, lookup, rows, codes)
    most = np.full(len(routed.codes), -1, dtype=np.int64)
    np.maximum.at(most, rows, worth)
    best = worth == most[rows]
    rows, codes = rows[best], codes[best]
    chosen = routed.codes.copy()
    _, first = np.unique(rows, return_index=True)
    chosen[rows[first]] = codes[first]
    others = np.ones(len(rows), dtype=bool)
    others[first] = False
    return replace(routed, codes=chosen, copies=rows[others], copy_codes=codes[others])


def _worth(routed: Routed, keys: Keys, lookup: Lookup, rows: Positions, codes: Codes) -> Positions:
    """Of each row in each of its groups: the same wherever a reader sees the key, else less, and
    the more the newer the slice is."""
    assert lookup.live is not None
    slices = {Slot(item.partition, file_id=item.file_id): item for item in lookup.slices}
    ages = {slot: age for age, slot in enumerate(sorted(slices, key=lambda slot: slices[slot].instant))}
    worth = np.full(len(rows), len(slices), dtype=np.int64)
    live = None
    for code in np.unique(codes).tolist():
        slot = routed.slots[code]
        if slot not in slices or not slices[slot].logs:
            continue
        live = live or lookup.live()
        mine = np.flatnonzero(codes == code)
        held = keys.record_keys.take(pa.array(rows[mine]))
        dead = np.asarray(pc.is_in(held, value_set=live.dead_of(lookup.storage, slices[slot])))
        worth[mine[dead]] = ages[slot]
    return worth
