"""Skeletons beside their sources, and the index that says which is whose."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.codec.bootstrap.index import FILE_IDS, PARTITIONS, BootstrapFile, files_of, write_index
from hudi_table.codec.bootstrap.stitched import SideBySide
from hudi_table.codec.hfile.reader import HFile
from hudi_table.codec.hfile.writer import write_hfile
from hudi_table.codec.parquet import read_batches, read_footer
from hudi_table.errors import CorruptTableError
from hudi_table.model.names import META_COLUMNS

ROWS = 200
META = pa.table({name: [f"{name} {i}" for i in range(ROWS)] for name in META_COLUMNS})
DATA = pa.table({"n": list(range(ROWS)), "text": [None if i % 5 == 0 else f"text {i}" for i in range(ROWS)]})
CITY = pa.repeat(pa.scalar("x"), ROWS)
WHOLE = pa.table([*META.columns, *DATA.columns, CITY], [*META.column_names, *DATA.column_names, "city"])


def beside(folder: Path, skeleton_rows: int, source_rows: int, source: pa.Table = DATA) -> SideBySide:
    """Both files with row groups of so many rows."""
    pq.write_table(META, folder / "skeleton.parquet", row_group_size=skeleton_rows)
    pq.write_table(source, folder / "source.parquet", row_group_size=source_rows)
    return SideBySide(
        pa.OSFile(str(folder / "skeleton.parquet")),
        partial(pa.OSFile, str(folder / "source.parquet")),
        "source.parquet",
        lambda: {"city": pa.scalar("x"), "n": pa.scalar(-1)},
    )


@pytest.mark.parametrize("seed", range(25))
def test_rows_lie_side_by_side_however_both_files_are_divided(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    source_rows = draw.choice([1, 7, 33, 64, ROWS])
    with beside(tmp_path, draw.choice([1, 5, 50, 64, ROWS]), source_rows) as file:
        columns = draw.sample(WHOLE.column_names, draw.randint(1, len(WHOLE.column_names)))
        numbers = range(-(-ROWS // source_rows))
        groups = None if draw.random() < 0.3 else sorted(draw.sample(numbers, draw.randint(1, len(numbers))))
        found = list(read_batches(file, columns, row_groups=groups, batch_rows=draw.choice([3, 10, 1000])))
    wanted = [i for i in range(ROWS) if groups is None or i // source_rows in groups]
    assert pa.Table.from_batches(found).to_pydict() == WHOLE.take(wanted).select(columns).to_pydict()


def test_all_columns_and_none(tmp_path: Path) -> None:
    with beside(tmp_path, 64, 50) as file:
        assert pa.Table.from_batches(read_batches(file)).to_pydict() == WHOLE.to_pydict()
        assert sum(len(batch) for batch in read_batches(file, [])) == ROWS
        assert sum(len(batch) for batch in read_batches(file, ["nobody"], row_groups=[1])) == 50


def test_the_footer_tells_of_both(tmp_path: Path) -> None:
    with beside(tmp_path, 64, 50) as file:
        footer = read_footer(file, path="skeleton.parquet")
    assert footer.schema.names == WHOLE.column_names
    assert (footer.rows, len(footer.row_groups)) == (ROWS, 4)
    assert footer.metadata is not None
    assert footer.metadata.row_group(1).column(0).statistics.max == 99


def test_a_source_of_other_rows_is_told(tmp_path: Path) -> None:
    with (
        beside(tmp_path, 64, 50, DATA.slice(1)) as file,
        pytest.raises(CorruptTableError, match=r"is the skeleton of 200 rows, and its source source.parquet holds 199"),
    ):
        list(read_batches(file, ["n"], path="skeleton.parquet"))


def files() -> list[BootstrapFile]:
    return [
        BootstrapFile(
            partition, f"{partition[-1:]}{number}-0", f"file:/in/{partition}/{number}.parquet", 10, 7, partition
        )
        for partition in ("city=b", "city=a", "")
        for number in range(3)
    ]


def test_an_index_tells_every_file_of_a_partition(tmp_path: Path) -> None:
    written = write_index(files(), "/in")
    assert written == write_index(files(), "/in")
    whole = HFile.open(pa.BufferReader(written[PARTITIONS]), path=PARTITIONS)
    for partition in ("city=b", "city=a", ""):
        expected = {file.file_id: file for file in files() if file.partition == partition}
        assert files_of(whole, partition) == expected
    assert files_of(whole, "city=c") == {}
    single = HFile.open(pa.BufferReader(written[FILE_IDS]), path=FILE_IDS).read()
    keys = [key.decode() for key in single["key"].to_pylist()]
    assert keys == sorted(f"part={file.partition};fileid={file.file_id}" for file in files())


def test_an_index_that_is_no_index_is_told() -> None:
    keys, values = pa.array(["part=city=a"]), pa.array([b"nothing"], pa.binary())
    broken = HFile.open(pa.BufferReader(write_hfile(keys, values, schema="")), path="the.hfile")
    with pytest.raises(CorruptTableError, match=r"the.hfile tells nothing of the files of the partition 'city=a'"):
        files_of(broken, "city=a")
