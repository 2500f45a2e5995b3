"""The options that users of Hudi set most: the same, given to Apache Hudi 1.1.1 and to us, make
equal tables.

Each case is a life of a table, told to both by nothing but rows and options: first rows, updates,
rows whose ordering value is older, deletes. Both read both tables: the same rows, record keys,
partition paths and folders, and where an option names a property of the table, the same property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_table.api import create_table, open_table, write_hudi
from hudi_table.model.names import OPERATION_COLUMN
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import SCHEMA, rows
from tests.support.rows import META, assert_same_rows

pytestmark = pytest.mark.interop

WRITE = "hoodie.datasource.write."
OPERATION = f"{WRITE}operation"
BASE = {
    "hoodie.table.name": "table",
    f"{WRITE}recordkey.field": "id",
    f"{WRITE}partitionpath.field": "city",
    f"{WRITE}precombine.field": "ts",
    "hoodie.metadata.enable": "false",
}
PAYLOADS = "org.apache.hudi.common.model."
GENERATORS = "org.apache.hudi.keygen."


def older(numbers: Sequence[int]) -> pa.Table:
    """Rows that are written late, with an ordering value below the first ones'."""
    late = rows(numbers, 9)
    return late.set_column(late.schema.get_field_index("ts"), "ts", pa.array([1] * len(late), pa.int64()))


def twice(numbers: Sequence[int]) -> pa.Table:
    """Each row in two versions, the newer one first."""
    return pa.concat_tables([rows(numbers, 5), rows(numbers, 4)])


LIFE: tuple[tuple[str, pa.Table], ...] = (
    ("insert", rows(range(20), 1)),
    ("upsert", rows(range(10, 30), 2)),
    ("upsert", older(range(5, 15))),
    ("delete", rows(range(0, 30, 4), 3)),
)


@dataclass(frozen=True)
class Case:
    """Options, and the writes that they come with. `properties`: those of the table that both must
    have stored alike."""

    options: Mapping[str, str]
    life: tuple[tuple[str, pa.Table], ...] = LIFE
    properties: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    shown_as_path: tuple[str, ...] = ()
    """Columns that Hudi itself shows as the text of the partition's path."""
    alike: Callable[[Path, Path], None] = field(default=lambda theirs, mine: None)

    @property
    def told(self) -> dict[str, str]:
        return {key: value for key, value in (BASE | dict(self.options)).items() if key not in self.without}


def same_codec(theirs: Path, mine: Path) -> None:
    codecs = [{_codec(path) for path in base.rglob("*.parquet")} for base in (theirs, mine)]
    assert codecs[0] == codecs[1]


def _codec(path: Path) -> str:
    return pq.read_metadata(path).row_group(0).column(0).compression


def one_file_a_partition(theirs: Path, mine: Path) -> None:
    assert _groups(theirs) == _groups(mine)


def _groups(base: Path) -> dict[str, int]:
    """File groups by folder."""
    found: dict[str, set[str]] = {}
    for path in base.rglob("*.parquet"):
        found.setdefault(path.parent.relative_to(base).as_posix(), set()).add(path.name.split("_")[0])
    return {folder: len(ids) for folder, ids in found.items()}


def same_columns(theirs: Path, mine: Path) -> None:
    assert _columns(theirs) == _columns(mine)
    assert all(OPERATION_COLUMN in names for names in _columns(mine))


def _columns(base: Path) -> set[frozenset[str]]:
    return {frozenset(pq.read_schema(path).names) for path in base.rglob("*.parquet")}


def both_with_filters(theirs: Path, mine: Path) -> None:
    for base in (theirs, mine):
        assert all(
            b"org.apache.hudi.bloomfilter" in pq.read_metadata(path).metadata for path in base.rglob("*.parquet")
        )


def same_cleans(theirs: Path, mine: Path) -> None:
    assert len(list((theirs / ".hoodie").glob("*.clean"))) == len(list((mine / ".hoodie").glob("*.clean")))


