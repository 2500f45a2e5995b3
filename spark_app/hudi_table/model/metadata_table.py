"""The metadata table's names: partitions, file groups, keys and instants.

Facts (measured on Hudi 0.15.0): it is a merge-on-read table of its own under `.hoodie/metadata`,
whose base files are HFiles. A file group is `<prefix><4-digit number>-0`. Its instants are those of
the data table, all of them `deltacommit`; the first ones are `00000000000000` (an empty table) or
the newest instant of the data table, and `010`, `011`, … behind it; compactions, cleans and the
like of its own carry the suffixes `001` to `006`. On table versions 8 and 9 (measured on 1.0.2 and
1.1.1) every instant has 17 digits: the first ones are numbers from zero on, and compactions have
instants like any other. Those of a record index by partition (measured on
Hudi 1.1.1) name the data partition before their number, escaped as Hive escapes it, with `-` and
`_` besides: `record-index-a%2Fb%2D1-0000-0`, and `record-index--0000-0` of a table without
partitions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar, Self, TypeAlias

from hudi_table.model.digits import is_digits
from hudi_table.model.names import escape_partition_value, unescape_partition_value

ALL_PARTITIONS = "__all_partitions__"
"""The key of the record that lists the data table's partitions."""
NON_PARTITIONED = "."
"""Stands for the partition path '' in keys and in the list of partitions."""
SOLO = "00000000000000"
"""Before the suffix of the first instants on a table without any."""
FIRST_INITIAL = 10
COMPACTION_SUFFIX = "001"
EMPTY_LOG_TOKEN = "0-0-0"  # noqa: S105 - part of a file name
"""Token of the first log of a file group, an empty delete block."""

BEGUN_SHARD = f"{SOLO}{FIRST_INITIAL:03d}"
"""Base instant of the file groups with which a record index by partition goes on for a data
partition that no plan began. Older than any other, and one for all: writers that begin a partition
at the same moment write to one slice."""
PARTITIONED_RECORD_INDEX = "partitioned_record_index"
"""What the partition `record_index` is asked for by where it is to be by partition: Hudi 1.1's
RECORD_LEVEL_INDEX."""

METADATA_AWAITS, METADATA_HOLDS = "hoodie.lakeops.metadata.awaits", "hoodie.lakeops.metadata.holds"
"""Properties of the data table: instants beside a building. Those before it that had not completed,
so that what was built lacks them, and those behind it that it holds all the same."""

SECONDARY_INDEX = "secondary_index_"
"""How the partition of an index of a secondary key begins: the name of the index follows."""
EXPRESSION_INDEX = "expr_index_"
"""The same of an index of an expression."""

_HFILE = re.compile(r"^(?P<id>[^_/]+)_(?P<token>[^_/]+)_(?P<time>\d{14,})\.hfile$", re.ASCII)
_SHARD = re.compile(r"^record-index-(?P<partition>[^-/]*)-\d{4,}-0$", re.ASCII)
_INSTANT_DIGITS = 17
_SUFFIX_DIGITS = 3
_MAINTENANCE = range(1, 7)


class MetadataPartition(StrEnum):
    """The partitions that have a meaning here: those of Hudi 0.15.0, and `partition_stats` of 1.x
    (read in public source: table versions 8 and 9 alone have it)."""

    FILES = "files"
    COLUMN_STATS = "column_stats"
    PARTITION_STATS = "partition_stats"
    BLOOM_FILTERS = "bloom_filters"
    RECORD_INDEX = "record_index"

    @property
    def prefix(self) -> str:
        """How the ids of its file groups begin."""
        return _PREFIXES[self]

    @property
    def default_groups(self) -> int:
        """How many file groups it is built with, as Hudi does by default; of the record index at
        least."""
        return _GROUPS[self]


class _DefinedPartition(str):
    """A partition that begins with its `KIND` and goes on with the name that somebody gave the
    index. Table versions 8 and 9 alone have such."""

    __slots__ = ()
    KIND: ClassVar[str]
    GROUPS: ClassVar[int]

    def __new__(cls, name: str) -> Self:
        """Raises ValueError for the name of another partition."""
        if not _is_of(cls.KIND, name):
            raise ValueError(f"{name!r} is no partition of the metadata table")
        return super().__new__(cls, name)

    @property
    def prefix(self) -> str:
        """How the ids of its file groups begin (measured on Hudi 1.0.2 and 1.1.1)."""
        return f"{self.replace('_', '-')}-"

    @property
    def default_groups(self) -> int:
        """How many file groups it is built with, as Hudi does by default."""
        return self.GROUPS


