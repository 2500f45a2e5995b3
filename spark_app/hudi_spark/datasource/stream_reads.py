"""`spark.readStream.format("hudi")`: every micro-batch is an incremental query (t1, t2].

Offsets are instants, so a checkpoint says up to which write the rows have been taken. On table
version 6 a write gets its instant when it begins: an offset therefore stops before the earliest
write that is still pending, else what completes later under an earlier instant would be passed
over. A write that begins after an offset was given out gets a later instant (commit protocol, step
3 of the writer). On versions 8 and 9 offsets are times of completion, which only grow. A batch
reads the table as of t2, so replaying it after a crash gives the same rows.

Options beside those of the batch source: `since` (`earliest`, the default; `latest`; an instant;
Hudi's name is `hoodie.datasource.streaming.startOffset`), `maxInstantsPerTrigger`, `fullScan`.
Facts (pyspark 4.3): one process answers for offsets and partitions as long as the query runs,
another plans `read`; a reader that bounds its batches gets one of Spark's own limits back, of which
files come closest to instants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from hudi_spark.datasource.format_options import ReadRequest
from hudi_spark.tasks import TableHandle
from hudi_spark.worker import set_up_worker
from hudi_table.api import HudiTable
from hudi_table.codec.conform import conform
from hudi_table.errors import ExpiredError
from hudi_table.model.names import COMMIT_TIME
from hudi_table.model.options.values import whole
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.read.files import stream
from hudi_table.read.filter.predicates import Filter
from hudi_table.read.incremental import check_commit_times, rows_of, stable_commits
from hudi_table.read.moments import EARLIEST, Span, instant_of
from hudi_table.read.plan import Request, ScanPlan, make_plan, narrow
from hudi_table.read.schema import NAMED_FIELDS, schema_as_of
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists

LATEST = "latest"
INSTANT = "instant"
"""The key of an offset; '' is before the first write."""
Offset = dict[str, str]


@dataclass
class SlicePartition(ds.InputPartition):
    """One file slice of a batch, with all that reading it needs."""

    plan: ScanPlan


class HudiStreamReader(ds.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches of one table, in the columns that the query began with."""

    def __init__(self, request: ReadRequest, schema: StructType, table: HudiTable) -> None:
        check_commit_times(table.context)
        self._handle = TableHandle.of(table.context)
        self._schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._filter = request.filter
        self._since = request.since or EARLIEST
        self._full_scan = request.full_scan
        self._most = _most(request.most_instants)
        self._target: str | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name, as those below
        """Where a query without a checkpoint begins. Raises InvalidOptionError for `since` that is
        no moment."""
        if self._since == EARLIEST:
            return {INSTANT: ""}
        ctx = self._handle.open()
        if self._since == LATEST:
            return {INSTANT: _newest(ctx)}
        return {INSTANT: instant_of(self._since, ctx.config.timezone)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The bound of `maxInstantsPerTrigger`."""
        return ReadAllAvailable() if self._most is None else ReadMaxFiles(self._most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is there now is what the query will take."""
        self._target = _newest(self._handle.open())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """The last write of the next batch; `start` if there is none. The first batch from the
        earliest is one snapshot."""
        begin = comparable_time(start[INSTANT])
        known = [commit.moment for commit in stable_commits(load_timeline(self._handle.open()))]
        upto = "" if self._target is None else comparable_time(self._target)
        new = [
            time for time in known
            if comparable_time(time) > begin and (self._target is None or comparable_time(time) <= upto)
        ]  # fmt: skip
        if isinstance(limit, ReadMaxFiles) and begin:
            new = new[: limit.max_files]
        return {INSTANT: new[-1]} if new else start

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """The newest write that could be taken, for the progress of the query."""
        newest = _newest(self._handle.open())
        return {INSTANT: newest} if newest else None

    def partitions(self, start: Offset, end: Offset) -> Sequence[ds.InputPartition]:
        """The slices that hold what changed. Raises InvalidOptionError where the timeline no longer
        tells or files are gone."""
        if start == end:
            return []
        ctx = self._handle.open()
        plan = with_relists(ctx, lambda: self._plan(ctx, start[INSTANT], end[INSTANT]))
        return [SlicePartition(replace(plan, slices=(each,))) for each in plan.slices]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one slice, in the columns that the query began with."""
        assert isinstance(partition, SlicePartition)
        set_up_worker()
        for batch in stream(self._handle.open(), partition.plan):
            yield conform(batch, self._schema)

    def _plan(self, ctx: TableContext, since: str, until: str) -> ScanPlan:
        known = {field.name for field in [*NAMED_FIELDS, *schema_as_of(ctx, *load_timeline(ctx).at(until))]}
        columns = tuple(name for name in self._schema.names if name in known)
        # From the beginning on all that there is has changed: no commit has to be known for it.
        span = Span(since, until, full_scan=self._full_scan or not since)
        request = Request(columns, Filter.of(self._filter), until, "incremental", span=span)
        try:
            return make_plan(ctx, request)
        except ExpiredError:
            if not self._full_scan:
                raise
        # The state at `until` is gone. Rows that changed later are in the batches that follow, the others are as they were.
        today = Request(tuple(dict.fromkeys((*columns, COMMIT_TIME))), request.filter)
        changed = rows_of(ctx, load_timeline(ctx), span)
        return narrow(ctx, make_plan(ctx, today), columns, Filter.of(changed.expression))


def _newest(ctx: TableContext) -> str:
    commits = stable_commits(load_timeline(ctx))
    return commits[-1].moment if commits else ""


def _most(text: str | None) -> int | None:
    if text is None:
        return None
    return whole("maxInstantsPerTrigger", text, 1)
