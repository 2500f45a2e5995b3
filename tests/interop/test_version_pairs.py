"""Every pair of table versions, there and back, for every index: equal rows before and after by us
and by Hudi, Hudi writes on in each version, and the way ends in version 6, which 0.15.0 reads and
writes.

Matrix: {6 → 8 → 9 → 8 → 6, 6 → 9 → 6} × nine tables, one for each index: copy-on-write and
merge-on-read, archived, with a metadata table, with a compaction that waits and rows behind it.
Before each change of the version both write, and keep one metadata table. Hudi 0.15.0 must not
touch a record index by partition: of such a table 1.1.1 stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import downgrade_table, open_table, upgrade_table
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_archiving import KEEP, age
from tests.interop.test_later_versions import INDEX_OPTIONS as OF_BOTH
from tests.interop.test_metadata_table import KINDS
from tests.interop.test_partition_buckets import TOLD
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import META, assert_same_rows

pytestmark = [
    pytest.mark.interop,
    pytest.mark.at_scale(2),
]

METADATA = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
NO_METADATA = {"hoodie.metadata.enable": "false"}
INDEX_OPTIONS = OF_BOTH | {
    "by partition": TOLD,
    "partitioned-record": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
    },
}
BY_1_1 = {"by partition", "partitioned-record"}
"""Indexes that 0.15.0 does not know."""
WAYS = [(6, 8, 9, 8, 6), (6, 9, 6)]


@dataclass(frozen=True)
class Sort:
    """What sort of table takes a way."""

    index: str
    logs: bool = False
    metadata: bool = False
    archived: bool = False
    waits: bool = False
    """Whether a compaction is pending at each change of the version."""

    def __str__(self) -> str:
        marks = {"archived": self.archived, "metadata table": self.metadata, "pending compaction": self.waits}
        return ", ".join([self.index, "logs" if self.logs else "files", *(name for name, has in marks.items() if has)])


SORTS = [
    Sort("bucket", metadata=True, archived=True),
    Sort("by partition"),
    Sort("global", metadata=True),
    Sort("global-bloom", archived=True),
    Sort("simple", logs=True, metadata=True, archived=True, waits=True),
    Sort("consistent", logs=True, archived=True, waits=True),
    Sort("bloom", logs=True, metadata=True),
    Sort("record", metadata=True, archived=True),
    Sort("partitioned-record", metadata=True),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way)))
@pytest.mark.parametrize("sort", SORTS, ids=str)
def test_rows_and_history_stay_on_the_way_and_both_write_on_in_each_version(
    hudis: Hudis, tmp_path: Path, sort: Sort, way: tuple[int, ...]
) -> None:
    table = Travelling(tmp_path / "table", sort)
    for source, target in pairwise(way):
        table.stay(hudis)
        table.change(source, target)
    table.stay(hudis)
    if 8 not in way:
        return
    # What 0.15.0 wrote last is read by the newest that reads version 6, and goes on.
    table.change(6, 9)
    table.read_by(hudis["1.1.1"])


class Travelling:
    """A table of ours that is brought from version to version, and what it holds."""

    def __init__(self, base: Path, sort: Sort) -> None:
        self.base, self.sort, self.model = base, sort, Model(partitioned=True)
        self._numbers = count(1)
        ours.create(base, index=sort.index, partitioned=True, type="MergeOnRead" if sort.logs else "CopyOnWrite")
        for operation in ("insert", "upsert", "upsert", "delete", "upsert", "upsert"):
            self._write(operation)
        if sort.archived:
            if sort.logs:
                open_table(base).compact(force=True)
            self._write("upsert")
            age(base)
            assert open_table(base).archive(KEEP, force=True)

    @property
    def version(self) -> int:
        return open_table(self.base).context.config.version

    def stay(self, hudis: Hudis) -> None:
        """Both write in the version that the table has."""
        oracle = hudis["0.15.0" if self.version == 6 and self.sort.index != "partitioned-record" else "1.1.1"]
        # Numbers of buckets by partition do not keep it from reading.
        writer = hudis["1.1.1"] if self.sort.index in BY_1_1 else oracle
        self.read_by(oracle)
        self._write("upsert")
        self._write("delete")
        if self.sort.waits:
            assert open_table(self.base).schedule_compaction(force=True)
            self._write("upsert")
        self._write("upsert", writer)
        if self.sort.metadata:
            assert open_table(self.base).context.config.metadata_partitions
        self.read_by(oracle)

    def change(self, source: int, target: int) -> None:
        """Bring it over: rows with their keys, partitions and times, and every write of its
        history, stay."""
        assert self.version == source
        before, known = ours.read(self.base, meta=True), self._history()
        assert self._waits() == self.sort.waits
        (upgrade_table if target > source else downgrade_table)(self.base, to=target)
        assert self.version == target
        assert_same_rows(ours.read(self.base, meta=True), before.to_pylist(), of=f"ours, in version {target}")
        assert known <= self._history()
        assert open_table(self.base).context.config.metadata_partitions == ()
        wrong = [found for found in open_table(self.base).doctor(keys=True) if found.check != "Leftover"]
        assert wrong == []

    def read_by(self, oracle: HudiOracle) -> None:
        """We and Hudi read the rows, Hudi by the metadata table where there is one; hudi-rs where
        no compaction waits, whose rows it lacks (docs/reference/compatibility.md, case 28)."""
        enable = str(self.sort.metadata).lower()
        if not self._waits():
            ours.assert_all_read(self.base, oracle, self.model.rows(), hoodie__metadata__enable=enable)
            return
        mine = ours.read(self.base, meta=True)
        assert_same_rows(mine.drop_columns(list(META)), self.model.rows(), of="ours")
        seen = oracle.read(self.base, hoodie__metadata__enable=enable)
        assert_same_rows(seen, mine, columns=mine.column_names, of=repr(oracle))

    def _write(self, operation: str, oracle: HudiOracle | None = None) -> None:
        number = next(self._numbers)
        data = rows(self._keys(operation, number), number)
        if oracle is not None:
            oracle.write(self.base, data, self._told(operation))
        else:
            ours.write(self.base, operation, data, options=METADATA if self.sort.metadata else {})
        self.model.apply(operation, data)

    def _keys(self, operation: str, number: int) -> Iterator[int] | range:
        if operation == "delete":
            return range(number, number + 3)
        return range(number + 2, number + 14)

    def _told(self, operation: str) -> dict[str, str]:
        told: dict[str, str] = {
            "hoodie.table.name": "table",
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.table.type": KINDS["merge-on-read" if self.sort.logs else "copy-on-write"],
            "hoodie.compact.inline": "false",
            "hoodie.write.table.version": str(self.version),
        }
        return told | INDEX_OPTIONS[self.sort.index] | (METADATA if self.sort.metadata else NO_METADATA)

    def _waits(self) -> bool:
        return bool(open_table(self.base).services.compaction().pending())

    def _history(self) -> set[tuple[Any, ...]]:
        """Instants of all writes that have completed."""
        found = open_table(self.base).timeline(archived=True)
        pairs = zip(found["instant"].to_pylist(), found["action"].to_pylist(), strict=True)
        return {(instant, action) for instant, action in pairs if action.endswith("commit")}


def test_the_sorts_are_every_index() -> None:
    assert {sort.index for sort in SORTS} == set(INDEX_OPTIONS) == {*ours.INDEXES}
    assert any(sort.logs and sort.waits and sort.metadata and sort.archived for sort in SORTS)
    assert {pair for way in WAYS for pair in pairwise(way)} == {(6, 8), (8, 9), (9, 8), (8, 6), (6, 9), (9, 6)}
