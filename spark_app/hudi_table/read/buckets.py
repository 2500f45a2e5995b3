"""Which buckets of a bucket index can hold rows that match a filter.

A filter that leaves every hash field a few values (`=`, `in`, joined by `and` and `or`) leaves a few buckets. Nothing is
concluded where it is not certain how a writer hashed: from values with `,` or `:` (generations of Hudi take such keys
apart differently), from types other than text, whole numbers, booleans and dates, from key generators that are not Hudi's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from hudi_table.codec.javahash import bucket_of
from hudi_table.model.names import EMPTY_KEY, NULL_KEY, bucket_of_file_id
from hudi_table.model.table_config import IndexType, TableConfig
from hudi_table.model.table_properties import generator_class
from hudi_table.read.expression_tree import Values, possible_values, tree
from hudi_table.read.predicates import Bound
from hudi_table.table.view import FileSlice

MAX_KEYS = 10_000
"""Combinations of values that are hashed; a filter that leaves more is taken to leave every bucket."""
_GENERATORS = tuple(
    f"org.apache.hudi.keygen.{name}KeyGenerator"
    for name in ("Simple", "Complex", "Nonpartitioned", "TimestampBased", "Custom")
)
_FAMILIES = (pt.is_string, pt.is_integer, pt.is_boolean, pt.is_date32)
_DATE_LENGTH = len("2013-01-31")


def possible_buckets(
    bound: Bound | None, config: TableConfig, schema: pa.Schema, count: int | None
) -> frozenset[int] | None:
    """Numbers of those of the snapshot's `count` buckets that may hold matching rows; None if the filter or the table does not tell."""
    index = config.index
    if bound is None or index is None or index.type is not IndexType.BUCKET or not count:
        return None
    generator = generator_class(config)
    hashed = [name for name in config.record_key if name in (index.hash_fields or config.record_key)]
    if generator not in _GENERATORS or not set(index.hash_fields) <= set(config.record_key):
        return None
    if not hashed or not set(hashed) <= set(bound.columns) & set(schema.names):
        return None
    left = possible_values(tree(bound.expression))
    texts = {name: _texts(left[name], schema.field(name).type) for name in config.record_key if name in left}
    if not all(name in texts or _is_plain(name, schema) for name in config.record_key):
        # A comma or colon in a text that is not hashed would shift the values that are.
        return None
    values = [texts.get(name) for name in hashed]
    if any(found is None for found in [*values, *texts.values()]):
        return None
    # Some releases write the single key of this generator as `field:value`, which 1.x hashes as a whole.
    prefix = f"{hashed[0]}:" if len(config.record_key) == 1 and generator.endswith(".ComplexKeyGenerator") else ""
    return _numbers([found for found in values if found is not None], count, prefix)


def in_buckets(slices: Iterable[FileSlice], buckets: frozenset[int] | None) -> tuple[FileSlice, ...]:
    """The slices of these buckets, and those whose name tells none."""
    if buckets is None:
        return tuple(slices)
    return tuple(s for s in slices if (number := bucket_of_file_id(s.file_id)) is None or number in buckets)


def _numbers(values: list[list[str]], buckets: int, prefix: str) -> frozenset[int] | None:
    if prod(map(len, values)) > MAX_KEYS:
        return None
    keys = list(product(*values))
    columns = [pa.array([key[at] for key in keys], pa.string()) for at in range(len(values))]
    found = set(bucket_of(columns, buckets).tolist())
    if prefix:
        found |= set(bucket_of([pa.array([prefix + key[0] for key in keys], pa.string())], buckets).tolist())
    return frozenset(found)


def _is_plain(name: str, schema: pa.Schema) -> bool:
    """Whether every value of the column has a text without commas and colons."""
    return name in schema.names and any(is_a(schema.field(name).type) for is_a in _FAMILIES[1:])


def _texts(values: Values, kind: pa.DataType) -> list[str] | None:
    """The texts of the values in a record key, None if one of them is uncertain."""
    if len(values) > MAX_KEYS:
        return None
    found: list[str] = []
    for value in values:
        if not any(is_a(kind) and is_a(value.type) for is_a in _FAMILIES) or not value.is_valid:
            return None
        text = str(pc.cast(value, pa.string()).as_py())
        if not text or "," in text or ":" in text or text in (NULL_KEY, EMPTY_KEY):
            return None
        if pt.is_date32(kind) and len(text) != _DATE_LENGTH:
            # Java writes years of five digits with a sign.
            return None
        found.append(text)
    return found
