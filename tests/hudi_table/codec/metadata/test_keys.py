"""Keys of the metadata table: the vectors that Hudi's classes printed, and the keys in its
files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.codec.hashes.javahash import file_id_hash, name_id
from hudi_table.codec.metadata.keys import bloom_keys, column_stats_keys, column_stats_prefixes, file_group_index
from hudi_table.codec.metadata.records import decode_metadata
from tests.support import metadata_files


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "DW/eaNVbRdo="),
        (".", "FXThHwelITM="),
        ("sf", "HPdM43JrNDs="),
        ("city=sf", "nUw8lULjQFY="),
        ("a/b/c", "0MVX42yFEWM="),
        ("id", "sLZoasJosec="),
        ("_hoodie_record_key", "uSJGdDiVr/k="),
        ("a.b", "y3PSu+Tc0zA="),
    ],
)
def test_names_have_hudis_ids(name: str, expected: str) -> None:
    assert name_id(name) == expected


def test_keys_are_ids_one_after_the_other() -> None:
    columns, paths, names = pa.array(["id"]), pa.array(["city=sf"]), pa.array(["file1.parquet"])
    assert file_id_hash("file1.parquet") == "wxPP6BeqAcWy6i10etxkow=="
    assert column_stats_keys(columns, paths, names).to_pylist() == ["sLZoasJosec=nUw8lULjQFY=wxPP6BeqAcWy6i10etxkow=="]
    assert column_stats_prefixes(columns, paths).to_pylist() == ["sLZoasJosec=nUw8lULjQFY="]
    assert bloom_keys(paths, names).to_pylist() == ["nUw8lULjQFY=wxPP6BeqAcWy6i10etxkow=="]


def test_a_table_without_partitions_has_one_named_by_a_dot() -> None:
    assert bloom_keys(pa.array([""]), pa.array(["f"])) == bloom_keys(pa.array(["."]), pa.array(["f"]))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("", (0, 0, 0, 0, 0, 0, 0)),
        ("a", (0, 1, 1, 2, 7, 1, 97)),
        ("k000", (0, 1, 1, 1, 1, 5, 301)),
        ("k001", (0, 0, 2, 2, 2, 6, 302)),
        ("uuid-1234", (0, 0, 0, 0, 0, 12, 700)),
        ("c9abbe71-b5b4-4f5e-8a3d-1f1e2d3c4b5a", (0, 0, 0, 2, 2, 4, 692)),
        ("é中", (0, 0, 0, 1, 6, 4, 236)),
        ("key with space", (0, 1, 3, 1, 1, 3, 411)),
        ("😀", (0, 1, 3, 4, 9, 3, 899)),
        ("-2147483648", (0, 0, 2, 3, 8, 10, 378)),
        ("polygenelubricants", (0, 0, 0, 3, 8, 0, 648)),
        ("null", (0, 1, 3, 3, 3, 7, 903)),
    ],
)
def test_a_key_is_in_the_file_group_that_hudi_puts_it_in(key: str, expected: tuple[int, ...]) -> None:
    found = tuple(int(file_group_index(pa.array([key]), groups)[0]) for groups in (1, 2, 4, 5, 10, 16, 1000))
    assert found == expected


@pytest.mark.parametrize("version", metadata_files.VERSIONS)
def test_the_keys_of_hudis_files_are_made_of_what_their_records_say(version: str, tmp_path: Path) -> None:
    groups = {"files": 1, "record_index": 2, "column_stats": 2, "bloom_filters": 4}
    base = metadata_files.table(version, tmp_path)
    paths = {file.name: file.parent.name for file in base.glob("city=*/*.parquet")}
    compared = 0
    for path, file in metadata_files.hfiles(base):
        rows = file.read()
        keys = rows["key"].combine_chunks().cast(pa.string())
        group = int(path.name.lstrip(".").split("_")[0].split("-")[-2])
        assert set(file_group_index(keys, groups[path.parent.name]).tolist()) <= {group}
        stats = decode_metadata(rows["value"], file.schema)["stats"].combine_chunks()
        if stats.null_count == len(stats):
            continue
        names, columns = stats.field("file_name"), stats.field("column")
        known = pc.is_in(names, value_set=pa.array(list(paths)))
        names, columns, keys = (values.filter(known) for values in (names, columns, keys))
        partitions = pa.array([paths[name] for name in names.to_pylist()])
        assert column_stats_keys(columns, partitions, names) == keys
        compared += len(keys)
    assert compared > 100
