"""Writes so small that the driver makes them alone: one Spark job brings the rows, `LocalEngine`
writes and commits.

A shuffle, its planning and the way of every row into a Python worker and back cost more than such a
write itself (measured on 10,000 rows). Only where the work grows with the rows alone, which is logs
under a bucket index: no key is looked up and no base file is rewritten.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from hudi_table.index.base import Index
from hudi_table.model.table.config import TableConfig, TableType
from hudi_table.write.checks.request import Prepared
from hudi_table.write.keygen.table_keys import TableKeys

ESTIMATE_MAX = 32 << 20
"""Bytes that Spark estimates for the rows: of files what they take on disk, a fifth or so of it in
Arrow."""
FILES_MAX = 256
"""Log files that the driver writes itself: tasks write more of them at once."""
_KNOWN_PLANS = frozenset({"Project", "Filter", "LogicalRelation", "LocalRelation", "Sort", "Union"})
"""Of these an estimate is of the rows themselves. Of what Python makes it is a guess from what goes
in."""


def small_rows(df: DataFrame, config: TableConfig, prepared: Prepared) -> pa.Table | None:
    """All rows of the frame, if the driver shall write them; None if tasks shall, or if the frame
    is empty.

    What is collected is bounded by the estimate, and where that is wrong by Spark's own
    `spark.driver.maxResultSize`: past it, as after every other failure, tasks do the write and say
    what is wrong.
    """
    if config.type is not TableType.MERGE_ON_READ or prepared.index.reads_snapshot:
        return None
    estimate = _estimate(df)
    if estimate is None or estimate > ESTIMATE_MAX or _unbounded(df):
        return None
    try:
        rows = df.toArrow()
    except PySparkException:
        return None
    return rows if go_to_few_logs(rows, config, prepared.index) else None


def go_to_few_logs(rows: pa.Table, config: TableConfig, index: Index) -> bool:
    """Whether rows, at least one, go to so few logs that the driver writes them, and none is looked
    up."""
    if config.type is not TableType.MERGE_ON_READ or index.reads_snapshot:
        return False
    keys = TableKeys(config)
    paths = {path for batch in rows.to_batches() for path in keys.partition_paths(batch).unique().to_pylist()}
    return 0 < len(paths) <= FILES_MAX and sum(len(index.slots_in(path)) for path in paths) <= FILES_MAX


def _unbounded(df: DataFrame) -> bool:
    """Whether the session collects without a limit, so that a wrong estimate could fill the
    driver's memory."""
    limit = df.sparkSession.conf.get("spark.driver.maxResultSize", "1g")
    return not str(limit).strip("0bkmgtBKMGT ")


def _estimate(df: DataFrame) -> int | None:
    """Bytes of the rows as the plan's statistics say; None if they cannot be known, as under Spark
    Connect."""
    try:
        plan: Any = df._jdf.queryExecution().optimizedPlan()
        return int(str(plan.stats().sizeInBytes())) if _is_known(plan) else None
    except (AttributeError, PySparkException, Py4JError):
        return None


def _is_known(plan: Any) -> bool:
    """Whether every node of the plan is one whose estimate counts."""
    if plan.nodeName().partition(" ")[0] not in _KNOWN_PLANS:
        return False
    children = plan.children()
    return all(_is_known(children.apply(number)) for number in range(children.size()))
