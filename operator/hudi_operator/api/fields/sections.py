"""The options of each type of TableService, one section a type, and what a service waits for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields.patterns import COLUMN_LENGTH_MAX, QUANTITY
from hudi_operator.api.schema import Rule, prop
from hudi_table.model.metadata_table import PARTITIONED_RECORD_INDEX
from hudi_table.model.table.layouts import VERSIONS

INSTANT = "^[0-9]{17}$"
RATIO = r"^>=? ?[0-9]+(\.[0-9]+)?$"
SIZE = r"^>=? ?[1-9][0-9]*(k|M|G|T|Ki|Mi|Gi|Ti)?$"
COUNT = "^>=? ?[1-9][0-9]*$"
PARTITION_LENGTH_MAX = 512
INDEX_NAME = "^[A-Za-z0-9][A-Za-z0-9_]*$"
OPTION_NAME = re.compile("^[A-Za-z]+$")


class Layout(StrEnum):
    """Order of rows after clustering."""

    LINEAR = "Linear"
    Z_ORDER = "ZOrder"
    HILBERT = "Hilbert"


class MetadataPartition(StrEnum):
    """What the metadata table may hold, by Hudi's names; of the record index there is one, global
    or by partition. Table version 6 has no `partition_stats`."""

    FILES = "files"
    COLUMN_STATS = "column_stats"
    PARTITION_STATS = "partition_stats"
    BLOOM_FILTERS = "bloom_filters"
    RECORD_INDEX = "record_index"
    PARTITIONED_RECORD_INDEX = PARTITIONED_RECORD_INDEX


@dataclass(frozen=True, slots=True)
class Need:
    """Run when one of these holds of what was measured."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.smallFileRatio) || has(self.logBytesRatio) || has(self.logBytes) || has(self.commitsSince)"
            " || has(self.bytesToClean)",
            "when needs a figure to wait for",
            "",
            lambda n: any(
                figure is not None
                for figure in (n.small_file_ratio, n.log_bytes_ratio, n.log_bytes, n.commits_since, n.bytes_to_clean)
            ),
        ),
    )

    small_file_ratio: str | None = prop(
        'share of base files below the small-file limit, such as "> 0.5"', None, pattern=RATIO, max_length=16
    )
    log_bytes_ratio: str | None = prop(
        'bytes in log files over bytes in base files, such as "> 0.3"', None, pattern=RATIO, max_length=16
    )
    log_bytes: str | None = prop('bytes in log files, such as "> 2Gi"', None, pattern=SIZE, max_length=24)
    commits_since: str | None = prop(
        'writes since this service last completed, such as ">= 10"', None, pattern=COUNT, max_length=16
    )
    bytes_to_clean: str | None = prop(
        'bytes that cleaning would free, such as "> 10Gi"', None, pattern=SIZE, max_length=24
    )


@dataclass(frozen=True, slots=True)
class ClusteringSpec:
    """What clustering takes and writes. What is absent is as Hudi has it."""

    sort_columns: tuple[str, ...] = prop("columns to sort by", (), max_items=8, item_max_length=COLUMN_LENGTH_MAX)
    layout: Layout = prop("order of rows", Layout.LINEAR)
    small_file_limit: str | None = prop(
        "files below this size are rewritten; absent: 300Mi", None, pattern=QUANTITY, max_length=16
    )
    target_file_size: str | None = prop("size of the files written; absent: 1Gi", None, pattern=QUANTITY, max_length=16)
    max_groups: int | None = prop("groups of files in one plan; absent: 30", None, minimum=1, maximum=10_000)
    partitions: tuple[str, ...] = prop(
        "partition paths that it is limited to; empty: all", (), max_items=256, item_max_length=PARTITION_LENGTH_MAX
    )


@dataclass(frozen=True, slots=True)
class CleaningSpec:
    """Which file slices stay."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(has(self.keepCommits) ? 1 : 0) + (has(self.keepHours) ? 1 : 0) + (has(self.keepFileVersions) ? 1 : 0) == 1",
            "cleaning keeps by one of keepCommits, keepHours and keepFileVersions",
            "",
            lambda c: sum(kept is not None for kept in (c.keep_commits, c.keep_hours, c.keep_file_versions)) == 1,
        ),
    )

    keep_commits: int | None = prop("slices that the last so many commits show", None, minimum=1, maximum=100_000)
    keep_hours: int | None = prop("slices that commits of the last so many hours show", None, minimum=1, maximum=87_600)
    keep_file_versions: int | None = prop("so many slices of each file group", None, minimum=1, maximum=10_000)


@dataclass(frozen=True, slots=True)
class ArchivingSpec:
    """Length of the active timeline."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.minCommits < self.maxCommits",
            "minCommits must be less than maxCommits",
            "minCommits",
            lambda a: a.min_commits < a.max_commits,
        ),
    )

    min_commits: int = prop("commits that archiving leaves", 20, minimum=2, maximum=100_000)
    max_commits: int = prop("commits at which archiving starts", 30, minimum=3, maximum=100_000)


@dataclass(frozen=True, slots=True)
class SavepointSpec:
    """What is kept until the savepoint is deleted."""

    instant: str | None = prop("a completed write, 17 digits; absent: the newest", None, pattern=INSTANT, max_length=17)
    comment: str = prop("why, for those who find it", "", max_length=1024)


