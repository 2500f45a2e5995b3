"""Tables that were bootstrapped in place: ours read and written on by Apache Hudi, and Hudi's by
us. The columns of a skeleton's rows lie outside the table, and both sides find the same ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import open_table
from hudi_table.bootstrapping import bootstrap_table
from hudi_table.model.names import is_skeleton
from hudi_table.model.service.findings import Severity
from hudi_table.model.timeline.instants import parse_instant
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import rows
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import assert_same_rows, by_key

pytestmark = pytest.mark.interop

KEY = ("id",)
WRITE = "hoodie.datasource.write."
SELECTOR = "org.apache.hudi.client.bootstrap.selector."
DATA = rows(range(12), 1)
SIMPLE = {"hoodie.index.type": "SIMPLE"}
KINDS = {"CopyOnWrite": "COPY_ON_WRITE", "MergeOnRead": "MERGE_ON_READ"}


def folder_of(base: Path, *, partitioned: bool, inside: bool = False) -> Path:
    """The rows as files, two of each folder; `inside`: with the column that the folders name."""
    cities = sorted(set(DATA["city"].to_pylist())) if partitioned else [None]
    for city in cities:
        mine = DATA if city is None else DATA.filter(pa.compute.equal(DATA["city"], city))
        kept = mine if city is None or inside else mine.drop_columns(["city"])
        folder = base if city is None else base / f"city={city}"
        folder.mkdir(parents=True)
        half = len(kept) // 2
        for number, part in enumerate([kept.slice(0, half), kept.slice(half)]):
            # Several row groups, whose borders are not those of the skeletons.
            pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=2)
    return base


def told(kind: str, *, partitioned: bool) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        f"{WRITE}recordkey.field": "id",
        f"{WRITE}partitionpath.field": "city" if partitioned else "",
        f"{WRITE}precombine.field": "ts",
        f"{WRITE}operation": "upsert",
        f"{WRITE}table.type": KINDS[kind],
        f"{WRITE}hive_style_partitioning": str(partitioned).lower(),
        f"{WRITE}keygenerator.class": "org.apache.hudi.keygen."
        + ("SimpleKeyGenerator" if partitioned else "NonpartitionedKeyGenerator"),
        "hoodie.compact.inline": "false",
    }


def bootstrapped(oracle: HudiOracle, base: Path, source: Path, more: Mapping[str, str]) -> None:
    """A table of Hudi's own bootstrap."""
    options = {
        f"{WRITE}operation": "bootstrap",
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.bootstrap.keygen.class": more[f"{WRITE}keygenerator.class"],
        "hoodie.bootstrap.parallelism": "2",
        # With them 1.1.1 fails: it looks for the columns in the skeletons.
        "hoodie.metadata.index.column.stats.enable": "false",
    }
    oracle.write(base, DATA.slice(0, 1), {**more, **options}, mode="overwrite")


def same(found: pa.Table, expected: Any, of: str) -> None:
    assert_same_rows(found, expected, key=KEY, columns=DATA.schema.names, of=of)


def skeletons(base: Path) -> list[str]:
    return [path for path in open_table(str(base)).files()["base_file"].to_pylist() if path and is_skeleton(path)]


