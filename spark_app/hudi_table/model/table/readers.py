"""Who reads what of a Hudi table: one fact for each engine, version and feature of which it is
known, with where it is known from.

What no fact tells is unknown, and never taken for readable. `docs/reference/readers.md` is made of
these facts. A source is a test of this repository, a page of its documentation that says how it was
measured, or the address of a statement by those who make the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from hudi_table.errors import InvalidOptionError, UnsupportedTableError
from hudi_table.model.metadata_table import PARTITIONED_RECORD_INDEX, is_expression, is_secondary
from hudi_table.model.options.values import stored_boolean
from hudi_table.model.table.cdc import CDC_ENABLED
from hudi_table.model.table.config import IndexSpec, IndexType, MergeMode, PartitionField, TableConfig, TableType
from hudi_table.model.table.layouts import merges_by_class
from hudi_table.model.table.merging import payload_named
from hudi_table.model.table.properties import generator_class, table_payload
from hudi_table.model.table.version_properties import PAYLOAD

ENGINE = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,62}")
VERSION = re.compile(r"[0-9]{1,6}(\.[0-9A-Za-z-]{1,16}){0,5}")


class Reads(StrEnum):
    """Whether a reader reads a feature."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Feature(StrEnum):
    """What a table has that a reader may not read; the value names it in sentences and on the
    page."""

    VERSION_6 = "table version 6"
    VERSION_8 = "table version 8"
    VERSION_9 = "table version 9"
    COMMIT_TIME_LOGS = "merge-on-read by commit time"
    EVENT_TIME_LOGS = "merge-on-read by event time"
    PARTIAL_CLASS = "merge-on-read by a payload class of partial updates"
    PARTIAL_MODE = "merge-on-read by a partial update mode"
    CHANGE_LOG = "change data logs"
    FIELD_KINDS = "partition fields that carry their kinds"
    VECTORS = "columns of type VECTOR"
    VARIANTS = "columns of type VARIANT"
    BLOBS = "columns of type BLOB"
    FILES = "metadata partition files"
    COLUMN_STATS = "metadata partition column_stats"
    PARTITION_STATS = "metadata partition partition_stats"
    BLOOM_FILTERS = "metadata partition bloom_filters"
    RECORD_INDEX = "metadata partition record_index"
    PARTITIONED_RECORD_INDEX = "metadata partition partitioned_record_index"
    SECONDARY_INDEX = "index of a secondary key"
    EXPRESSION_INDEX = "index of an expression"


VERSION_FEATURES = {6: Feature.VERSION_6, 8: Feature.VERSION_8, 9: Feature.VERSION_9}
_LOGS = {MergeMode.COMMIT_TIME: Feature.COMMIT_TIME_LOGS, MergeMode.EVENT_TIME: Feature.EVENT_TIME_LOGS}
_PARTITIONS = {
    "files": Feature.FILES,
    "column_stats": Feature.COLUMN_STATS,
    "partition_stats": Feature.PARTITION_STATS,
    "bloom_filters": Feature.BLOOM_FILTERS,
    "record_index": Feature.RECORD_INDEX,
    PARTITIONED_RECORD_INDEX: Feature.PARTITIONED_RECORD_INDEX,
}
_COLUMNS = {"vector": Feature.VECTORS, "variant": Feature.VARIANTS, "blob": Feature.BLOBS}
_LOGICAL = re.compile(r'"logicalType"\s*:\s*"(\w+)"')
_INDEXES = {
    IndexType.RECORD_INDEX: Feature.RECORD_INDEX,
    IndexType.PARTITIONED_RECORD_INDEX: Feature.PARTITIONED_RECORD_INDEX,
}
BOTH_LOGS = (Feature.COMMIT_TIME_LOGS, Feature.EVENT_TIME_LOGS)
GLOBAL_METADATA = (Feature.FILES, Feature.COLUMN_STATS, Feature.BLOOM_FILTERS, Feature.RECORD_INDEX)