class SecondaryPartition(_DefinedPartition):
    """The partition `secondary_index_<name>` of an index of a secondary key."""

    __slots__ = ()
    KIND, GROUPS = SECONDARY_INDEX, 10


class ExpressionPartition(_DefinedPartition):
    """The partition `expr_index_<name>` of an index of an expression."""

    __slots__ = ()
    KIND, GROUPS = EXPRESSION_INDEX, 2


DefinedPartition: TypeAlias = SecondaryPartition | ExpressionPartition
AnyPartition: TypeAlias = MetadataPartition | DefinedPartition


def _is_of(kind: str, name: str) -> bool:
    return name.startswith(kind) and len(name) > len(kind)


def is_secondary(name: str) -> bool:
    """Whether a partition is an index of a secondary key."""
    return _is_of(SECONDARY_INDEX, name)


def is_expression(name: str) -> bool:
    """Whether a partition is an index of an expression."""
    return _is_of(EXPRESSION_INDEX, name)


def is_defined(name: str) -> bool:
    """Whether a partition is an index that somebody has named and defined: of a secondary key, or
    of an expression."""
    return is_secondary(name) or is_expression(name)


def short_name(partition: str) -> str:
    """The name that somebody gave the index of such a partition."""
    return partition.removeprefix(EXPRESSION_INDEX if is_expression(partition) else SECONDARY_INDEX)


def partition_named(name: str) -> AnyPartition:
    """The partition of this name. Raises ValueError for one that has no meaning here."""
    if is_expression(name):
        return ExpressionPartition(name)
    return SecondaryPartition(name) if is_secondary(name) else MetadataPartition(name)


def in_order(names: Collection[str]) -> list[AnyPartition]:
    """These partitions as they are built, one after the other; what has no meaning here is left
    out."""
    defined = sorted(filter(is_defined, names))
    return [*(name for name in MetadataPartition if name in names), *map(partition_named, defined)]