@pytest.mark.by_turns
@pytest.mark.parametrize("layout", ["partitioned", "column inside", "flat"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_hudi_reads_a_table_that_was_bootstrapped_here_and_writes_it_on(
    hudis: Hudis, tmp_path: Path, kind: Any, layout: str
) -> None:
    partitioned = layout != "flat"
    source = folder_of(tmp_path / "source", partitioned=partitioned, inside=layout == "column inside")
    base = tmp_path / "t"
    bootstrap_table(base, source, record_key="id", ordering_fields="ts", type=kind, version=6)
    assert len(skeletons(base)) == (6 if partitioned else 2)
    same(ours.read(base), DATA.to_pylist(), "ours")

    def check(oracle: HudiOracle, copy: Path) -> None:
        same(oracle.read(copy), DATA.to_pylist(), repr(oracle))
        oracle.write(copy, more := rows(range(3, 15), 2), told(kind, partitioned=partitioned))
        expected = (by_key(DATA, KEY) | by_key(more, KEY)).values()
        same(oracle.read(copy), expected, repr(oracle))
        same(ours.read(copy), expected, f"ours after {oracle!r}")

    hudis.each_on_a_copy(base, check)


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_hudi_reads_what_was_written_and_clustered_on_a_bootstrapped_table(
    hudis: Hudis, tmp_path: Path, kind: Any
) -> None:
    source, base = folder_of(tmp_path / "source", partitioned=True), tmp_path / "t"
    bootstrap_table(base, source, record_key="id", ordering_fields="ts", type=kind, version=6)
    table = open_table(str(base))
    table.upsert(more := rows(range(3, 6), 2))
    table.delete(rows([7], 3))
    expected = {key: row for key, row in (by_key(DATA, KEY) | by_key(more, KEY)).items() if row["id"] != "k007"}
    if kind == "MergeOnRead":
        assert skeletons(base), "the updates are logs beside skeletons"

    def check(oracle: HudiOracle, copy: Path) -> None:
        same(oracle.read(copy), expected.values(), repr(oracle))
        mine = open_table(str(copy))
        if kind == "MergeOnRead":
            mine.compact()
        mine.cluster({"hoodie.clustering.plan.strategy.sort.columns": "id"}, force=True)
        assert not skeletons(copy)
        same(oracle.read(copy), expected.values(), f"{oracle!r} after the clustering")

    hudis.each_on_a_copy(base, check)


@pytest.mark.parametrize("layout", ["partitioned", "flat"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_table_of_hudis_bootstrap_is_read_and_written_on(
    hudis: Hudis, tmp_path: Path, kind: str, layout: str
) -> None:
    partitioned = layout == "partitioned"
    source = folder_of(tmp_path / "source", partitioned=partitioned)

    def check(oracle: HudiOracle) -> None:
        base, options = tmp_path / oracle.version, told(kind, partitioned=partitioned)
        bootstrapped(oracle, base, source, options)
        # Hudi's bootstrap leaves the column that only folders name out of the table's schema.
        known = [name for name in DATA.schema.names if name != "city" or not partitioned]
        assert_same_rows(ours.read(base), DATA.to_pylist(), key=KEY, columns=known, of=f"ours of {oracle!r}")
        table = open_table(str(base))
        table.upsert(more := rows(range(3, 6), 2), options=SIMPLE)
        table.delete(rows([7], 3), options=SIMPLE)
        expected = {key: row for key, row in (by_key(DATA, KEY) | by_key(more, KEY)).items() if row["id"] != "k007"}
        same(ours.read(base), expected.values(), "ours")
        same(oracle.read(base), expected.values(), repr(oracle))
        oracle.write(base, again := rows(range(4, 14), 4), options)
        expected |= by_key(again, KEY)
        same(ours.read(base), expected.values(), f"ours after {oracle!r}")
        same(oracle.read(base), expected.values(), repr(oracle))

    hudis.each(check)


@pytest.mark.by_turns("0.15.0")
@pytest.mark.parametrize("mode", ["METADATA_ONLY", "FULL_RECORD"])
def test_partitions_that_are_copied_and_those_that_are_left_are_one_table(
    hudis: Hudis, tmp_path: Path, mode: str
) -> None:
    source, base, mine = folder_of(tmp_path / "source", partitioned=True), tmp_path / "theirs", tmp_path / "mine"
    of_part = {
        "hoodie.bootstrap.mode.selector": f"{SELECTOR}BootstrapRegexModeSelector",
        "hoodie.bootstrap.mode.selector.regex": "city=par",
        "hoodie.bootstrap.mode.selector.regex.mode": mode,
    }
    oracle = hudis["0.15.0"]
    bootstrapped(oracle, base, source, told("CopyOnWrite", partitioned=True) | of_part)
    left = {path.partition("/")[0] for path in skeletons(base)}
    # Of the partitions that it copies, Hudi 0.15.0 writes wrong rows, and 1.1.1 none: the others are held against the source.
    found = open_table(str(base)).scan(["id", "name", "ts", "_hoodie_partition_path"]).to_arrow().to_pylist()
    kept = [row for row in DATA.to_pylist() if f"city={row['city']}" in left]
    shown = pa.Table.from_pylist([row for row in found if row["_hoodie_partition_path"] in left])
    assert_same_rows(shown, kept, key=KEY, columns=["id", "name", "ts"], of="ours")
    asked: Any = {"METADATA_ONLY": "MetadataOnly", "FULL_RECORD": "FullRecord"}[mode]
    bootstrap_table(mine, source, record_key="id", ordering_fields="ts", mode=asked, pattern="city=par", version=6)
    assert {path.partition("/")[0] for path in skeletons(mine)} == left
    same(oracle.read(mine), DATA.to_pylist(), repr(oracle))
    same(hudis["1.1.1"].read(mine), DATA.to_pylist(), "Hudi 1.1.1")


LONG = pytest.mark.at_scale(2)
LATER = [pytest.param("1.0.2", 8, marks=LONG), ("1.1.1", 8), ("1.1.1", 9), pytest.param("1.2.0", 9, marks=LONG)]


@pytest.mark.parametrize(("release", "version"), LATER)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_bootstrapped_tables_of_later_versions_are_read_and_written_on(
    start: Callable[[str], HudiOracle], tmp_path: Path, kind: Any, release: str, version: int
) -> None:
    source, theirs, mine = folder_of(tmp_path / "source", partitioned=True), tmp_path / "theirs", tmp_path / "mine"
    oracle, options = start(release), told(kind, partitioned=True)
    options |= {"hoodie.write.table.version": str(version), "hoodie.metadata.index.column.stats.enable": "false"}
    bootstrapped(oracle, theirs, source, options)
    assert open_table(str(theirs)).context.config.version == version
    assert_same_rows(ours.read(theirs), DATA.to_pylist(), key=KEY, columns=["id", "name", "ts"], of="ours")
    bootstrap_table(mine, source, record_key="id", ordering_fields="ts", type=kind, name="t", version=version)
    assert laid_out(mine) == laid_out(theirs)
    same(oracle.read(mine), DATA.to_pylist(), repr(oracle))
    expected = by_key(DATA, KEY) | by_key(more := rows(range(3, 6), 2), KEY)
    for base in (theirs, mine):
        open_table(str(base)).upsert(more, options=SIMPLE)
        same(ours.read(base), expected.values(), f"ours of {base.name}")
        same(oracle.read(base), expected.values(), f"{oracle!r} of {base.name}")
        oracle.write(base, again := rows(range(5, 14), 3), options)
        both = (expected | by_key(again, KEY)).values()
        same(ours.read(base), both, f"ours of {base.name}, after {oracle!r}")
        same(oracle.read(base), both, f"{oracle!r} of {base.name}")
        assert [found for found in open_table(str(base)).doctor() if found.severity is Severity.ERROR] == []


def laid_out(base: Path) -> dict[str, Any]:
    """What a bootstrap has made beside the data: the timeline, its commits, the index, and the
    properties that say that there was one."""
    timeline, index = base / ".hoodie" / "timeline", base / ".hoodie" / ".aux" / ".bootstrap"
    found = [instant for path in timeline.glob("*.*") if (instant := parse_instant(path.name)) is not None]
    stored = dict(
        line.split("=", 1) for line in (base / ".hoodie" / "hoodie.properties").read_text().splitlines() if "=" in line
    )
    ctx = open_table(str(base)).context
    commits = [commit_metadata(ctx, instant) for instant in load_timeline(ctx).commits]
    return {
        "timeline": sorted((each.time, each.action, each.state) for each in found),
        "completed": [bool(each.completion) for each in found if each.completed],
        "operations": [commit.operation_type for commit in commits],
        "rows": [sorted((stat.partition_path, stat.num_writes) for stat in commit.stats) for commit in commits],
        "index": sorted(str(path.relative_to(index)) for path in index.rglob("*.hfile")),
        "properties": {key: text for key, text in stored.items() if key.startswith("hoodie.bootstrap.")},
    }


@pytest.mark.parametrize(("release", "version"), LATER)
def test_partitions_that_are_copied_here_are_of_one_table_of_later_versions(
    start: Callable[[str], HudiOracle], tmp_path: Path, release: str, version: int
) -> None:
    source, base = folder_of(tmp_path / "source", partitioned=True), tmp_path / "mine"
    bootstrap_table(base, source, record_key="id", mode="FullRecord", pattern="city=par", version=version)
    same(start(release).read(base), DATA.to_pylist(), release)
