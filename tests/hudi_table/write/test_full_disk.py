"""A disk that is full while rows are put aside ends the write, and leaves none of their files on
it."""

from __future__ import annotations

import errno
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.model.options.write_options import DUPLICATE_POLICY
from hudi_table.model.table.config import IndexType
from tests.support.crashes import FIRST, Layout, opened, prepared, read, rows

NEW = rows(("a", "x", 9), ("d", "x", 4), ("e", "y", 5))


@pytest.mark.parametrize(
    ("index", "operation", "options"),
    [
        (IndexType.SIMPLE, "upsert", {}),
        (IndexType.BUCKET, "insert", {DUPLICATE_POLICY: "drop"}),
        (IndexType.SIMPLE, "bulk_insert", {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT", "hoodie.parquet.max.file.size": "1"}),
    ],
    ids=["looked up", "compared", "sorted"],
)  # fmt: skip
def test_a_disk_full_at_any_moment_keeps_no_file_of_the_write(
    index: IndexType, operation, options: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store, put_aside = prepared(Layout(index, True)), pa.ipc.new_file
    for room in count():
        left = room

        def new_file(*args: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return put_aside(*args, **more)

        monkeypatch.setattr(pa.ipc, "new_file", new_file)
        table = opened(store)
        with suppress(OSError):
            table.write(NEW, operation=operation, options=options, max_memory=1)
            break
        assert not list(tmp_path.iterdir()), f"files are left by a disk with room for {room}"
        assert read(store) == frozenset(FIRST)
    assert room >= 2
    assert not list(tmp_path.iterdir())
