"""What a filter cannot match: partitions by the values in their paths, row groups by their
statistics.

Both say what holds for every row of a part (a *guarantee*) and let Arrow decide whether the filter
can then still be true. A guarantee is given only where it is certain; without one a part is read
and filtered, so that pruning never changes rows. Facts (Hudi 0.15.0): null and empty values lie in
`__HIVE_DEFAULT_PARTITION__` (`default` in old tables); a `/` in a value that is not encoded makes
two folders; the timestamp generator leaves the column's raw value in the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.model.names import DEFAULT_PARTITION, unescape_partition_value
from hudi_table.model.table.config import PartitionField, PartitionType, TableConfig
from hudi_table.model.table.index_properties import keys_move
from hudi_table.model.table.properties import generator_class
from hudi_table.read.filter.predicates import Bound
from hudi_table.read.footer_stats import ends

_NULL_SEGMENTS = (DEFAULT_PARTITION, "default")
_INPUT_UNITS = {"UNIX_TIMESTAMP": "seconds", "EPOCHMILLISECONDS": "milliseconds", "EPOCHMICROSECONDS": "microseconds"}
_MILLIS = {"days": (86_400_000, 1), "seconds": (1_000, 1), "milliseconds": (1, 1), "microseconds": (1, 1_000)}
"""A unit in milliseconds: (times, over)."""
_GENERATORS = ("SimpleKeyGenerator", "ComplexKeyGenerator", "TimestampBasedKeyGenerator", "CustomKeyGenerator")
_INTEGER = re.compile(r"-?\d{1,19}")
_PATTERNS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M"}
_STEPS = {"dd": timedelta(days=1), "HH": timedelta(hours=1), "mm": timedelta(minutes=1)}


def anything() -> pc.Expression:
    """The guarantee from which nothing follows. Not a constant: making one loads pandas, where it
    is installed."""
    return pc.scalar(True)


def satisfiable(bound: Bound, guarantees: Sequence[pc.Expression], schema: pa.Schema) -> list[bool]:
    """For each guarantee: whether rows that keep it can match the filter."""
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    form, nowhere = ds.ParquetFileFormat(), LocalFileSystem()
    # Dataset fragments are Arrow's only door to its simplification; no file is opened through them.
    parts = [
        form.make_fragment(str(i), filesystem=nowhere, partition_expression=guarantee)
        for i, guarantee in enumerate(guarantees)
    ]
    try:
        kept = {part.path for part in ds.FileSystemDataset(parts, schema, form).get_fragments(bound.expression)}
    except pa.ArrowInvalid:
        # What Arrow cannot compute of the ends it may be able to compute of the rows.
        return [True] * len(guarantees)
    return [str(i) in kept for i in range(len(guarantees))]


def matching_partitions(bound: Bound, partitions: Sequence[str], config: TableConfig, schema: pa.Schema) -> set[str]:
    """The partition paths whose rows may match."""
    fields = [f for f in config.partition_by if f.field in bound.columns]
    package, _, generator = generator_class(config).rpartition(".")
    known = package == "org.apache.hudi.keygen" and generator in _GENERATORS
    if not fields or not known or not keys_move(config):
        return set(partitions)
    wanted = set(bound.columns)
    cases = [(path, case) for path in partitions for case in _partition_guarantees(path, config, schema, wanted)]
    kept = satisfiable(bound, [case for _, case in cases], schema)
    return {path for (path, _), possible in zip(cases, kept, strict=True) if possible}


def matching_row_groups(bound: Bound, footer_schema: pa.Schema, metadata: Any, schema: pa.Schema) -> list[int]:
    """Numbers of the row groups whose statistics allow a match."""
    names = [
        name
        for name in bound.columns
        if name in footer_schema.names
        and footer_schema.field(name).type == schema.field(name).type
        and _has_order(schema.field(name).type)
    ]
    groups = range(metadata.num_row_groups)
    if not names:
        return list(groups)
    positions = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    guarantees = []
    for group in groups:
        chunks = metadata.row_group(group)
        found = [_range(name, chunks.column(positions[name]).statistics, schema) for name in names if name in positions]
        guarantees.append(reduce(and_, found, anything()))
    return [group for group, kept in zip(groups, satisfiable(bound, guarantees, schema), strict=True) if kept]


def _has_order(kind: pa.DataType) -> bool:
    """Types whose statistics bound every value: not floats, where NaN is in no range, and not
    nested ones."""
    types = pa.types
    exact = types.is_integer(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    return bool(exact or types.is_string(kind) or types.is_date(kind) or types.is_timestamp(kind))


def _range(name: str, statistics: Any, schema: pa.Schema) -> pc.Expression:
    found = ends(statistics)
    if found is None:
        return anything()
    kind, column = schema.field(name).type, pc.field(name)
    try:
        low, high = (pc.scalar(pa.scalar(value, kind)) for value in found)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return anything()
    if statistics.has_null_count and statistics.null_count == 0:
        return (column >= low) & (column <= high)
    return _or_null(column >= low, column) & _or_null(column <= high, column)


def _or_null(bound: pc.Expression, column: pc.Expression) -> pc.Expression:
    """A bound of the values that are not null, in the one shape from which Arrow draws
    conclusions."""
    return bound | column.is_null()


def _partition_guarantees(path: str, config: TableConfig, schema: pa.Schema, wanted: set[str]) -> list[pc.Expression]:
    """What the path says of the columns in `wanted`: every row keeps one of the guarantees.

    Nothing follows if its folders cannot be assigned to fields.
    """
    segments = path.split("/") if path else []
    widths = [_folders(item, config) for item in config.partition_by]
    if len(segments) != sum(widths):
        return [anything()]
    cases, at = [anything()], 0
    for item, width in zip(config.partition_by, widths, strict=True):
        text = "/".join(segments[at : at + width])
        at += width
        prefix = f"{item.field}=" if config.hive_style else ""
        if item.field not in wanted or item.field not in schema.names or not text.startswith(prefix):
            continue
        value = text.removeprefix(prefix)
        value = unescape_partition_value(value) if config.url_encode else value
        possible = _value_guarantees(item, value, schema.field(item.field).type)
        cases = [case & more for case in cases for more in possible]
    return cases


def _folders(item: PartitionField, config: TableConfig) -> int:
    slashes = (item.format or "").count("/") if item.type is PartitionType.TIMESTAMP else 0
    return 1 if config.url_encode else 1 + slashes


def _value_guarantees(item: PartitionField, text: str, kind: pa.DataType) -> list[pc.Expression]:
    """What may hold of the values behind a folder. Arrow draws no conclusion from an `or`, so each
    case stands alone."""
    column = pc.field(item.field)
    if item.type is PartitionType.TIMESTAMP:
        return [_moment_guarantee(item, text, kind)]
    if text in _NULL_SEGMENTS:
        if pa.types.is_string(kind):
            return [column.is_null(), column == "", column == text]
        return [column.is_null() if text == DEFAULT_PARTITION else anything()]
    return [_equal_guarantee(column, text, kind)]


def _equal_guarantee(column: pc.Expression, text: str, kind: pa.DataType) -> pc.Expression:
    if pa.types.is_string(kind):
        return column == text
    if pa.types.is_integer(kind) and _INTEGER.fullmatch(text):
        return column == pc.scalar(pa.scalar(int(text), pa.int64()))
    if pa.types.is_boolean(kind) and text in ("true", "false"):
        return column == (text == "true")
    if pa.types.is_date(kind) and re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return column == pc.scalar(pa.scalar(date.fromisoformat(text), kind))
    return anything()


def _moment_guarantee(item: PartitionField, text: str, kind: pa.DataType) -> pc.Expression:
    """The interval of a formatted moment in UTC, in the raw unit of the column. Null lies at the
    epoch."""
    input_type = (item.input or "").upper()
    scale = _MILLIS.get(_INPUT_UNITS.get(input_type) or (item.unit.lower() if input_type == "SCALAR" else ""))
    interval = _interval(item.format or "", text)
    if scale is None or interval is None or item.timezone not in ("UTC", "GMT"):
        return anything()
    if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return anything()
    times, over = scale
    low, high = (int(moment.timestamp()) * 1000 for moment in interval)
    # Units below a millisecond are cut towards zero: a folder from the epoch back holds a little of what lies before it.
    before = over - 1 if low <= 0 else 0
    edges = (-(-low // times) * over - before, -(-high // times) * over)
    try:
        first, last = (pc.scalar(_raw(edge, kind)) for edge in edges)
    except (pa.ArrowInvalid, OverflowError):
        return anything()
    column = pc.field(item.field)
    return _or_null(column >= first, column) & _or_null(column < last, column)


def _raw(number: int, kind: pa.DataType) -> pa.Scalar:
    """The value of the column that is stored as this number."""
    if pa.types.is_date(kind):
        return pa.scalar(number, pa.int32()).cast(kind)
    return pa.scalar(number, pa.int64()).cast(pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind)


def _interval(pattern: str, text: str) -> tuple[datetime, datetime] | None:
    """[start, end) of what a Java date pattern of years, months, days, hours and minutes prints as
    `text`."""
    parts = re.findall(r"[A-Za-z]+", pattern)
    if not parts or any(p not in _PATTERNS for p in parts) or parts != list(_PATTERNS)[: len(parts)]:
        return None
    try:
        start = datetime.strptime(text, re.sub(r"[A-Za-z]+", lambda m: _PATTERNS[m[0]], pattern)).replace(tzinfo=UTC)
    except ValueError:
        return None
    last = parts[-1]
    if last in _STEPS:
        return start, start + _STEPS[last]
    years, months = (start.year + 1, 1) if last == "yyyy" or start.month == 12 else (start.year, start.month + 1)
    return (start, datetime(years, months, 1, tzinfo=UTC)) if years <= 9999 else None
