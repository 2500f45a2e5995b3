"""What public calls take: the words of their arguments, the options of a write, rows, and the
schema of a new table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict

from hudi_table.errors import InvalidSchemaError
from hudi_table.model.options.write_options import Operation
from hudi_table.model.progress import ProgressFunction
from hudi_table.table.store.ports import Engine

if TYPE_CHECKING:
    import pyarrow as pa

OperationWord = Literal[
    "insert", "upsert", "delete", "bulk_insert", "insert_overwrite", "insert_overwrite_table", "delete_partition"
]
OperationName = OperationWord | Operation
SortModeName = Literal["none", "global", "partition"]
TableTypeName = Literal["CopyOnWrite", "MergeOnRead"]
MergeModeName = Literal["CommitTime", "EventTime"]
PartialUpdatesName = Literal["IgnoreDefaults", "FillUnavailable"]
IfExists = Literal["error", "open"]


class ArrowStream(Protocol):
    """Rows, as pyarrow, Polars and pandas have them: whatever exports an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a capsule of Arrow's C interface."""
        ...


class ArrowSchema(Protocol):
    """A schema, as pyarrow and Polars have it."""

    def __arrow_c_schema__(self) -> object:
        """The schema as a capsule of Arrow's C interface."""
        ...


SchemaLike: TypeAlias = "ArrowSchema | ArrowStream | Mapping[str, pa.DataType]"
"""A schema of pyarrow or Polars; rows, of which the schema is taken; or Arrow types by column
name."""


class WriteOptions(TypedDict, total=False):
    """What a write takes beside its rows and its operation; see `write_hudi`."""

    max_memory: int
    options: Mapping[str, str] | None
    extra_metadata: Mapping[str, str] | None
    batch: str | None
    sort_mode: SortModeName | None
    partitions: Sequence[str]
    engine: Engine | None
    progress: ProgressFunction | None


def schema_of(schema: Any) -> pa.Schema:
    """The Arrow schema that is meant by a `SchemaLike`. Raises InvalidSchemaError, which names what
    it cannot take."""
    import pyarrow as pa

    if isinstance(schema, pa.Schema):
        return schema
    # A schema of Polars is a dict, too: it is asked before dicts are.
    if hasattr(schema, "__arrow_c_schema__"):
        return pa.schema(schema)
    if isinstance(schema, pa.RecordBatchReader):
        return schema.schema
    if hasattr(schema, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(schema).schema
    if isinstance(schema, Mapping):
        for name, kind in schema.items():
            if not isinstance(kind, pa.DataType):
                raise InvalidSchemaError(
                    f"the type of column {name!r} is {kind!r}: give a type of pyarrow, such as pyarrow.string() or pyarrow.int64()"
                )
        return pa.schema(dict(schema))
    hint = "; call .collect_schema() first" if hasattr(schema, "collect_schema") else ""
    raise InvalidSchemaError(
        f"a {type(schema).__name__} is no schema{hint}; give a pyarrow or Polars schema, rows of that schema, or a dict of "
        "column names and pyarrow types"
    )
