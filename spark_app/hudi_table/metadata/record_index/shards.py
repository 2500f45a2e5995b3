"""The file groups of a record index by partition: which data partitions have some, and how many.

A key lies in number `abs(hash) mod count` of its data partition, so their count must be the same
for everybody. It follows from the names of those that are there for sure: with a base file, or with
a log of a write that completed. Whoever writes to a partition that has none begins all of them in
one delta, so that they are there or not there together.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_table.errors import CorruptTableError
from hudi_table.model.metadata_table import MetadataPartition, group_file_id, partition_of_shard
from hudi_table.table.rows.log_scan import ShownInstants
from hudi_table.table.view.file_groups import LogFile


def is_there(logs: Iterable[LogFile], counted: ShownInstants, *, based: bool) -> bool:
    """Whether a file group stays, whatever becomes of writes that are not decided. Logs that name
    no instant are those of a plan, or of Hudi."""
    return based or any(log.instant is None or log.instant in counted for log in logs)


def shard_counts(file_ids: Iterable[str], base_path: str) -> dict[str, int]:
    """How many file groups each data partition has. Raises CorruptTableError if one is missing
    among them."""
    ids_of: dict[str, set[str]] = {}
    for file_id in file_ids:
        partition = partition_of_shard(file_id)
        if partition is not None:
            ids_of.setdefault(partition, set()).add(file_id)
    for partition, ids in ids_of.items():
        if ids != {group_file_id(MetadataPartition.RECORD_INDEX, number, partition) for number in range(len(ids))}:
            raise CorruptTableError(
                f"the record index of partition {partition!r} lacks file groups: there are {', '.join(sorted(ids))}; drop the metadata "
                "table and build it again",
                base_path=base_path,
            )
    return {partition: len(ids) for partition, ids in ids_of.items()}
