"""Nothing leaves the base path: any path given to a storage, any partition value given to a table.

Seen by the operating system's own listing of everything around the base, not by our code.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_table.api import create_table, open_table, write_hudi
from hudi_table.errors import InvalidDataError, InvalidRequestError, ObjectNotFoundError
from hudi_table.model.names import DEFAULT_PARTITION, escape_partition_value
from hudi_table.table.store.opening import open_storage
from hudi_table.write.keygen.columns import path_problem
from tests.support.scale import scaled

NASTY = [
    "..",
    ".",
    "",
    "/",
    "//",
    "%2F",
    "%2e%2e",
    "..%2F..",
    "\0",
    "\n",
    "\x7f",
    ".hoodie",
    "\\",
    "..\\..",
    "~",
    "$HOME",
]
NASTY += ["*", "?", "[a]", "{b}", ":", "a:b", "c#1", "é", "e\u0301", "😀", "\ud800", " ", "\t", "x" * 256, "x" * 2048]
NASTY += ["_hoodie_commit_time", "x.parquet", "x.hudi-staging", "p=../..", "con", "\u202e", "‥", "．．", "∕"]
VALUES = st.sampled_from(NASTY) | st.text(max_size=12) | st.lists(st.sampled_from(NASTY), max_size=4).map("".join)
PATHS = st.lists(VALUES, min_size=1, max_size=4).map("/".join)


@contextmanager
def around_a_base() -> Iterator[tuple[Path, Path]]:
    """(a base inside two folders, the outermost of them), with a file beside and above the base."""
    outer = Path(tempfile.mkdtemp(prefix="hudi-paths-"))
    base = outer / "middle" / "base"
    base.mkdir(parents=True)
    (outer / "above").write_bytes(b"above")
    (outer / "middle" / "beside").write_bytes(b"beside")
    (outer / "middle" / "base-two").mkdir()
    try:
        yield base, outer
    finally:
        shutil.rmtree(outer)


def outside(outer: Path, base: Path) -> dict[str, bytes | None]:
    """Everything below `outer` that is not below `base`: contents of files, None for folders."""
    found: dict[str, bytes | None] = {}
    for folder, folders, files in os.walk(outer):
        if Path(folder) == base:
            folders.clear()
            continue
        found |= {os.path.join(folder, name): None for name in folders}
        found |= {os.path.join(folder, name): Path(folder, name).read_bytes() for name in files}
    return found


def below(base: Path) -> list[str]:
    return sorted(os.path.relpath(os.path.join(f, name), base) for f, _, names in os.walk(base) for name in names)


@settings(max_examples=scaled(150))
@given(PATHS)
@example("../beside")
@example("a/../../beside")
@example("../base-two/x")
@example("/etc/hudi-path-safety")
@example("..\\beside")
def test_a_path_either_names_that_very_file_below_the_base_or_is_refused(path: str) -> None:
    with around_a_base() as (base, outer):
        before = outside(outer, base)
        storage = open_storage(str(base), {"fsync": "false"})
        try:
            storage.put(path, b"put")
        except InvalidRequestError:
            assert below(base) == []
        else:
            assert below(base) == [path]
            assert [info.path for info in storage.list()] == [path]
            assert storage.get(path) == b"put"
        with suppress(InvalidRequestError, ObjectNotFoundError):
            assert storage.get(path) == b"put"
        with suppress(InvalidRequestError):
            storage.delete(path)
        assert below(base) == []
        assert outside(outer, base) == before


@settings(max_examples=scaled(40))
@given(st.lists(VALUES, min_size=1, max_size=4, unique=True), st.booleans(), st.booleans())
@example([".."], False, False)
@example(["../beside"], False, False)
@example([".hoodie"], False, False)
@example(["x", "../../above"], False, False)
@example(["a/../../b", "\0", "%2F", ""], True, True)
def test_a_partition_value_is_written_below_the_base_and_read_back_or_refused_whole(
    values: list[str], hive_style: bool, url_encode: bool
) -> None:
    try:
        data = pa.table({"id": [str(i) for i in range(len(values))], "p": values, "n": range(len(values))})
    except UnicodeEncodeError:
        return  # a lone surrogate: no Arrow string can hold it
    with around_a_base() as (base, outer):
        create_table(base, data.schema, record_key="id", partition_by="p", hive_style=hive_style, url_encode=url_encode)
        before, files = outside(outer, base), below(base)
        expected = [folder_of(value, hive_style=hive_style, url_encode=url_encode) for value in values]
        if any(path_problem(folder) for folder in expected):
            with pytest.raises(InvalidDataError, match="partition path"):
                write_hudi(base, data)
            assert below(base) == files, "a refused write leaves nothing"
        else:
            write_hudi(base, data)
            written = {path.rpartition("/")[0] for path in below(base) if path.endswith(".parquet")}
            assert written == set(expected)
            rows = open_table(str(base)).scan(meta=True).to_arrow().sort_by("n")
            assert rows["p"].to_pylist() == values
            assert rows["_hoodie_partition_path"].to_pylist() == expected
        assert outside(outer, base) == before


def folder_of(value: str, *, hive_style: bool, url_encode: bool) -> str:
    """The partition path of a value, by the rules as they are written down."""
    text = value or DEFAULT_PARTITION
    if url_encode:
        text = escape_partition_value(text)
    return f"p={text}" if hive_style else text
