"""What random turns of two writers on one table are drawn from, and how each of the two takes its
turn: we, and a release of Apache Hudi."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from hudi_table.api import HudiTable, open_table
from tests.interop import ours
from tests.interop.model import SCHEMA, rows
from tests.interop.test_archiving import age
from tests.interop.test_consistent import CLUSTERING, HASHED, SPLIT
from tests.support.hudi_oracle import HudiOracle

VERSIONS = {"0.15.0": (6,), "1.0.2": (8,), "1.1.1": (8, 9), "1.2.0": (8, 9)}
"""Release → the table versions that it writes, of those later than 0.15.0 the later ones."""
LAYOUTS = ("flat", "plain", "hive")
INDEXES = ("bucket", "consistent", "simple", "bloom", "record", "partitioned-record")
INDEX_OPTIONS = {
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
    "consistent": HASHED,
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "record": {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
    },
    "partitioned-record": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
    },
}
MERGES: dict[str, tuple[Literal["EventTime", "CommitTime"], dict[str, str]]] = {
    "event time": (
        "EventTime",
        {
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
        },
    ),
    "commit time": (
        "CommitTime",
        {
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
            "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
        },
    ),
}
"""How rows of one key become one, as we and as Hudi are told."""
RETAINED = 2
LIMITS = {
    "hoodie.clean.commits.retained": str(RETAINED),
    "hoodie.cleaner.commits.retained": str(RETAINED),
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.commits.archival.batch": "1",
}
AT_ONCE = {"hoodie.compact.inline.max.delta.commits": "1"}


@dataclass(frozen=True)
class Kind:
    """What sort of table a history is about."""

    version: int
    type: str
    index: str
    layout: str
    metadata: bool
    maker: str
    merging: str = "event time"

    @property
    def partitioned(self) -> bool:
        return self.layout != "flat"

    @property
    def logs(self) -> bool:
        return self.type == "MergeOnRead"

    @property
    def clustered(self) -> bool:
        """Whether file groups may be clustered: buckets may not."""
        return self.index != "bucket"

    def __str__(self) -> str:
        metadata = "metadata table" if self.metadata else "no metadata table"
        return f"version {self.version}, {self.type}, {self.index}, {self.layout}, {metadata}, by {self.merging}, made by {self.maker}"


def chance_of(release: str, seed: int) -> random.Random:
    """What a history draws from."""
    return random.Random(f"{release}/{seed}")


def drawn_kind(chance: random.Random, release: str) -> Kind:
    """A table that both writers take."""
    index = chance.choice(
        [name for name in INDEXES if name != "partitioned-record" or release not in ("0.15.0", "1.0.2")]
    )
    version = chance.choice(VERSIONS[release])
    record = index.endswith("record")
    maker = chance.choice(["us", "them"])
    kind = "MergeOnRead" if index == "consistent" else chance.choice(["CopyOnWrite", "MergeOnRead"])
    layout = chance.choice(LAYOUTS[1:] if index == "partitioned-record" else LAYOUTS)
    metadata = record or chance.random() < 0.25
    merging = chance.choice(list(MERGES))
    if version == 6 and kind == "CopyOnWrite" and maker == "them":
        # 0.15.0 stores no payload class of such a table: each write would have to tell it (case 2).
        merging = "commit time"
    return Kind(version, kind, index, layout, metadata, maker, merging)


def schema_for(release: str) -> pa.Schema:
    """The model's columns. Of 1.0.2 the ordering column is an `int`: a key that came back fails its
    reads otherwise (docs/reference/compatibility.md)."""
    at = SCHEMA.get_field_index("ts")
    return SCHEMA.set(at, pa.field("ts", pa.int32())) if release == "1.0.2" else SCHEMA


class Writer(Protocol):
    """One of the two who take turns."""

    name: str

    def write(self, operation: str, data: pa.Table) -> None: ...
    def plan(self, service: str) -> None: ...
    def execute(self, service: str, instant: str) -> None: ...
    def clean(self) -> None: ...
    def rollback(self, instant: str) -> None: ...
    def savepoint(self, instant: str) -> None: ...
    def restore(self, instant: str) -> None: ...
    def archive(self) -> None: ...


class Us:
    """Our turns."""

    name = "us"

    def __init__(self, base: Path, kind: Kind) -> None:
        self._base, self._kind = base, kind
        self._options = dict(LIMITS)
        if kind.maker == "them":
            self._options |= INDEX_OPTIONS[kind.index]
        if kind.index.endswith("record"):
            # What takes the metadata table away, as a restore does, leaves it to the next write.
            self._options["hoodie.metadata.enable"] = "true"

    @property
    def table(self) -> HudiTable:
        return open_table(self._base)

    def create(self, schema: pa.Schema) -> None:
        kind = self._kind
        ours.create(
            self._base,
            index=kind.index,
            partitioned=kind.partitioned,
            schema=schema,
            version=kind.version,
            type=kind.type,
            hive_style=kind.layout == "hive",
            merge_mode=MERGES[kind.merging][0],
        )

    def write(self, operation: str, data: pa.Table) -> None:
        ours.write(self._base, operation, data, options=self._options)

    def plan(self, service: str) -> None:
        if service == "compaction":
            self.table.schedule_compaction(self._options, force=True)
        else:
            self.table.schedule_clustering(self._clustering(), force=True)

    def execute(self, service: str, instant: str) -> None:
        if service == "compaction":
            self.table.run_compaction(instant, options=self._options)
        else:
            self.table.run_clustering(instant, options=self._clustering())

    def clean(self) -> None:
        self.table.clean(self._options, force=True)

    def rollback(self, instant: str) -> None:
        self.table.rollback(instant, writers_stopped=True)

    def savepoint(self, instant: str) -> None:
        self.table.savepoint(instant)

    def restore(self, instant: str) -> None:
        self.table.restore(instant, writers_stopped=True)

    def archive(self) -> None:
        age(self._base)
        self.table.archive(self._options, force=True)

    def _clustering(self) -> dict[str, str]:
        more = SPLIT if self._kind.index == "consistent" else {"hoodie.clustering.plan.strategy.sort.columns": "seen"}
        return self._options | more


class Them:
    """Turns of a release of Hudi. Procedures are told the table's version by the session."""

    def __init__(self, base: Path, kind: Kind, oracle: HudiOracle) -> None:
        self._base, self._kind, self._oracle = base, kind, oracle
        self.name = f"Hudi {oracle.version}"
        self._table = f"turns_{base.parent.name}".replace("-", "_").replace(".", "_")
        self._named = False

    def __enter__(self) -> Them:
        for key, value in self._set().items():
            self._oracle.run(f"SET {key}={value}")
        return self

    def __exit__(self, *_: object) -> None:
        for key in self._set():
            self._oracle.run(f"RESET {key}")
        if self._named:
            self._oracle.run(f"DROP TABLE {self._table}")

    def read(self, **more: str) -> pa.Table:
        return self._oracle.read(self._base, hoodie__metadata__enable=self._metadata(), **more)

    def write(self, operation: str, data: pa.Table) -> None:
        kind = self._kind
        generator = "SimpleKeyGenerator" if kind.partitioned else "NonpartitionedKeyGenerator"
        told = {
            "hoodie.table.name": "table",
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if kind.logs else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city" if kind.partitioned else "",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
            "hoodie.datasource.write.hive_style_partitioning": str(kind.layout == "hive").lower(),
            "hoodie.compact.inline": "false",
        }
        if not (self._base / ".hoodie").is_dir():
            # Of a table that is there its properties tell.
            payload, mode = MERGES[kind.merging][1].items()
            told |= dict([payload if kind.version == 6 else mode])
        self._oracle.write(self._base, data, told | self._told() | INDEX_OPTIONS[kind.index])

    def plan(self, service: str) -> None:
        self._serve(service, "op => 'schedule'")

    def execute(self, service: str, instant: str) -> None:
        if service == "compaction":
            self._serve(service, f"op => 'run', timestamp => {instant}")
        else:
            self._serve(service, f"op => 'execute', instants => '{instant}'")

    def clean(self) -> None:
        self._call("run_clean", f"table => '{self._name()}', retain_commits => {RETAINED}")

    def rollback(self, instant: str) -> None:
        self._call("rollback_to_instant", f"table => '{self._name()}', instant_time => '{instant}'")

    def savepoint(self, instant: str) -> None:
        self._call("create_savepoint", f"path => '{self._base}', commit_time => '{instant}'")

    def restore(self, instant: str) -> None:
        self._call("rollback_to_savepoint", f"path => '{self._base}', instant_time => '{instant}'")

    def archive(self) -> None:
        keep = (
            f"min_commits => 3, max_commits => 4, retain_commits => {RETAINED}, enable_metadata => {self._metadata()}"
        )
        self._call("archive_commits", f"path => '{self._base}', {keep}")

    def _serve(self, service: str, arguments: str) -> None:
        told = self._told() | INDEX_OPTIONS[self._kind.index] | {"hoodie.datasource.write.recordkey.field": "id"}
        if service == "compaction":
            told |= AT_ONCE
            if self._oracle.version == "1.0.2":
                # Case 59: this procedure does not go by the ordering field of the table.
                told["hoodie.datasource.write.precombine.field"] = "ts"
        elif self._kind.index == "consistent":
            told |= CLUSTERING | SPLIT | self._told()
        elif self._oracle.version == "0.15.0":
            # Case 32: its row writer stores decimals as its upserts do not read them.
            told["hoodie.datasource.write.row.writer.enable"] = "false"
        options = ",".join(f"{key}={value}" for key, value in told.items())
        self._call(f"run_{service}", f"path => '{self._base}', {arguments}, options => '{options}'")

    def _call(self, procedure: str, arguments: str) -> None:
        self._oracle.sql(f"CALL {procedure}({arguments})")

    def _name(self) -> str:
        if not self._named:
            self._oracle.run(f"CREATE TABLE {self._table} USING hudi LOCATION '{self._base}'")
            self._named = True
            # 0.15.0 and 1.0.2 drop keys of ours then.
            open_table(self._base).mend()
        return self._table

    def _metadata(self) -> str:
        return str(self._kind.metadata).lower()

    def _set(self) -> dict[str, str]:
        """What procedures learn from the session; on a bucket index they fail without the fields of
        the key."""
        found = self._told() | {"hoodie.datasource.write.recordkey.field": "id"}
        if self._kind.version == 6 and self._kind.index == "record":
            # Case 55: who does not ask for the record index drops it.
            found |= INDEX_OPTIONS["record"]
        return found

    def _told(self) -> dict[str, str]:
        return {
            "hoodie.write.table.version": str(self._kind.version),
            "hoodie.write.auto.upgrade": "false",
            "hoodie.metadata.enable": self._metadata(),
        }


def batch(chance: random.Random, numbers: list[int], version: int, schema: pa.Schema) -> pa.Table:
    """Rows of some of the numbers."""
    chosen = chance.sample(numbers, min(len(numbers), chance.randint(1, 8)))
    return rows(sorted(chosen), version, schema)
