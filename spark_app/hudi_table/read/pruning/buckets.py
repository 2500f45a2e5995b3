"""Which buckets of a bucket index, or nodes of hash rings, can hold rows that match a filter.

A filter that leaves every hash field a few values (`=`, `in`, joined by `and` and `or`) leaves a
few buckets. Nothing is concluded where it is not certain how a writer hashed: from values with `,`
or `:` (generations of Hudi take such keys apart differently), from types other than text, whole
numbers, booleans and dates, from key generators that are not Hudi's own.

A file group that is a ring's node holds the same range of hashes in every ring that it is a node
of: who changes a range names its group anew. So a ring of any moment tells what lies in the groups
that it knows, and nothing of others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import prod

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from hudi_table.codec.hashes.javahash import bucket_of
from hudi_table.codec.hashes.xxhash import ring_hashes
from hudi_table.model.names import EMPTY_KEY, NULL_KEY, bucket_of_file_id
from hudi_table.model.options.write_options import CUSTOM_KEYS
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.partition_buckets import Rules, buckets_in
from hudi_table.model.table.properties import generator_class
from hudi_table.model.table.rings import Ring
from hudi_table.read.filter.expression_tree import Values, possible_values, tree
from hudi_table.read.filter.predicates import Bound
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.table.view.hash_rings import TableRings

REQUESTS_AHEAD = 16
"""Rings read at once: waiting for a store, not work."""
MAX_KEYS = 10_000
"""Combinations of values that are hashed; a filter that leaves more is taken to leave every
bucket."""
_GENERATORS = tuple(
    f"org.apache.hudi.keygen.{name}KeyGenerator"
    for name in ("Simple", "Complex", "Nonpartitioned", "TimestampBased", "Custom")
)
_FAMILIES = (pt.is_string, pt.is_integer, pt.is_boolean, pt.is_date32)
_DATE_LENGTH = len("2013-01-31")


@dataclass(frozen=True, slots=True)
class PossibleKeys:
    """Values of the hash fields that matching rows may have: `values[i]` of field i, in every
    combination. `prefix`: a key may also be hashed with this before it."""

    values: tuple[tuple[str, ...], ...]
    prefix: str = ""

    def buckets(self, count: int) -> frozenset[int]:
        """Where they lie among so many buckets."""
        return frozenset(number for columns in self._columns() for number in bucket_of(columns, count).tolist())

    def places(self) -> list[int]:
        """Where they lie on hash rings."""
        joined = [pc.binary_join_element_wise(*columns, "") for columns in self._columns()]
        return sorted({place for texts in joined for place in ring_hashes(texts).tolist()})

    def _columns(self) -> list[list[pa.Array]]:
        """The values of each hash field, of every way in which keys may be hashed."""
        keys = list(product(*self.values))
        columns = [pa.array([key[at] for key in keys], pa.string()) for at in range(len(self.values))]
        whole = [pa.array([self.prefix + key[0] for key in keys], pa.string())]
        return [columns, whole] if self.prefix else [columns]


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a filter leaves of a snapshot: `buckets` of the `count` of every partition, None for all
    of them or where partitions differ."""

    slices: tuple[FileSlice, ...]
    buckets: frozenset[int] | None = None


def pruned(
    ctx: TableContext,
    timeline: Timeline | None,
    slices: Iterable[FileSlice],
    keys: PossibleKeys | None,
    count: int | None,
) -> Pruned:
    """The slices that may hold rows of these keys; `count`: of buckets in the snapshot, `timeline`:
    by which rings are looked up."""
    index, kept = ctx.config.index, tuple(slices)
    if keys is None or index is None:
        return Pruned(kept)
    if index.type.has_rings:
        return Pruned(_in_nodes(kept, keys.places(), _rings(ctx, timeline, kept)) if timeline is not None else kept)
    if not count:
        return Pruned(kept)
    if index.partition_buckets:
        return Pruned(_in_partition_buckets(kept, keys, index.partition_buckets, count))
    buckets = keys.buckets(count)
    return Pruned(in_buckets(kept, buckets), buckets)


