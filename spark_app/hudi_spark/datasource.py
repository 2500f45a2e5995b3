"""`spark.read.format("hudi")` without a jar: a Python data source over `hudi_table`.

Facts (measured on pyspark 4.3): columns are never pruned by Spark, so the option `columns` does it; filters arrive
only with `spark.sql.python.filterPushdown.enabled`, and a reader that defines `pushFilters` fails without it, hence the
option `pushFilters`; a table made by `CREATE TABLE … USING hudi` gives a reader no path. A data source cannot ask for
a distribution by file group, so it writes a few rows only: `hudi_spark.write` takes the others.

Options: `path`; `columns` (comma list), `filter` (SQL-like text), `asOf`, `meta` (true adds Hudi's five columns), `query` with
`since`, `until`, `fullScan`, and `pushFilters`; and storage options as `storage.<name>`, whose credentials are better left to the environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hudi_spark.tasks import TableHandle
from hudi_spark.worker import set_up_worker
from hudi_table.api import HudiTable, open_table
from hudi_table.errors import InvalidRequestError
from hudi_table.read.files import stream
from hudi_table.read.plan import ScanPlan
from hudi_table.read.scan import Scan

NAME = "hudi"
_STORAGE = "storage."
_STREAM_OPTIONS = ("since", "fullscan")
"""What a stream is told and a snapshot is not."""


class HudiDataSource(ds.DataSource):
    """The data source `hudi`."""

    @classmethod
    def name(cls) -> str:
        """`hudi`: beside Apache Hudi's own jar, whichever of the two Spark finds first wins; see `register`."""
        return NAME

    def schema(self) -> StructType:
        """The schema of the result, after `columns` and `meta`: of today, or of the moment that a batch asks for."""
        batch = self.options.get("query") is not None
        kept = {key: value for key, value in self.options.items() if batch or key.lower() not in _STREAM_OPTIONS}
        return from_arrow_schema(scan_of(ds.CaseInsensitiveDict(kept)).schema)

    def reader(self, schema: StructType) -> ds.DataSourceReader:
        """A reader of the snapshot."""
        del schema
        pushes = self.options.get("pushFilters", "false").lower() == "true"
        return PushingReader(self.options) if pushes else SnapshotReader(self.options)

    def streamReader(self, schema: StructType) -> ds.DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A reader of what changes. Raises InvalidRequestError on Spark before 4.2."""
        try:
            from hudi_spark.streaming import HudiStreamReader
        except ImportError as error:
            raise InvalidRequestError("readStream.format('hudi') needs Spark 4.2 or newer") from error
        return HudiStreamReader(self.options, schema, table_of(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> ds.DataSourceWriter:
        """A writer of a few rows; what is many, `hudi_spark.write` takes."""
        from hudi_spark.small_writes import SmallWriter

        return SmallWriter(self.options, schema, overwrite, table_of(self.options))


@dataclass
class FilePartition(ds.InputPartition):
    """One base file of the plan."""

    number: int


class SnapshotReader(ds.DataSourceReader):
    """Reads the files of one plan, one Spark partition a file. Pickled to the tasks with its plan."""

    def __init__(self, options: Mapping[str, str]) -> None:
        table = table_of(options)
        self.plan: ScanPlan = scan_of(options, table=table).plan
        self.handle = TableHandle.of(table.context)

    def partitions(self) -> Sequence[ds.InputPartition]:
        """One partition a file."""
        return [FilePartition(number) for number in range(len(self.plan.slices))]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one file."""
        if not isinstance(partition, FilePartition):
            # A table without files: Spark then asks once, with no partition.
            return
        set_up_worker()
        one = replace(self.plan, slices=(self.plan.slices[partition.number],))
        yield from stream(self.handle.open(), one)


class PushingReader(SnapshotReader):
    """Takes Spark's filters for pruning partitions and row groups; Spark applies them again to the rows."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._options = ds.CaseInsensitiveDict(options)

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:  # noqa: N802 - Spark's name
        """Narrow the plan by the filters that we can express, and give all back: Spark checks the rows as well."""
        known = [condition for condition in map(as_condition, filters) if condition is not None]
        if known:
            self.plan = scan_of(self._options, known).plan
        return filters


def table_of(options: Mapping[str, str]) -> HudiTable:
    """The table at the options' path, as of their moment."""
    return open_table(path_of(options), as_of=options.get("asOf"), storage_options=storage_options(options))


def scan_of(
    options: Mapping[str, str], conditions: Sequence[tuple[str, str, object]] = (), table: HudiTable | None = None
) -> Scan:
    """The scan that the options describe. Raises InvalidOptionError."""
    table = table or table_of(options)
    names = [name.strip() for name in options.get("columns", "").split(",") if name.strip()]
    given: object = options.get("filter") or None
    if given is not None and conditions:
        # Spark's own filters come on top of the option; rows are filtered by Spark again, so one of the two suffices.
        conditions = ()
    return table.scan(
        names or None, given if given is not None else (list(conditions) or None),
        meta=_is_on(options, "meta"), query=options.get("query", "snapshot"),
        since=options.get("since"), until=options.get("until"), full_scan=_is_on(options, "fullScan"),
    )  # fmt: skip


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"


def as_condition(item: ds.Filter) -> tuple[str, str, object] | None:
    """A filter of Spark as (column, operator, value), or None for what we do not push."""
    operators = {
        ds.EqualTo: "=",
        ds.GreaterThan: ">",
        ds.GreaterThanOrEqual: ">=",
        ds.LessThan: "<",
        ds.LessThanOrEqual: "<=",
    }
    attribute: Sequence[str] = getattr(item, "attribute", ())
    value: Any = getattr(item, "value", None)
    if len(attribute) != 1:
        return None
    if isinstance(item, ds.In):
        return (attribute[0], "in", list(value))
    operator = operators.get(type(item))
    return None if operator is None else (attribute[0], operator, value)


def path_of(options: Mapping[str, str]) -> str:
    """The table's location. Raises InvalidRequestError where Spark hands over none."""
    path = options.get("path")
    if not path:
        raise InvalidRequestError(
            "no path: give spark.read.format('hudi').load(path). Spark hands no path to a Python data source for tables "
            "made by CREATE TABLE … USING hudi; use hudi_table.create_table, and CREATE TEMPORARY VIEW … USING hudi OPTIONS (path …)"
        )
    return path


def storage_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that start with `storage.`, without that."""
    return {key[len(_STORAGE) :]: value for key, value in options.items() if key.lower().startswith(_STORAGE)}
