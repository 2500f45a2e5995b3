"""Bytes of blobs: inline, out of line, below the roots alone, within a bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import HudiTable, InvalidDataError, InvalidRequestError, open_table, read_blobs
from tests.support.logical_types import CONTAINER, golden_rows, golden_table

REFERENCE = pa.struct(
    [("external_path", pa.string()), ("offset", pa.int64()), ("length", pa.int64()), ("managed", pa.bool_())]
)
BLOB = pa.struct([("type", pa.string()), ("data", pa.binary()), ("reference", REFERENCE)])


def _blob(path: Path | str, offset: int | None = None, length: int | None = None) -> dict[str, Any]:
    reference = {"external_path": str(path), "offset": offset, "length": length, "managed": False}
    return {"type": "OUT_OF_LINE", "data": None, "reference": reference}


def _blobs(*values: dict[str, Any] | None) -> pa.Array:
    return pa.array(values, BLOB)


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "container").write_bytes(CONTAINER)
    return open_table(golden_table("mor", tmp_path))


def test_the_blobs_of_hudis_table_are_those_that_hudi_read(table: HudiTable, tmp_path: Path) -> None:
    rows = table.scan(["id", "p", "q"]).to_arrow().sort_by("id")
    inline = read_blobs(table, rows["p"])
    moved = [
        value and {**value, "reference": {**value["reference"], "external_path": f"file://{tmp_path}/files/container"}}
        for value in rows["q"].to_pylist()
    ]
    outside = read_blobs(table, pa.array(moved, rows["q"].type), roots=[str(tmp_path / "files")])
    for given, name in ((inline, "p_bytes"), (outside, "q_bytes")):
        assert given.to_pylist() == [row[name] and row[name].encode() for row in golden_rows()]


def test_a_range_without_an_end_or_a_begin_is_that_of_the_file(table: HudiTable, tmp_path: Path) -> None:
    file = tmp_path / "files" / "container"
    blobs = _blobs(_blob(file), _blob(file, 95), None, _blob(file, None, 3), _blob(file, 0, 0))
    found = read_blobs(table, blobs, roots=[str(tmp_path / "files")])
    assert found.to_pylist() == [CONTAINER, b"56789", None, b"012", b""]


def test_a_file_within_the_tables_own_folder_needs_no_root(table: HudiTable) -> None:
    inside = Path(table.base_path) / "media" / "one"
    inside.parent.mkdir()
    inside.write_bytes(b"inside")
    assert read_blobs(table, _blobs(_blob(inside))).to_pylist() == [b"inside"]


@pytest.mark.parametrize(
    "path", ["/etc/hostname", "{base}/../files/container", "{base}-other/x", "s3://bucket/{base}/x"]
)
def test_a_reference_that_lies_below_no_root_is_refused_whatever_it_names(table: HudiTable, path: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"lies below none of .*: name its folder in roots"):
        read_blobs(table, _blobs(_blob(path.format(base=table.base_path))))


def test_a_file_that_is_gone_or_too_short_is_named(table: HudiTable, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    with pytest.raises(InvalidDataError, match="files/none is not there, and 2 blobs of these rows refer to it"):
        read_blobs(table, _blobs(_blob(folder / "none"), _blob(folder / "none", 1, 2)), roots=[str(folder)])
    with pytest.raises(InvalidDataError, match="container ends 5 bytes before the blob of row 1 does"):
        read_blobs(table, _blobs(None, _blob(folder / "container", 90, 15)), roots=[str(folder)])


def test_more_than_the_bound_is_refused_before_it_is_read(table: HudiTable, tmp_path: Path) -> None:
    blobs = _blobs(*[_blob(tmp_path / "files" / "container")] * 3)
    with pytest.raises(
        InvalidRequestError, match="the blobs refer to 300 bytes, and max_memory is 299: give fewer rows"
    ):
        read_blobs(table, blobs, roots=[str(tmp_path / "files")], max_memory=299)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            {"type": "OUT_OF_LINE", "data": None, "reference": None},
            "the blob of row 0 is out of line and refers to no file",
        ),
        (_blob("/x", -1, 2), "the blob of row 0 refers to 2 bytes at -1 of /x"),
    ],
)
def test_a_reference_that_is_none_is_named(table: HudiTable, value: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidDataError, match=said):
        read_blobs(table, _blobs(value))


def test_what_is_no_column_of_blobs_is_refused(table: HudiTable) -> None:
    with pytest.raises(InvalidRequestError, match="these are values of type string, and no blobs"):
        read_blobs(table, pa.array(["a"]))
