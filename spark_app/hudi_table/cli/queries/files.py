"""`hudictl files BASE`: the file groups of a table, each with its slices."""

from __future__ import annotations

import argparse
from itertools import groupby
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.opened import opened
from hudi_table.cli.output import Column, Document, emit
from hudi_table.read.output.human import number, size
from hudi_table.read.tables import slice_rows
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.view.file_system_view import FileSystemView

_COLUMNS = (
    Column("fileId", "File group"),
    Column("partition", "Partition"),
    Column("instant", "Instant"),
    Column("sizeBytes", "Size", size, right=True),
    Column("slices", "Slices", lambda slices: number(len(slices)), right=True),
    Column("logFiles", "Logs", number, right=True),
    Column("totalBytes", "All slices", size, wide=True, right=True),
    Column("baseFile", "Base file", wide=True),
)


def run(args: argparse.Namespace) -> int:
    """Print one line for each file group with its newest slice; JSON and YAML hold all slices."""
    context = opened(args).context
    found = with_relists(context, lambda: slice_rows(FileSystemView(context, load_timeline(context))))
    if args.partition is not None:
        found = [row for row in found if row["partition"] == args.partition.strip("/")]
    rows: list[dict[str, Any]] = []
    for (partition, file_id), group in groupby(found, key=lambda row: (row["partition"], row["file_id"])):
        slices = list(group)
        latest = slices[-1]
        rows.append(
            {
                "fileId": file_id,
                "partition": partition,
                "instant": latest["instant"],
                "sizeBytes": latest["size_bytes"],
                "slices": [
                    {"instant": s["instant"], "baseFile": s["base_file"], "sizeBytes": s["size_bytes"]} for s in slices
                ],
                "logFiles": latest["log_files"],
                "totalBytes": sum(s["size_bytes"] or 0 for s in slices),
                "baseFile": latest["base_file"],
            }
        )
    emit(Document("FileGroupList", _COLUMNS, rows), args.output)
    return exits.GOOD
