"""Every pair of table versions, there and back, for every index: equal rows before and after by us
and by Hudi, Hudi writes on in each version, and the way ends in version 6, which 0.15.0 reads and
writes.

Matrix: {6 → 8 → 9 → 8 → 6, 6 → 9 → 6} × seven tables, one for each index that versions 8 and 9
have: copy-on-write and merge-on-read, archived, with a metadata table, with a compaction that waits
and rows behind it. Before each change of the version both write; a metadata table is ours in
version 6 and Hudi's in the others. A table with a record index is refused, and stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import downgrade_table, open_table, upgrade_table
from hudi_table.errors import UnsupportedTableError
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_archiving import KEEP, age
from tests.interop.test_consistent import HASHED
from tests.interop.test_metadata_table import KINDS
from tests.interop.test_partition_buckets import TOLD
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import META, assert_same_rows

pytestmark = [
    pytest.mark.interop,
    pytest.mark.at_scale(2),
    # In versions 8 and 9 whatever of ours changes files drops the metadata table of Hudi's.
    pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning"),
]

METADATA = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
NO_METADATA = {"hoodie.metadata.enable": "false"}
INDEX_OPTIONS = {
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
    "consistent": HASHED,
    "by partition": TOLD,
    "simple": {"hoodie.index.type": "SIMPLE"},
    "global": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global-bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
}
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
        oracle = hudis["0.15.0" if self.version == 6 else "1.1.1"]
        # 0.15.0 knows no numbers of buckets by partition: 1.1.1 writes on, and it reads.
        writer = hudis["1.1.1"] if self.sort.index == "by partition" else oracle
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
            keeps = METADATA if self.sort.metadata and self.version == 6 else {}
            ours.write(self.base, operation, data, options=keeps)
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


@pytest.mark.parametrize("index", ["record", "partitioned-record"])
@pytest.mark.parametrize("target", [8, 9])
def test_a_table_with_a_record_index_is_refused_by_name_and_hudi_reads_it_as_before(
    hudis: Hudis, tmp_path: Path, index: str, target: int
) -> None:
    base, model = tmp_path / "table", Model(partitioned=True)
    ours.create(base, index=index, partitioned=True)
    for number in (1, 2):
        ours.write(base, "upsert", data := rows(range(number, number + 9), number))
        model.apply("upsert", data)
    with pytest.raises(UnsupportedTableError, match="record"):
        upgrade_table(base, to=target)
    assert open_table(base).context.config.version == 6
    ours.assert_all_read(base, hudis["1.1.1"], model.rows(), hoodie__metadata__enable="true")


def test_the_sorts_are_every_index_of_the_later_versions() -> None:
    assert {sort.index for sort in SORTS} == set(INDEX_OPTIONS) == {*ours.INDEXES} - {"record", "partitioned-record"}
    assert any(sort.logs and sort.waits and sort.metadata and sort.archived for sort in SORTS)
    assert {pair for way in WAYS for pair in pairwise(way)} == {(6, 8), (8, 9), (9, 8), (8, 6), (6, 9), (9, 6)}
