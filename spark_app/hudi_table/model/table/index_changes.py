"""Whether rows of a table lie where every other index would look for them."""

from __future__ import annotations

from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.index_properties import RECORD_INDEX_MOVES, keys_move


def exchange_problem(config: TableConfig) -> str | None:
    """Why a table cannot look its keys up in another way, to go on behind its name; None if it can.

    A record index whose keys stay leaves rows in folders that their columns contradict, and filters
    on partitions would lose them once the table says that its keys move.
    """
    stays = config.index is not None and config.index.type.may_keep_partition and not keys_move(config)
    if not stays or not config.partition_by:
        return None
    return (
        f"has an index RecordIndex whose keys stay in the partition in which they are found ({RECORD_INDEX_MOVES} is not "
        "true), so that rows may lie in another partition than their columns name: keep RecordIndex, or write the rows to a new table"
    )