def possible_buckets(
    bound: Bound | None, config: TableConfig, schema: pa.Schema, count: int | None
) -> frozenset[int] | None:
    """Numbers of those of the snapshot's `count` buckets that may hold matching rows; None if the
    filter or the table does not tell."""
    keys = possible_keys(bound, config, schema)
    return None if keys is None or not count else keys.buckets(count)


def possible_keys(bound: Bound | None, config: TableConfig, schema: pa.Schema) -> PossibleKeys | None:
    """The keys that matching rows may have; None if the filter or the table does not tell."""
    index = config.index
    if bound is None or index is None or not index.type.hashes:
        return None
    hashed = [name for name in config.record_key if name in (index.hash_fields or config.record_key)]
    if not keys_are_hudis(config) or not set(index.hash_fields) <= set(config.record_key):
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
    is_complex = generator_class(config).endswith(".ComplexKeyGenerator")
    prefix = f"{hashed[0]}:" if len(config.record_key) == 1 and is_complex else ""
    known = tuple(tuple(found) for found in values if found is not None)
    return PossibleKeys(known, prefix) if prod(map(len, known)) <= MAX_KEYS else None


def keys_are_hudis(config: TableConfig) -> bool:
    """Whether record keys are made by a generator of Hudi, so that values of their columns tell
    them. One of the user's own stands beside a class of Hudi."""
    return generator_class(config) in _GENERATORS and not config.extra.get(CUSTOM_KEYS)


def in_buckets(slices: Iterable[FileSlice], buckets: frozenset[int] | None) -> tuple[FileSlice, ...]:
    """The slices of these buckets, and those whose name tells none."""
    if buckets is None:
        return tuple(slices)
    return tuple(s for s in slices if (number := bucket_of_file_id(s.file_id)) is None or number in buckets)


def _in_partition_buckets(
    slices: tuple[FileSlice, ...], keys: PossibleKeys, rules: Rules, default: int
) -> tuple[FileSlice, ...]:
    """Where the number of buckets depends on the partition."""
    counts = {partition: buckets_in(partition, rules, default) for partition in {s.partition for s in slices}}
    left = {count: keys.buckets(count) for count in set(counts.values())}
    return tuple(item for item in slices if in_buckets((item,), left[counts[item.partition]]))


def _rings(ctx: TableContext, timeline: Timeline, slices: tuple[FileSlice, ...]) -> dict[str, Ring]:
    rings = TableRings(ctx, timeline, 1)
    partitions = sorted({item.partition for item in slices})
    found = LocalEngine(REQUESTS_AHEAD).map(rings.ring, partitions)
    return {name: ring for name, ring in zip(partitions, found, strict=True) if rings.is_stored(name)}


def _in_nodes(slices: tuple[FileSlice, ...], places: list[int], rings: dict[str, Ring]) -> tuple[FileSlice, ...]:
    """Without the slices of the other nodes of their rings."""
    others = {
        (name, node.file_id)
        for name, ring in rings.items()
        for node in set(ring.nodes) - {ring.node_at(place) for place in places}
    }
    return tuple(item for item in slices if (item.partition, item.file_id) not in others)


def _is_plain(name: str, schema: pa.Schema) -> bool:
    """Whether every value of the column has a text without commas and colons."""
    return name in schema.names and any(is_a(schema.field(name).type) for is_a in _FAMILIES[1:])


def _texts(values: Values, kind: pa.DataType) -> list[str] | None:
    """The texts of the values in a record key, None if one of them is uncertain where keys are
    taken apart."""
    found = value_texts(values, kind)
    return None if found is None or any("," in text or ":" in text for text in found) else found


def value_texts(values: Values | None, kind: pa.DataType) -> list[str] | None:
    """The texts of values of a key column of this type in a record key; None if there are too many,
    any may be, or one is uncertain."""
    if values is None or len(values) > MAX_KEYS:
        return None
    texts: list[str] = []
    for value in values:
        if not any(is_a(kind) and is_a(value.type) for is_a in _FAMILIES) or not value.is_valid:
            return None
        text = str(pc.cast(value, pa.string()).as_py())
        if not text or text in (NULL_KEY, EMPTY_KEY):
            return None
        if pt.is_date32(kind) and len(text) != _DATE_LENGTH:
            # Java writes years of five digits with a sign.
            return None
        texts.append(text)
    return texts
