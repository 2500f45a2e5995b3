"""The DuckDB bridge: a scan as a data set from which DuckDB asks for columns and rows.

DuckDB hands the columns that it needs and the conditions that it can express to `scanner` of a `pyarrow.dataset.Dataset`, and
does not check these conditions again: here they join the scan's own filter, so that they prune partitions, buckets, row
groups and rows. Facts (DuckDB 2.0): comparisons of floats are not handed down, for NaN is DuckDB's greatest number; `in` comes
wrapped in an `if_else`, from which Arrow concludes nothing, so what it means is said once more beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hudi_table.errors import HudiError
from hudi_table.read.expression_tree import possible_values, tree
from hudi_table.read.files import stream
from hudi_table.read.plan import ScanPlan, narrow
from hudi_table.read.predicates import Filter
from hudi_table.table.context import TableContext


class HudiDataset(ds.Dataset):  # type: ignore[misc] # pyarrow has no type information
    """The rows of one plan; only what DuckDB calls is there. Every scan gives the same rows.

    `failure` is the last error of ours, since DuckDB passes on the text of it alone.
    """

    def __init__(self, context: TableContext, plan: ScanPlan) -> None:
        # Dataset's own constructor forbids itself; there is no C++ data set behind this one.
        self._context = context
        self._plan = plan
        self.failure: HudiError | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns that there are."""
        return self._plan.schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: object  # noqa: A002
    ) -> HudiScanner:  # fmt: skip
        """What DuckDB reads from, once."""
        try:
            narrowed = narrow(
                self._context,
                self._plan,
                self._plan.schema.names if columns is None else list(columns),
                None if filter is None else Filter.of(_with_values(filter)),
            )
        except HudiError as error:
            self.failure = error
            raise
        return HudiScanner(pa.RecordBatchReader.from_batches(narrowed.schema, self._batches(narrowed)))

    def _batches(self, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
        try:
            yield from stream(self._context, plan)
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
        if len(kinds) == 1 and all(value.is_valid for value in values):
            condition = condition & pc.field(name).isin(pa.array([v.as_py() for v in values], kinds.pop()))
    return condition