@dataclass(frozen=True, slots=True)
class ShardLimits:
    """With how many file groups a record index is built; the defaults are Hudi's.

    `least` and `most` file groups; `growth`: by how much the keys may become more; `group_bytes`:
    of one file group. `by_partition`: each data partition has so many of its own.
    """

    least: int = 10
    most: int = 10_000
    growth: float = 2.0
    group_bytes: int = 1 << 30
    by_partition: bool = False

    def shards(self, keys: int) -> int:
        """File groups for so many keys. Their number is fixed for good: a key's group is its hash
        modulo that number.

        The rule of Hudi's `estimateFileGroupCount` (read in public source), with its 48 bytes an
        entry; a `most` below `least` counts.
        """
        each = max(1, self.group_bytes // _ENTRY_BYTES)
        return min(self.most, max(self.least, math.ceil(keys * self.growth) // each))


_ENTRY_BYTES = 48
_PREFIXES = {
    MetadataPartition.FILES: "files-",
    MetadataPartition.COLUMN_STATS: "col-stats-",
    MetadataPartition.PARTITION_STATS: "partition-stats-",
    MetadataPartition.BLOOM_FILTERS: "bloom-filters-",
    MetadataPartition.RECORD_INDEX: "record-index-",
}
_GROUPS = {
    MetadataPartition.FILES: 1,
    MetadataPartition.COLUMN_STATS: 2,
    MetadataPartition.PARTITION_STATS: 1,
    MetadataPartition.BLOOM_FILTERS: 4,
    MetadataPartition.RECORD_INDEX: 10,
}


@dataclass(frozen=True, slots=True)
class HFileName:
    """The parts of a base file's name."""

    file_id: str
    write_token: str
    instant: str

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant}.hfile"


def parse_hfile(name: str) -> HFileName | None:
    """The parts of a base file's name, or None if it is not one of the metadata table."""
    match = _HFILE.match(name)
    return None if match is None else HFileName(match["id"], match["token"], match["time"])


def group_file_id(partition: AnyPartition, number: int, of: str | None = None) -> str:
    """The id of a partition's file group; in a record index by partition, `of` a data partition."""
    inner = "" if of is None else f"{escape_partition_value(of).replace('-', '%2D').replace('_', '%5F')}-"
    return f"{partition.prefix}{inner}{number:04d}-0"


def partition_of_shard(file_id: str) -> str | None:
    """The data partition whose keys a file group holds; None for one of a global record index."""
    match = _SHARD.match(file_id)
    return None if match is None else unescape_partition_value(match["partition"])


def partition_key(partition: str) -> str:
    """The key of a data partition's record of files."""
    return partition or NON_PARTITIONED


def partition_of_key(key: str) -> str:
    """The data partition of such a key."""
    return "" if key == NON_PARTITIONED else key


def initial_instant(newest: str, number: int) -> str:
    """The instant by which the partition that is built as number `number` begins; `newest` is the
    data table's, '' if it has none."""
    return f"{newest or SOLO}{FIRST_INITIAL + number:03d}"


def early_instant(time: str) -> str:
    """The instant by which all partitions begin that the data table's instant `time` builds, where
    slices go by completion: earlier than every write, as those of Hudi are, so that what was
    written beside the building lies on top of it; and no other plan's."""
    return _EARLY + time[len(_EARLY) :]


def compaction_instant(time: str) -> str:
    """The instant of a compaction that the data table's instant `time` plans."""
    return time + COMPACTION_SUFFIX


def data_instant(instant: str) -> str:
    """The data table's instant that an instant of the metadata table belongs to."""
    if _is_early(instant):
        return _CENTURIES + instant[len(_EARLY) :]
    return instant[:_INSTANT_DIGITS] if len(instant) == _INSTANT_DIGITS + _SUFFIX_DIGITS else instant


def is_building_instant(instant: str) -> bool:
    """Whether a partition begins by an instant that `initial_instant` gives on a table with
    instants, or `early_instant`."""
    return _is_early(instant) or (
        len(instant) == _INSTANT_DIGITS + _SUFFIX_DIGITS
        and is_digits(instant)
        and not instant.startswith(SOLO)
        and int(instant[_INSTANT_DIGITS:]) >= FIRST_INITIAL
    )


def is_own_instant(instant: str) -> bool:
    """Whether an instant is none of the data table's: of an initialisation, or of the metadata
    table's own maintenance.

    A completed one is valid whatever the data table's timeline says (read in public source, and by
    classes of 0.15.0).
    """
    if instant.startswith(SOLO) or _is_early(instant):
        return True
    if len(instant) != _INSTANT_DIGITS + _SUFFIX_DIGITS or not is_digits(instant):
        return False
    suffix = int(instant[_INSTANT_DIGITS:])
    return suffix in _MAINTENANCE or suffix >= FIRST_INITIAL


_EARLY, _CENTURIES = "0", "2"
"""Of the year of an instant, which is one of the third millennium."""


def _is_early(instant: str) -> bool:
    return (
        len(instant) == _INSTANT_DIGITS
        and is_digits(instant)
        and instant.startswith(_EARLY)
        and not instant.startswith(SOLO)
    )


@dataclass(frozen=True, slots=True)
class Partitions:
    """What the data table's properties say: `ready` partitions are read, `inflight` ones are being
    built; both are written to. `begun_shards`: with how many file groups a record index by
    partition goes on for a new data partition. `awaits` and `holds`: instants that were beside a
    building (`table/metadata_untold.py`)."""

    ready: tuple[str, ...] = ()
    inflight: tuple[str, ...] = ()
    begun_shards: int = 1
    awaits: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Both, each once."""
        return tuple(dict.fromkeys([*self.ready, *self.inflight]))

    def without(self, names: Collection[str]) -> Partitions:
        """Without these, ready or inflight."""
        ready, inflight = (tuple(n for n in some if n not in names) for some in (self.ready, self.inflight))
        return replace(self, ready=ready, inflight=inflight)

    def without_ready(self, names: Collection[str]) -> Partitions:
        """With these as inflight ones, if they are ready."""
        if not names:
            return self
        late = tuple(name for name in self.ready if name in names)
        return replace(self, ready=tuple(n for n in self.ready if n not in names), inflight=(*self.inflight, *late))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Those that have no meaning here."""
        return tuple(name for name in self.all if name not in set(MetadataPartition))