@dataclass(frozen=True, slots=True)
class InstantSpec:
    """The instant that a service is about."""

    instant: str = prop("an instant time, 17 digits", pattern=INSTANT, max_length=17)


@dataclass(frozen=True, slots=True)
class RepairSpec:
    """How far a repair goes. It never deletes."""

    quarantine: bool = prop("put aside what is damaged or belongs to nobody; false: only report it", False)
    keys: bool = prop("look for keys that stand in several file groups, which reads every key", False)


@dataclass(frozen=True, slots=True)
class UpgradeSpec:
    """The table version that a table is brought to, a later or an earlier one."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"self.to in {list(VERSIONS)}",
            f"upgrade.to is one of {', '.join(map(str, VERSIONS))}",
            "to",
            lambda u: u.to in VERSIONS,
        ),
    )

    to: int = prop("the table version: 6, 8 or 9", minimum=6, maximum=9)


@dataclass(frozen=True, slots=True)
class PartitionTTLSpec:
    """How long partitions live."""

    days: int = prop("days without a write after which a partition is dropped", minimum=1, maximum=100_000)


class IndexFunction(StrEnum):
    """The functions of which an index of an expression is kept, by Spark's names."""

    UPPER = "upper"
    LOWER = "lower"
    LENGTH = "length"
    TRIM = "trim"
    LTRIM = "ltrim"
    RTRIM = "rtrim"
    SUBSTRING = "substring"
    FROM_UNIXTIME = "from_unixtime"
    DATE_FORMAT = "date_format"
    DATE_ADD = "date_add"
    DATE_SUB = "date_sub"
    TO_DATE = "to_date"
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"


class IndexKind(StrEnum):
    """What an index of an expression tells of a file."""

    COLUMN_STATS = "column_stats"
    BLOOM_FILTERS = "bloom_filters"


@dataclass(frozen=True, slots=True)
class DefinedIndexSpec:
    """An index with a name: of a secondary key, or of an expression where a function is given."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.function) || (!has(self.using) && size(self.options) == 0)",
            "using and options belong to an index with a function",
            "function",
            lambda i: i.function is not None or (i.using is None and not i.options),
        ),
        Rule(
            """self.options.all(k, k.matches('^[A-Za-z]+$') && !self.options[k].contains("'"))""",
            "options are named by letters, and their values hold no '",
            "options",
            lambda i: all(OPTION_NAME.fullmatch(key) and "'" not in str(value) for key, value in i.options.items()),
        ),
    )

    name: str = prop("letters, digits and _", pattern=INDEX_NAME, max_length=128)
    column: str = prop(
        "a column by its name, which holds no comma, bracket or quote",
        pattern="^[^(),' ]+( +[^(),' ]+)*$",
        max_length=COLUMN_LENGTH_MAX,
    )
    function: IndexFunction | None = prop("of an index of an expression: the function of the column", None)
    options: dict[str, str] = prop(
        "the function's options, such as format: yyyy-MM, as those of Hudi's CREATE INDEX",
        dict,
        max_items=4,
        item_max_length=64,
    )
    using: IndexKind | None = prop("of an index of an expression: bounds, or bloom filters; absent: bounds", None)


@dataclass(frozen=True, slots=True)
class IndexingSpec:
    """What of the metadata table is built, and which indexes go."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!('record_index' in self.partitions && 'partitioned_record_index' in self.partitions)",
            "a record index is global or by partition: give one of record_index and partitioned_record_index",
            "partitions",
            lambda i: (
                not {MetadataPartition.RECORD_INDEX, MetadataPartition.PARTITIONED_RECORD_INDEX} <= set(i.partitions)
            ),
        ),
        Rule(
            "!('partitioned_record_index' in self.partitions) || self.indexes.all(i, has(i.function))",
            "an index of a secondary key needs record_index, not partitioned_record_index",
            "indexes",
            lambda i: (
                MetadataPartition.PARTITIONED_RECORD_INDEX not in i.partitions
                or all(each.function is not None for each in i.indexes)
            ),
        ),
        Rule(
            "self.indexes.all(i, !has(i.function) || self.indexes.exists_one(o, has(o.function) && o.column == i.column))",
            "a column has one index of an expression: Hudi asks it for every expression of the column",
            "indexes",
            lambda i: (
                len(set(columns := [each.column for each in i.indexes if each.function is not None])) == len(columns)
            ),
        ),
        Rule(
            f"self.drop.all(n, n.matches('{INDEX_NAME}'))",
            "drop names indexes by letters, digits and _",
            "drop",
            lambda i: all(re.fullmatch(INDEX_NAME, name) for name in i.drop),
        ),
        Rule(
            "self.indexes.all(i, !(i.name in self.drop))",
            "an index is named to be built and to be dropped: leave one out",
            "drop",
            lambda i: not {each.name for each in i.indexes} & set(i.drop),
        ),
    )

    partitions: tuple[MetadataPartition, ...] = prop(
        "partitions of the metadata table; files is built in any case", (), max_items=5, unique=True
    )
    indexes: tuple[DefinedIndexSpec, ...] = prop(
        "indexes of secondary keys and expressions, of table versions 8 and 9; one that is no longer named stays",
        (),
        max_items=32,
        list_key="name",
    )
    drop: tuple[str, ...] = prop(
        "names of indexes of secondary keys and expressions that are dropped, with their definitions",
        (),
        max_items=32,
        item_max_length=128,
        unique=True,
    )