@dataclass(frozen=True, slots=True)
class Fact:
    """Whether an engine reads some features, from a version on its own line: `0.15` is 0.15 and
    each 0.15.x. `why` is there for what is not read, and for what is to be known of what is."""

    engine: str
    version: str
    features: tuple[Feature, ...]
    reads: Reads
    source: str
    why: str = ""


_MATRIX = "tests/interop/test_matrix.py"
_METADATA = "tests/interop/test_metadata_table.py"
_LATER = "tests/interop/test_later_versions.py"
_FURTHER = "tests/interop/test_further_releases.py"
_SKIPPING = "tests/interop/test_data_skipping.py"
_PAYLOADS = "tests/interop/test_payloads.py"
_CHANGES = "tests/interop/test_change_data.py"
_LOGICAL_TYPES = "tests/interop/test_logical_types.py"
_SECONDARY = "tests/interop/test_secondary_index.py"
_EXPRESSION = "tests/interop/test_expression_index.py"
_BY_HAND = "docs/reference/compatibility.md"
_ZERO = "Hudi before 1.0 knows no table version above 6"
_NO_RECORD_INDEX = "filters by it need the record index, which a write of Hudi's drops unless an option asks for it"
_ONE_EXPRESSION = (
    "a filter by = or IN on its column, or on another expression of it, finds no row unless data skipping is off"
)
_BASE_ALONE = "it shows the base files alone, without what the logs change"

