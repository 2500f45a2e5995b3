"""What is to be read of files, as tasks get it: picklable, and without Spark."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudi_spark.source_files.conditions import Condition


@dataclass(frozen=True, slots=True)
class Part:
    """Row groups of one file, in the order of the file; `size` and `modified` (milliseconds) are
    those that the frame's listing saw."""

    path: str
    size: int
    modified: int
    row_groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileScan:
    """A frame that is files. `splits[i]` is what one task reads, as Spark itself would share the
    files out.

    `stored` are the names by which the files know the columns of `columns`, whose types are those
    that Spark gives to Python. `tested`: the columns that the condition needs, by the files' names
    and with the same types.
    """

    splits: tuple[tuple[Part, ...], ...]
    columns: pa.Schema
    stored: tuple[str, ...]
    tested: pa.Schema
    condition: Condition | None
