"""The indexes that tests hold to one behaviour, and small tables of them. A new index is one more
entry of `SUBJECTS`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_table.api import CommitResult, HudiTable
from hudi_table.model.table.config import TableType
from hudi_table.table.store.ports import Storage
from hudi_table.write.checks.create_table import TableSpec, create
from tests.support.crashes import SCHEMA, new_store, opened, rows
from tests.support.index_package import installed_package
from tests.support.postgres import running_postgres

TYPES = (TableType.COPY_ON_WRITE, TableType.MERGE_ON_READ)


@dataclass(frozen=True)
class Subject:
    """An index under test.

    `index` and `created` are what a table is created with, `written` the options of every write.
    `standing` is a context in which the tests of the index run: a server, an installed package,
    whose `module` tasks of Spark get from the test. `clusters`: whether clustering may move its
    rows. `costly`: `make test` tries a third of what it tries of others.
    """

    name: str
    index: Any
    is_global: bool = False
    created: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    types: tuple[TableType, ...] = TYPES
    clusters: bool = True
    costly: bool = False
    module: str = ""
    standing: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext

    def __str__(self) -> str:
        return self.name

    @property
    def outside(self) -> bool:
        """Whether the index keeps keys outside the table."""
        return isinstance(self.index, dict) and self.index.get("class") == "postgres"


SMALL_FILTER = {"hoodie.index.bloom.num_entries": "20", "hoodie.index.bloom.fpp": "0.01"}
"""Filters of 24 bytes instead of 316 KiB, which err often enough that an index which believed them
would be found out."""
MOVES = {"hoodie.record.index.update.partition.path": "true"}
WHOLE_SCAN = {"type": "Custom", "class": "whole-scan"}
POSTGRES = {"type": "Custom", "class": "postgres"}
SUBJECTS = (
    Subject("bucket", {"type": "Bucket", "buckets": 3}, clusters=False),
    Subject(
        "bucket-by-partition",
        {"type": "Bucket", "buckets": 2, "partitionBuckets": [{"partitions": "^(x|new)", "buckets": 5}]},
        clusters=False,
    ),
    Subject(
        "consistent-bucket",
        {"type": "ConsistentBucket", "buckets": 3, "minBuckets": 1, "maxBuckets": 8},
        types=(TableType.MERGE_ON_READ,),
    ),
    Subject("simple", "Simple"),
    Subject("global-simple", "GlobalSimple", is_global=True),
    Subject("bloom", "Bloom", created=SMALL_FILTER, written=SMALL_FILTER),
    Subject("global-bloom", "GlobalBloom", is_global=True, created=SMALL_FILTER, written=SMALL_FILTER),
    Subject("record-index", "RecordIndex", is_global=True, created=MOVES, costly=True),
    Subject("partitioned-record-index", "PartitionedRecordIndex", costly=True),
    Subject("key-state", "KeyState", is_global=True),
    Subject("custom", WHOLE_SCAN, module="whole_scan", standing=installed_package),
    Subject(
        "global-custom",
        WHOLE_SCAN | {"settings": {"global": "true"}},
        is_global=True,
        module="whole_scan",
        standing=installed_package,
    ),
    Subject("external", POSTGRES, costly=True, standing=running_postgres),
    Subject(
        "global-external",
        POSTGRES | {"settings": {"global": "true"}},
        is_global=True,
        costly=True,
        standing=running_postgres,
    ),
)


@dataclass(frozen=True)
class Case:
    """An index, a type of table, and whether it has partitions."""

    subject: Subject
    type: TableType
    partitioned: bool = True

    def __str__(self) -> str:
        return f"{self.subject}-{self.type.value}-{'parts' if self.partitioned else 'flat'}"

    @property
    def keyed_by_partition(self) -> bool:
        """Whether one id may live in several partitions."""
        return self.partitioned and not self.subject.is_global

    def spec(self) -> TableSpec:
        """A table with key `id`, perhaps partitioned by `city`."""
        subject = self.subject
        return TableSpec(
            SCHEMA, "id", partition_by=["city"] if self.partitioned else [], index=subject.index, name="t",
            type=self.type.value, options=subject.created, version=6,
        )  # fmt: skip

    def new_table(self, store: Storage | None = None) -> HudiTable:
        """An empty table, by default in memory."""
        used = new_store() if store is None else store
        create(used, self.spec())
        return opened(used)

    def write(self, table: HudiTable, operation, *items: tuple[str, str, int], **more: Any) -> CommitResult:
        """Write rows of (id, city, value)."""
        options = dict(self.subject.written) | more.pop("options", {})
        return table.write(rows(*items), operation=operation, options=options, **more)