FACTS = (
    Fact("Hudi", "0", (Feature.VERSION_8, Feature.VERSION_9), Reads.NO,
         "https://issues.apache.org/jira/browse/HUDI-7665", _ZERO),
    Fact("Hudi", "0.14", (Feature.VERSION_6, *BOTH_LOGS), Reads.YES, _BY_HAND, "by Flink 1.17 with the bundle of Hudi 0.14.0"),
    Fact("Hudi", "0.15", (Feature.VERSION_6, *BOTH_LOGS), Reads.YES, _MATRIX),
    Fact("Hudi", "0.15", GLOBAL_METADATA, Reads.YES, _METADATA),
    Fact("Hudi", "0.15", (Feature.PARTIAL_CLASS,), Reads.YES, _PAYLOADS),
    Fact("Hudi", "0.15", (Feature.CHANGE_LOG,), Reads.YES, _CHANGES, "changes of an overwrite: case 26 of the compatibility page"),
    Fact("Hudi", "0.15", (Feature.PARTITIONED_RECORD_INDEX,), Reads.NO,
         "tests/interop/test_partitioned_record_index.py", "a read by that index loses rows"),
    Fact("Hudi", "1.0", (Feature.VERSION_9,), Reads.NO, "https://issues.apache.org/jira/browse/HUDI-9505",
         "table version 9 came with Hudi 1.1"),
    Fact("Hudi", "1.0", (Feature.VERSION_6, Feature.VERSION_8, Feature.COMMIT_TIME_LOGS), Reads.YES, _FURTHER),
    Fact("Hudi", "1.0", (Feature.EVENT_TIME_LOGS,), Reads.YES, _FURTHER,
         "it fails where a key was deleted and written again since the last compaction, unless the ordering column is an int"),
    Fact("Hudi", "1.0", (Feature.FILES, Feature.COLUMN_STATS, Feature.PARTITION_STATS, Feature.RECORD_INDEX), Reads.YES, _FURTHER),
    Fact("Hudi", "1.0", (Feature.SECONDARY_INDEX,), Reads.YES, _SECONDARY, _NO_RECORD_INDEX),
    Fact("Hudi", "1.0", (Feature.EXPRESSION_INDEX,), Reads.YES, _EXPRESSION, _ONE_EXPRESSION),
    Fact("Hudi", "1.1", (Feature.VERSION_6, *BOTH_LOGS), Reads.YES, _MATRIX),
    Fact("Hudi", "1.1", (Feature.PARTIAL_CLASS,), Reads.YES, _PAYLOADS, "other rows for keys in disorder: cases 22 to 24 of the compatibility page"),
    Fact("Hudi", "1.1", (Feature.PARTIAL_MODE,), Reads.YES, "tests/hudi_table/read/test_golden_later_versions.py"),
    Fact("Hudi", "1.1", (Feature.CHANGE_LOG,), Reads.YES, _CHANGES, "changes in logs of version 6: case 27 of the compatibility page"),
    Fact("Hudi", "1.1", (Feature.SECONDARY_INDEX,), Reads.YES, _SECONDARY, _NO_RECORD_INDEX),
    Fact("Hudi", "1.1", (Feature.EXPRESSION_INDEX,), Reads.YES, _EXPRESSION, _ONE_EXPRESSION),
    Fact("Hudi", "1.1", (Feature.VERSION_8, Feature.VERSION_9), Reads.YES, _LATER),
    Fact("Hudi", "1.1", GLOBAL_METADATA, Reads.YES, _METADATA),
    Fact("Hudi", "1.1", (Feature.PARTITION_STATS,), Reads.YES, _SKIPPING),
    Fact("Hudi", "1.1", (Feature.PARTITIONED_RECORD_INDEX,), Reads.YES, "tests/interop/test_partitioned_record_index.py"),
    Fact("Hudi", "1.2", (Feature.VERSION_6, Feature.VERSION_8, Feature.VERSION_9, *BOTH_LOGS), Reads.YES, _FURTHER),
    Fact("Hudi", "1.2", (Feature.FILES, Feature.RECORD_INDEX), Reads.YES, _FURTHER),
    Fact("Hudi", "1.2", (Feature.COLUMN_STATS, Feature.PARTITION_STATS), Reads.YES, _SKIPPING),
    Fact("Hudi", "1.2", (Feature.SECONDARY_INDEX,), Reads.YES, _SKIPPING, _NO_RECORD_INDEX),
    Fact("Hudi", "1.2", (Feature.EXPRESSION_INDEX,), Reads.YES, _EXPRESSION, _ONE_EXPRESSION),
    Fact("Hudi", "1.2", (Feature.VECTORS, Feature.BLOBS), Reads.YES, _LOGICAL_TYPES),
    Fact("Hudi", "1.2", (Feature.VARIANTS,), Reads.UNKNOWN, _LOGICAL_TYPES, "on Spark 3.5 the whole table is refused, and Spark 4 was not tried"),
    Fact("hudi-rs", "0.5", (Feature.PARTIAL_CLASS,), Reads.NO, _PAYLOADS, "it refuses the payload class"),
    Fact("hudi-rs", "0.5", (Feature.VERSION_6, Feature.COMMIT_TIME_LOGS), Reads.YES, _MATRIX),
    Fact("hudi-rs", "0.5", (Feature.EVENT_TIME_LOGS,), Reads.YES, "tests/interop/test_log_blocks.py",
         "older deletes in logs weigh otherwise: cases 18 and 21 of the compatibility page"),
    Fact("hudi-rs", "0.5", (Feature.VERSION_8, Feature.VERSION_9), Reads.YES, _LATER,
         "with a metadata table it misses file groups of logs alone: case 50 of the compatibility page"),
    Fact("hudi-rs", "0.5", (Feature.FIELD_KINDS,), Reads.NO, "tests/hudi_table/read/test_rs_differences.py",
         "a custom key generator writes them, case 56 of the compatibility page"),
    Fact("Trino", "476", (Feature.VERSION_8, Feature.VERSION_9), Reads.NO, _BY_HAND,
         "it fails once the table has archived instants (does not support Parquet file reader)"),
    Fact("Trino", "473", (Feature.VERSION_8, Feature.VERSION_9), Reads.NO,
         "https://github.com/trinodb/trino/issues/25361", "it rejects their timeline"),
    Fact("Trino", "476", BOTH_LOGS, Reads.NO, _BY_HAND, _BASE_ALONE),
    Fact("Flink", "1.17", (Feature.VERSION_6, *BOTH_LOGS), Reads.YES, _BY_HAND, "with the bundle of Hudi 0.14.0"),
    Fact("Daft", "0.7", (Feature.VERSION_6,), Reads.YES, _BY_HAND),
    Fact("Daft", "0.7", BOTH_LOGS, Reads.NO, _BY_HAND, "it refuses merge-on-read tables"),
    Fact("ClickHouse", "26", (Feature.VERSION_6,), Reads.YES, _BY_HAND),
    Fact("ClickHouse", "26", BOTH_LOGS, Reads.NO, _BY_HAND, _BASE_ALONE),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of one reader and one feature."""

    reads: Reads
    source: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Reader:
    """An engine in a version that reads a table."""

    engine: str
    version: str

    def __str__(self) -> str:
        return f"{self.engine} {self.version}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """A reader as `engine:version`. Raises InvalidOptionError."""
        engine, _, version = text.strip().partition(":")
        if not ENGINE.fullmatch(engine) or not VERSION.fullmatch(version):
            raise InvalidOptionError(f"reader {text!r} is no engine:version, such as Trino:476 or Hudi:0.15")
        return cls(engine, version)

    def answer(self, feature: Feature) -> Answer:
        """What the facts say, that of the nearest version; unknown if none does."""
        asked = self.version.split(".")
        found: tuple[int, Answer] | None = None
        for fact in FACTS:
            line = fact.version.split(".")
            if fact.engine.lower() != self.engine.lower() or feature not in fact.features or asked[: len(line)] != line:
                continue
            if found is None or len(line) > found[0]:
                found = len(line), Answer(fact.reads, fact.source, fact.why)
        return found[1] if found is not None else Answer(Reads.UNKNOWN)


def readers_of(texts: Iterable[str]) -> tuple[Reader, ...]:
    """Readers as `engine:version`, each once. Raises InvalidOptionError."""
    return tuple(dict.fromkeys(Reader.parse(text) for text in texts))


def column_types(avro_schema: str | None) -> tuple[str, ...]:
    """The types of Hudi 1.2's own that columns of an Avro schema have: `vector`, `variant`,
    `blob`."""
    found = set(_LOGICAL.findall(avro_schema or ""))
    return tuple(name for name in _COLUMNS if name in found)


def table_features(
    version: int, kind: TableType, mode: MergeMode, partitions: Iterable[str] = (), index: IndexSpec | None = None
) -> tuple[Feature, ...]:
    """What a table of that kind asks of its readers."""
    found = [VERSION_FEATURES[version]]
    if kind is TableType.MERGE_ON_READ:
        found.append(_LOGS[mode])
    found += partition_features(partitions)
    if index is not None and index.type in _INDEXES:
        found.append(_INDEXES[index.type])
    return _in_order(found)


def features_of(config: TableConfig, columns: Iterable[str] = ()) -> tuple[Feature, ...]:
    """What a table that is there asks of its readers; `columns`: the types of `column_types` that
    it has."""
    found = table_features(config.version, config.type, config.merge_mode, config.metadata_partitions, config.index)
    return _in_order([*found, *_kept(config, config.version, columns)])


def features_in(config: TableConfig, version: int, columns: Iterable[str] = ()) -> tuple[Feature, ...]:
    """The same in another version, to which no metadata table goes along."""
    return _in_order([*table_features(version, config.type, config.merge_mode), *_kept(config, version, columns)])


def option_features(version: int, kind: TableType, options: Mapping[str, str]) -> tuple[Feature, ...]:
    """What options ask of the readers of a table that is made with them; a payload class that is
    none of ours asks nothing, for no table is made with it."""
    named, partial = options.get(PAYLOAD, ""), False
    with suppress(UnsupportedTableError):
        partial = bool(named) and payload_named(named).partial is not None
    return _in_order(
        _options_kept(version, kind, is_partial=partial, logs_changes=stored_boolean(options.get(CDC_ENABLED)))
    )


def key_features(
    version: int, record_key: Sequence[str], partition_by: Sequence[PartitionField]
) -> tuple[Feature, ...]:
    """What the key generator of a table that is made with these columns asks of its readers."""
    config = TableConfig("t", TableType.COPY_ON_WRITE, tuple(record_key), tuple(partition_by))
    return _key_kept(config, version)


def _key_kept(config: TableConfig, version: int) -> tuple[Feature, ...]:
    """Versions 8 and 9 store `field:KIND` where the generator is custom (read in Hudi's source)."""
    custom = generator_class(config).endswith(".CustomKeyGenerator")
    return (Feature.FIELD_KINDS,) if custom and not merges_by_class(version) else ()


def _kept(config: TableConfig, version: int, columns: Iterable[str]) -> list[Feature]:
    """What a table asks of readers beside its version and its metadata table."""
    merge = config.later_merge
    partial = table_payload(config).partial if merge is None else merge.partial
    found = _options_kept(version, config.type, is_partial=partial is not None, logs_changes=config.cdc is not None)
    return [*found, *_key_kept(config, version), *(_COLUMNS[name] for name in columns)]


def _options_kept(version: int, kind: TableType, *, is_partial: bool, logs_changes: bool) -> list[Feature]:
    found = [Feature.CHANGE_LOG] if logs_changes else []
    if is_partial and kind is TableType.MERGE_ON_READ:
        found.append(Feature.PARTIAL_CLASS if merges_by_class(version) else Feature.PARTIAL_MODE)
    return found


def _in_order(features: Iterable[Feature]) -> tuple[Feature, ...]:
    return tuple(sorted(set(features), key=list(Feature).index))


def partition_features(partitions: Iterable[str]) -> tuple[Feature, ...]:
    """What partitions of the metadata table ask of readers."""
    found = [_partition_feature(name) for name in partitions]
    return tuple(feature for feature in found if feature is not None)


def _partition_feature(name: str) -> Feature | None:
    if is_secondary(name):
        return Feature.SECONDARY_INDEX
    return Feature.EXPRESSION_INDEX if is_expression(name) else _PARTITIONS.get(name)


def lost(readers: Iterable[Reader], features: Iterable[Feature]) -> tuple[str, ...]:
    """A line for each reader that is known not to read one of the features."""
    return _lines(readers, tuple(features), Reads.NO)


def no_longer(readers: Iterable[Reader], before: Iterable[Feature], after: Iterable[Feature]) -> tuple[str, ...]:
    """A line for each reader of what was there before that cannot read what comes after."""
    known = tuple(before)
    return lost((reader for reader in readers if not lost([reader], known)), after)


def unproven(readers: Iterable[Reader], features: Iterable[Feature]) -> tuple[str, ...]:
    """A line for each reader of which it is not known whether it reads all of the features."""
    return _lines(readers, tuple(features), Reads.UNKNOWN)


def _lines(readers: Iterable[Reader], features: tuple[Feature, ...], reads: Reads) -> tuple[str, ...]:
    found = []
    for reader in readers:
        answers = {feature: answer for feature in features if (answer := reader.answer(feature)).reads is reads}
        if answers and reads is Reads.UNKNOWN:
            told = [f"{feature} ({answer.why})" if answer.why else feature for feature, answer in answers.items()]
            found.append(f"whether {reader} reads {', '.join(told)} is not known")
        for feature, answer in answers.items() if reads is Reads.NO else ():
            found.append(f"{reader} cannot read {feature}: {answer.why}")
    return tuple(found)