MOR = {f"{WRITE}table.type": "MERGE_ON_READ"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
FLAT = {f"{WRITE}partitionpath.field": "", f"{WRITE}keygenerator.class": f"{GENERATORS}NonpartitionedKeyGenerator"}
CASES = {
    "operation insert": Case({}, (("insert", rows(range(20), 1)), ("insert", rows(range(20, 30), 2)))),
    "operation bulk_insert": Case({}, (("bulk_insert", rows(range(20), 1)), ("upsert", rows(range(9, 30), 2)))),
    "operation delete": Case({}, (("upsert", rows(range(20), 1)), ("delete", rows(range(5, 9), 1)))),
    "operation insert_overwrite": Case({}, (*LIFE, ("insert_overwrite", rows(range(0, 40, 3), 4)))),
    "operation insert_overwrite_table": Case({}, (*LIFE, ("insert_overwrite_table", rows(range(40, 50), 4)))),
    "table type": Case(MOR, properties=("hoodie.table.type",)),
    "record key of two fields": Case(
        {f"{WRITE}recordkey.field": "id,name"}, (("upsert", rows(range(1, 7), 1)),), ("hoodie.table.recordkey.fields",)
    ),
    "no partition": Case(FLAT, properties=("hoodie.table.recordkey.fields",)),
    "hive style": Case(
        {f"{WRITE}hive_style_partitioning": "true"}, properties=("hoodie.datasource.write.hive_style_partitioning",)
    ),
    "url encoding": Case(
        {f"{WRITE}partitionpath.urlencode": "true", f"{WRITE}partitionpath.field": "name"},
        (("upsert", rows(range(1, 7), 1)),),
        ("hoodie.datasource.write.partitionpath.urlencode",),
    ),
    "time based partitions": Case(
        {
            f"{WRITE}partitionpath.field": "ts",
            f"{WRITE}keygenerator.class": f"{GENERATORS}TimestampBasedKeyGenerator",
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
            "hoodie.keygen.timebased.timezone": "UTC",
        },
        (("upsert", rows(range(9), 1)),),
        shown_as_path=("ts",),
    ),
    "several partition fields": Case(
        {
            f"{WRITE}recordkey.field": "id,ts",
            f"{WRITE}partitionpath.field": "city,ts",
            f"{WRITE}keygenerator.class": f"{GENERATORS}ComplexKeyGenerator",
        },
        (("upsert", rows(range(9), 1)), ("upsert", rows(range(5), 1))),
    ),
    "merge mode commit time": Case(
        {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}, without=(f"{WRITE}precombine.field",)
    ),
    "merge mode event time": Case({"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"}),
    "payload overwrite": Case({f"{WRITE}payload.class": f"{PAYLOADS}OverwriteWithLatestAvroPayload"}),
    "payload default": Case({f"{WRITE}payload.class": f"{PAYLOADS}DefaultHoodieRecordPayload"}),
    "payload partial update": Case({f"{WRITE}payload.class": f"{PAYLOADS}OverwriteNonDefaultsWithLatestAvroPayload"}),
    "index bucket": Case(BUCKETS, alike=one_file_a_partition),
    "index bucket of merge-on-read": Case(MOR | BUCKETS),
    "index hash field": Case(BUCKETS | {"hoodie.bucket.index.hash.field": "id"}),
    "index simple": Case({"hoodie.index.type": "SIMPLE"}),
    "index bloom": Case({"hoodie.index.type": "BLOOM"}),
    "index global simple": Case({"hoodie.index.type": "GLOBAL_SIMPLE"}),
    "index global bloom": Case({"hoodie.index.type": "GLOBAL_BLOOM"}),
    "combine before insert": Case({"hoodie.combine.before.insert": "true"}, (("insert", twice(range(9))),)),
    "combine before upsert": Case({"hoodie.combine.before.upsert": "true"}, (("upsert", twice(range(9))),)),
    "drop duplicates": Case(
        {f"{WRITE}insert.drop.duplicates": "true"}, (("insert", rows(range(20), 1)), ("insert", twice(range(10, 30))))
    ),
    "duplicates policy": Case(
        {"hoodie.datasource.insert.dup.policy": "drop", "hoodie.index.type": "SIMPLE"},
        (("insert", rows(range(20), 1)), ("insert", rows(range(10, 30), 2))),
    ),
    "log blocks": Case(MOR | BUCKETS | {"hoodie.logfile.data.block.format": "parquet"}),
    "small file limit": Case({"hoodie.parquet.small.file.limit": "0"}, alike=one_file_a_partition),
    "max file size": Case({"hoodie.parquet.max.file.size": "125829120"}, alike=one_file_a_partition),
    "compression codec": Case({"hoodie.parquet.compression.codec": "gzip"}, alike=same_codec),
    "sort mode": Case(
        {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"},
        (("bulk_insert", rows(range(20), 1)), ("upsert", rows(range(5, 9), 2))),
    ),
    "inline compaction": Case(
        MOR | {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"},
    ),
    "inline clustering": Case(
        {
            "hoodie.clustering.inline": "true",
            "hoodie.clustering.inline.max.commits": "2",
            "hoodie.clustering.plan.strategy.sort.columns": "ts",
        },
    ),
    "automatic cleaning": Case(
        {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}, alike=same_cleans
    ),
    "cleaning of versions": Case(
        {
            "hoodie.clean.automatic": "true",
            "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.clean.fileversions.retained": "1",
        },
    ),
    "archiving": Case(
        {
            "hoodie.archive.automatic": "true",
            "hoodie.keep.min.commits": "3",
            "hoodie.keep.max.commits": "4",
            "hoodie.clean.commits.retained": "1",
        },
        (*LIFE, *(("upsert", rows(range(n, n + 5), 5 + n)) for n in range(4))),
    ),
    "metadata table": Case({"hoodie.metadata.enable": "true"}),
    "change data": Case({"hoodie.table.cdc.enabled": "true"}, properties=("hoodie.table.cdc.enabled",)),
    "ordering that is not given": Case({}, without=(f"{WRITE}precombine.field",)),
    "failed writes": Case({"hoodie.clean.failed.writes.policy": "EAGER"}),
    "operation column": Case({"hoodie.allow.operation.metadata.field": "true"}, alike=same_columns),
    "bloom filters": Case(
        {"hoodie.parquet.bloom.filter.enabled": "true", "hoodie.index.type": "SIMPLE"}, alike=both_with_filters
    ),
    "sort mode of repartitioning": Case(
        {"hoodie.bulkinsert.sort.mode": "PARTITION_PATH_REPARTITION"},
        (("bulk_insert", rows(range(20), 1)), ("upsert", rows(range(5, 9), 2))),
    ),
    "null for missing columns": Case(
        {"hoodie.write.set.null.for.missing.columns": "true"},
        (("insert", rows(range(9), 1)), ("upsert", rows(range(5, 12), 2).drop_columns(["price"]))),
    ),
    "row writer": Case(
        {f"{WRITE}row.writer.enable": "false"}, (("bulk_insert", rows(range(20), 1)), ("upsert", rows(range(9), 2)))
    ),
}


@pytest.mark.filterwarnings("ignore::hudi_table.model.options.known.IgnoredOptionWarning")
@pytest.mark.parametrize("name", CASES)
def test_an_option_makes_the_table_that_it_makes_with_hudi(hudis: Hudis, tmp_path: Path, name: str) -> None:
    case, oracle = CASES[name], hudis["1.1.1"]
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    _create(mine, case.told)
    for operation, data in case.life:
        told = case.told | {OPERATION: operation}
        oracle.write(theirs, data, told)
        write_hudi(mine, data, options=told)
    shown = {base.name: oracle.read(base) for base in (theirs, mine)}
    columns = [*SCHEMA.names, *(column for column in META if column != "_hoodie_commit_time")]
    key = ("_hoodie_partition_path", "_hoodie_record_key")
    for base in (theirs, mine):
        assert_same_rows(_in_order(shown["mine"]), _in_order(shown["theirs"]), key=key, columns=columns, of="Hudi's")
        read = [column for column in columns if column not in case.shown_as_path]
        assert_same_rows(ours.read(base, meta=True), shown["theirs"], key=key, columns=read, of=f"ours of {base.name}")
    assert _folders(theirs) == _folders(mine)
    for named in case.properties:
        assert _property(mine, named) == _property(theirs, named)
    case.alike(theirs, mine)


def _create(base: Path, told: Mapping[str, str]) -> None:
    """Ours is told what Hudi is told, and as an argument what it cannot do without."""
    keys = told[f"{WRITE}recordkey.field"].split(",")
    create_table(base, SCHEMA, record_key=keys, options=told, version=6)


def _in_order(table: pa.Table) -> pa.Table:
    return table.take(pc.sort_indices(table, sort_keys=[("_hoodie_record_key", "ascending")]))


def _folders(base: Path) -> set[str]:
    """Folders that hold rows."""
    found = open_table(str(base)).scan(columns=["id"], meta=True).to_arrow()
    return set(found["_hoodie_partition_path"].to_pylist())


def _property(base: Path, name: str) -> str | None:
    lines = (base / ".hoodie" / "hoodie.properties").read_text().splitlines()
    stored = dict(line.replace("\\:", ":").split("=", 1) for line in lines if "=" in line)
    return stored.get(name)
