"""Which frames are files and nothing more: a scan of Parquet files on a local disk, below
projections that only choose and rename, and filters that Arrow computes with the same meaning.

It is seen in the optimised plan. Whatever is not known to be so is Spark's to read: then there is
no scan here, and rows come through the JVM as of any other frame.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from hudi_spark.source_files.conditions import Condition, condition_of
from hudi_spark.source_files.footers import FILES_MAX, Piece, shared_out
from hudi_spark.source_files.scan import FileScan

_RELATION = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_SPLIT = "org.apache.spark.sql.execution.datasources.FilePartition"
_LISTING = frozenset({"path", "paths", "pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter"})
"""Options that say which files there are; others change what is read of them."""
_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.archive.reader.enabled": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}
"""What a session must say, if it knows the setting, for files to mean what their columns say."""
_REBASE = "spark.sql.parquet.datetimeRebaseModeInRead"
_ENCRYPTION = "parquet.crypto.factory.class"
_FLAT = (
    st.BooleanType, st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.FloatType, st.DoubleType,
    st.DecimalType, st.StringType, st.BinaryType, st.DateType, st.TimestampType, st.TimestampNTZType,
)  # fmt: skip


def file_scan(df: DataFrame) -> FileScan | None:
    """The files that the frame is; None if Spark has to read it."""
    try:
        query: Any = df._jdf.queryExecution()
        found = _Found()
        if not _trusted(df.sparkSession) or not found.walk(query.optimizedPlan()):
            return None
        return _scan(df, query, found)
    except (AttributeError, PySparkException, Py4JError, pa.ArrowException, OSError):
        return None


def _trusted(spark: SparkSession) -> bool:
    said = {name: str(spark.conf.get(name, wanted)).lower() for name, wanted in _SETTINGS.items()}
    hadoop: Any = spark._jsparkSession.sessionState().newHadoopConf()
    return said == _SETTINGS and hadoop.get(_ENCRYPTION) is None


class _Found:
    """What a plan is made of: the names by which files know its attributes, and its filters."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.kinds: dict[str, st.DataType] = {}
        self.filters: list[Any] = []

    def walk(self, plan: Any) -> bool:
        """Take in a plan; whether it is a scan."""
        kind = plan.getClass().getSimpleName()
        if kind == "LogicalRelation":
            return self._relation(plan)
        if kind == "Filter" and self.walk(plan.child()):
            self.filters.append(plan.condition())
            return True
        return kind == "Project" and self.walk(plan.child()) and all(map(self._column, _each(plan.projectList())))

    def _relation(self, plan: Any) -> bool:
        relation = plan.relation()
        if relation.getClass().getName() != _RELATION or plan.isStreaming() or plan.catalogTable().isDefined():
            return False
        options = {name.lower() for name in relation.options().keySet().mkString("\n").split("\n") if name}
        plain = (
            relation.fileFormat().getClass().getName() == _FORMAT
            and relation.bucketSpec().isEmpty()
            and relation.partitionSchema().isEmpty()
            and options <= _LISTING
            and len(relation.location().inputFiles()) <= FILES_MAX
        )
        schema = st.StructType.fromJson(json.loads(relation.dataSchema().json()))
        output = list(_each(plan.output()))
        if not plain or [item.name() for item in output] != schema.names:
            return False
        for item, field in zip(output, schema.fields, strict=True):
            # Metadata says what Spark makes of a column beside its type: padding, defaults.
            if _is_plain(field.dataType) and set(field.metadata) <= {"comment"}:
                self.names[item.exprId().id()] = field.name
                self.kinds[field.name] = field.dataType
        return True

    def _column(self, expression: Any) -> bool:
        kind, source = expression.getClass().getSimpleName(), expression
        if kind == "Alias":
            source = expression.child()
        if source.getClass().getSimpleName() != "AttributeReference":
            return False
        name = self.names.get(source.exprId().id())
        if name is not None:
            self.names[expression.exprId().id()] = name
        return name is not None


def _is_plain(kind: st.DataType) -> bool:
    """Whether values of a type are the same in Arrow, and compare alike: text of a collation does
    not."""
    return type(kind) in _FLAT and (not isinstance(kind, st.StringType) or kind == st.StringType())


def _scan(df: DataFrame, query: Any, found: _Found) -> FileScan | None:
    zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
    stored = [found.names.get(item.exprId().id()) for item in _each(query.optimizedPlan().output())]
    if None in stored or len(stored) != len(df.columns) or len(set(df.columns)) != len(df.columns):
        return None
    known = to_arrow_schema(st.StructType([st.StructField(*item) for item in found.kinds.items()]), timezone=zone)
    names = [name for name in stored if name is not None]
    columns = to_arrow_schema(df.schema, timezone=zone)
    if [known.field(name).type for name in names] != columns.types:
        return None
    condition: Condition | None = None
    for item in found.filters:
        tested = condition_of(item, found.names, {field.name: field.type for field in known})
        if tested is None:
            return None
        condition = tested if condition is None else Condition("And", inner=(condition, tested))
    needed = set() if condition is None else condition.columns()
    read = pa.schema([field for field in known if field.name in {*names, *needed}])
    lenient = df.sparkSession.conf.get(_REBASE) == "CORRECTED"
    splits = shared_out([list(split) for split in _splits(query)], read, corrected=lenient)
    if splits is None:
        return None
    return FileScan(splits, columns, tuple(names), pa.schema([known.field(name) for name in sorted(needed)]), condition)


def _splits(query: Any) -> Iterator[Iterator[Piece]]:
    """What each of Spark's own tasks would read."""
    for split in query.toRdd().partitions():
        if split.getClass().getName() != _SPLIT:
            raise PySparkException(f"{split.getClass().getName()} is no part of files")
        yield (
            Piece(
                item.toPath().toUri().getScheme(), item.toPath().toUri().getPath(),
                item.start(), item.length(), item.fileSize(), item.modificationTime(),
            )
            for item in split.files()
        )  # fmt: skip


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))
