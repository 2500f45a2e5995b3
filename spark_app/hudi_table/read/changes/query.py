"""`Changes`: a lazy query of what every commit changed."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_table.read.changes.plan import ChangesPlan, ChangesRequest, make_changes_plan
from hudi_table.read.changes.rows import step_batches
from hudi_table.read.incremental import last_stable
from hudi_table.read.output.exports import ArrowResult
from hudi_table.read.prefetch import first_rows
from hudi_table.read.replanned import Replanned
from hudi_table.table.timeline.context import TableContext

STEPS_AHEAD = 2
BATCHES_AHEAD = 2


class Changes(ArrowResult):
    """Changes of rows, commit after commit, oldest first; within a commit by file group, with
    replaced groups first.

    `op` is `i`, `u` or `d`, `ts_ms` the instant of the commit (Hudi's name for it), `before` and
    `after` structs of the table's columns, null where there is none. The commits are fixed when the
    plan is first needed. Methods that read raise ExpiredError where files of a commit were
    cleaned, else what those of `Scan` raise.
    """

    def __init__(self, context: TableContext, request: ChangesRequest) -> None:
        self._context = context
        self._request = request
        self._planned = Replanned(context, lambda: make_changes_plan(context, request))

    @property
    def context(self) -> TableContext:
        """The table."""
        return self._context

    @property
    def plan(self) -> ChangesPlan:
        """The files that will be read."""
        return self._planned.plan

    @property
    def schema(self) -> pa.Schema:
        """The result's Arrow schema."""
        return self.plan.schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._planned.batches(self._of)

    def _all_batches(self) -> list[pa.RecordBatch]:
        return self._planned.value(lambda plan: list(self._of(plan)))

    def _of(self, plan: ChangesPlan) -> Generator[pa.RecordBatch, None, None]:
        sources = [partial(step_batches, self._context, plan, step) for step in plan.steps]
        return first_rows(sources, self._request.limit, ahead=STEPS_AHEAD, depth=BATCHES_AHEAD)

    def _said(self) -> dict[str, Any]:
        request = self._request
        asked = {"images": request.images, "columns": request.columns, "limit": request.limit}
        return {"table": self._context.base_path, "query": "cdc", "since": request.span.since, **asked}

    def _stable(self) -> str:
        return last_stable(self._context)

    def _newest(self) -> str:
        return self.plan.slice_plan.reached

    def __repr__(self) -> str:
        span = self._request.span
        return f"Changes({self._context.base_path!r}, since={span.since!r}, until={span.until!r})"
