"""Planning, as a worker of its own: each step is what a write, or a look at the table, does before
the first byte of data.

`touched` and `whole` are of the table's folders, `listed_touched` and `listed_whole` of the
metadata table's partition `files`.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from bench.rows import read
from hudi_table import open_table
from hudi_table.metadata.merging import listed
from hudi_table.metadata.reading import read_listing, slice_parts
from hudi_table.metadata.table import MetadataTable
from hudi_table.model.metadata_table import MetadataPartition, group_file_id
from hudi_table.model.names import parse_base_file
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.write import incoming
from hudi_table.write.attempt import Attempt, begin_attempt
from hudi_table.write.keygen.table_keys import TableKeys
from hudi_table.write.operations import WriteRequest, check


class Planning:
    """The contender. `groups` of the last answer say what a step has seen."""

    def __init__(self) -> None:
        self._attempt: Attempt | None = None

    def timeline(self, rows: Path, base: Path) -> None:
        """Opening the table, and its timeline."""
        del rows
        assert load_timeline(open_table(str(base)).context).last_commit is not None

    def plan(self, rows: Path, base: Path) -> None:
        """An upsert of the rows as far as its plan: opened, checked, routed by bucket, claimed,
        seen, planned."""
        ctx, data = open_table(str(base)).context, read(rows)
        request = WriteRequest("upsert")
        reader, prepared = check(ctx, data, request, load_timeline(ctx))
        assert reader is not None
        taken = incoming.take_in(reader, prepared, TableKeys.of(ctx.config), LocalEngine(), request.max_memory)
        with taken.rows:
            self._attempt = begin_attempt(ctx, prepared)
            planned = self._attempt.plan(taken.slots, taken.slot_rows(), taken.rows.bytes_total)
        assert all(item.task.base_path is not None for item in planned), "every row goes to a file group that is there"
        assert sum(item.rows for item in planned) == len(data)

    def give_up(self, rows: Path, base: Path) -> None:
        """The end of that upsert, without a file."""
        del rows, base
        assert self._attempt is not None
        self._attempt.give_up(None)
        self._attempt = None

    def touched(self, rows: Path, base: Path) -> None:
        """The latest slices of the rows' partitions."""
        ctx = open_table(str(base)).context
        names = _partitions(rows)
        found = FileSystemView(ctx, load_timeline(ctx)).latest_slices(names)
        assert {item.partition for item in found} == set(names)

    def whole(self, rows: Path, base: Path) -> None:
        """Those of all partitions."""
        ctx = open_table(str(base)).context
        found = FileSystemView(ctx, load_timeline(ctx)).latest_slices()
        assert {item.partition for item in found} >= set(_partitions(rows))

    def listed_touched(self, rows: Path, base: Path) -> None:
        """The files of the rows' partitions as the metadata table lists them."""
        table = _metadata(base)
        group = table.group(MetadataPartition.FILES, group_file_id(MetadataPartition.FILES, 0))
        assert group is not None
        names = _partitions(rows)
        found = listed(slice_parts(table, group.latest, pa.array(names, pa.string())))
        assert set(found["key"].to_pylist()) == set(names)

    def listed_whole(self, rows: Path, base: Path) -> None:
        """Those of all partitions."""
        found = read_listing(_metadata(base))
        names = found.filter(pa.compute.is_in(found["key"], pa.array(_partitions(rows))))["name"].to_pylist()
        assert names
        assert all(parse_base_file(name) is not None for name in names)


def _metadata(base: Path) -> MetadataTable:
    ctx = open_table(str(base)).context
    found = MetadataTable.load(ctx, load_timeline(ctx))
    assert found is not None, "the table has no metadata table"
    return found


def _partitions(rows: Path) -> list[str]:
    return sorted(set(read(rows, ("day",))["day"].to_pylist()))
