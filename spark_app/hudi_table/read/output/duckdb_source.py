"""The DuckDB bridge: a scan as a data set from which DuckDB asks for columns and rows.

DuckDB hands the columns that it needs and the conditions that it can express to `scanner` of a
`pyarrow.dataset.Dataset`, and does not check these conditions again: here they join the scan's own
filter, so that they prune partitions, buckets, row groups and rows. Facts (DuckDB 2.0): of floats
equality alone is handed down, for NaN is DuckDB's greatest number; `in` comes wrapped in an
`if_else`, from which Arrow concludes nothing, so what it means is said once more beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.types as pt

from hudi_table.errors import HudiError, InvalidRequestError
from hudi_table.read.files import stream
from hudi_table.read.filter.expression_tree import possible_values, tree
from hudi_table.read.filter.predicates import Filter
from hudi_table.read.plan import ScanPlan, narrow
from hudi_table.read.replanned import Replanned
from hudi_table.table.timeline.context import TableContext


class HudiDataset(ds.Dataset):  # type: ignore[misc] # pyarrow has no type information
    """The rows of one plan; only what DuckDB calls is there. Every scan gives the same rows.

    `failure` is the last error of ours, since DuckDB passes on the text of it alone.
    """

    def __init__(self, context: TableContext, planned: Replanned[ScanPlan]) -> None:
        # Dataset's own constructor forbids itself; there is no C++ data set behind this one.
        self._context = context
        self._planned = planned
        self.failure: HudiError | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns that there are. DuckDB asks for them as soon as it gets the data set: that
        makes the plan."""
        try:
            return self._planned.plan.schema
        except HudiError as error:
            self.failure = error
            raise

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: object  # noqa: A002
    ) -> HudiScanner:  # fmt: skip
        """What DuckDB reads from, once."""
        names = None if columns is None else list(columns)
        return HudiScanner(pa.RecordBatchReader.from_batches(*self.rows(names, filter)))

    def rows(
        self, columns: Sequence[str] | None, condition: pc.Expression | None
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """One stream of the columns and rows that an engine asks for, and its schema."""
        try:
            names = self.schema.names if columns is None else columns
            more = None if condition is None else Filter.of(_with_values(condition))
            first = self._planned.plan
            narrowed = narrow(self._context, first, names, more)
        except HudiError as error:
            self.failure = error
            raise

        def read(plan: ScanPlan) -> Generator[pa.RecordBatch, None, None]:
            narrow_plan = narrowed if plan is first else narrow(self._context, plan, names, more)
            return stream(self._context, narrow_plan)

        return narrowed.schema, self._batches(read)

    def _refused(self, *_: object, **__: object) -> NoReturn:
        raise InvalidRequestError(
            "this data set is for DuckDB alone: use the scan itself (to_arrow, to_batches, count), which takes columns and a filter"
        )

    # Of the base class they would reach for a C++ data set that is not there.
    count_rows = filter = get_fragments = head = join = join_asof = replace_schema = sort_by = _refused
    take = to_batches = to_table = _refused
    partition_expression = property(_refused)

    def _batches(self, read: Callable[[ScanPlan], Generator[pa.RecordBatch, None, None]]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._planned.batches(read)
        except HudiError as error:
            self.failure = error
            raise


class HudiScanner:
    """One stream, as DuckDB takes it from a `pyarrow.dataset.Scanner`."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the stream."""
        return self._reader.schema

    def to_reader(self) -> pa.RecordBatchReader:
        """The stream itself."""
        return self._reader


def _with_values(condition: pc.Expression) -> pc.Expression:
    """The condition, and beside it the values that it leaves to columns in the plain form."""
    for name, values in possible_values(tree(condition)).items():
        kinds = {value.type for value in values}
        # Not of floats, of which DuckDB hands down equality: a set of Arrow's holds one of the two zeros.
        if len(kinds) == 1 and all(value.is_valid and not pt.is_floating(value.type) for value in values):
            condition = condition & pc.field(name).isin(pa.array(list(values), kinds.pop()))
    return condition
