"""An index of a package of its own: every key of every file, in a dictionary. The plainest answer
that is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq

from hudi_table.index.base import Keys, Lookup, Routed, Slot
from hudi_table.index.log_keys import logged_keys


@dataclass(frozen=True)
class WholeScan:
    is_global: bool

    def route(self, keys: Keys, lookup: Lookup) -> Routed:
        slots = [Slot(path) for path in keys.partition_paths]
        codes = keys.partitions.astype(np.int32).copy()
        found: dict[str, list[int]] = {}
        for item in lookup.slices:
            slots.append(Slot(item.partition, file_id=item.file_id))
            for key in stored(lookup, item):
                found.setdefault(key, []).append(len(slots) - 1)
        deletes, copies = [], []
        for row, key in enumerate(keys.record_keys.to_pylist()):
            home = keys.partition_paths[keys.partitions[row]]
            places = sorted(found.get(key, ()))
            here = [code for code in places if slots[code].partition == home]
            if here:
                codes[row] = here[0]
            copies += [(row, code) for code in here[1:]]
            deletes += [(row, code) for code in places if code not in here and self.is_global]
        return Routed(tuple(slots), codes, *pairs(deletes), *pairs(copies))


def stored(lookup: Lookup, item) -> set[str]:
    keys: set[str] = set()
    if item.base is not None:
        with lookup.storage.open_read(item.base.path) as source:
            keys |= set(pq.read_table(source, columns=["_hoodie_record_key"]).column(0).to_pylist())
    if item.logs and lookup.visible is not None:
        keys |= set(logged_keys(lookup.storage, item, lookup.visible).to_pylist())
    return keys


def pairs(found: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    rows = np.array([row for row, _ in found], dtype=np.int64)
    return rows, np.array([code for _, code in found], dtype=np.int32)


def whole_scan(config, settings: dict[str, str]) -> WholeScan:
    unknown = set(settings) - {"global"}
    if unknown:
        raise ValueError(f"unknown settings {sorted(unknown)}")
    return WholeScan(settings.get("global") == "true")


def broken_factory(config, settings):
    raise RuntimeError("this index takes no table")


@dataclass(frozen=True)
class BrokenAnswer:
    """Answers wrongly, in the way that its setting names."""

    how: str
    is_global: bool = False

    def route(self, keys: Keys, lookup: Lookup) -> object:
        home = Routed(tuple(Slot(path) for path in keys.partition_paths), keys.partitions)
        if self.how == "raises":
            raise KeyError("the index lost its way")
        return {
            "nothing": None,
            "short": Routed(home.slots, home.codes[1:]),
            "outside": Routed(home.slots, home.codes + 7),
            "group": Routed((Slot(keys.partition_paths[0], file_id="no-such-group"),), home.codes * 0),
            "partition": Routed((Slot("elsewhere"),), home.codes * 0),
            "deletes": Routed(home.slots, home.codes, np.array([99]), np.array([0], dtype=np.int32)),
            "lost": Routed(home.slots, home.codes, np.array([0]), np.array([0], dtype=np.int32)),
        }[self.how]


def broken_answer(config, settings: dict[str, str]) -> BrokenAnswer:
    return BrokenAnswer(settings["how"])
