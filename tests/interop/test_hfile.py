"""HFiles of ours through the readers of Apache Hudi: its own in 0.15.0 and 1.1.1, HBase's in
0.15.0.

Aspects: many blocks, both compressions, entries larger than a block, keys longer than 127 bytes and
beyond ASCII, a file without entries, and blocks whose size lies where checksums are counted in two
ways.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.codec.bloom.filters import BloomFilter, BloomFilterSpec
from hudi_table.codec.hfile import write_hfile
from hudi_table.codec.metadata.records import metadata_schema
from hudi_table.model.table.version_properties import RECORDS
from tests.interop.conftest import Hudis

RECORD = RECORDS[6][0]

pytestmark = pytest.mark.interop


def entries(kind: str) -> dict[str, bytes]:
    chance = random.Random(kind)
    if kind == "empty":
        return {}
    if kind == "edges":
        return {f"k{size}": chance.randbytes(size) for size in range(16_250, 16_360, 5)}
    sizes = [chance.choice([20, 900, 3000]) for _ in range(300)]
    sizes[7], sizes[8], sizes[90] = 200_000, 1, 70_000
    stem = "x" * 150 if kind == "long" else "k\u00e9"
    return {f"{stem}{number:04d}": chance.randbytes(size) for number, size in enumerate(sizes)}


@pytest.mark.parametrize("compression", ["GZ", "NONE"])
@pytest.mark.parametrize("kind", ["plain", "long", "edges", "empty"])
def test_hudi_finds_every_entry(hudis: Hudis, tmp_path: Path, kind: str, compression: str) -> None:
    rows = entries(kind)
    keys = pa.array(list(rows), pa.string())
    path = tmp_path / "ours.hfile"
    bloom = BloomFilter.from_keys(keys, BloomFilterSpec("SIMPLE", 300, 0.01))
    values = pa.array(list(rows.values()), pa.binary())
    path.write_bytes(write_hfile(keys, values, schema=metadata_schema(RECORD), compression=compression, bloom=bloom))
    wanted = [*list(rows)[::9], *([list(rows)[-1]] if rows else []), "~"]
    for version, (found, looked_up, by_hbase) in hudis.each(lambda hudi: hudi.hfile(path, wanted)).items():
        assert found == list(rows), version
        assert looked_up == {key: rows[key] for key in wanted if key in rows}, version
        assert by_hbase == (len(rows) if version == "0.15.0" else None)
