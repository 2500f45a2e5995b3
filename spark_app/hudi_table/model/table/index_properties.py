"""`IndexSpec` from and to the keys by which Hudi names an index, in `hoodie.properties` and among
options.

Version 6 stores no index: ours stands in extra keys, which Hudi 0.15.0 and 1.1.1 keep, and take as
if they were given as options (measured). The keys of `partition_buckets` are known to 1.1.1 alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.errors import InvalidOptionError
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.model.options.known import INDEX_SETTINGS
from hudi_table.model.options.values import stored_boolean, whole
from hudi_table.model.table.config import IndexSpec, IndexType, TableConfig
from hudi_table.model.table.partition_buckets import parse_rules, render_rules

INDEX_TYPE = "hoodie.index.type"
INDEX_CLASS = "hoodie.index.class"
"""An index of one's own. In Hudi the name of a Java class, and it overrides the type; so a table of
ours that stores it is one that Hudi reads, and does not write to (it finds no such class)."""
ENGINE = "hoodie.index.bucket.engine"
BUCKETS = "hoodie.bucket.index.num.buckets"
BUCKETS_MIN = "hoodie.bucket.index.min.num.buckets"
BUCKETS_MAX = "hoodie.bucket.index.max.num.buckets"
CONNECTION = "HUDI_INDEX_CONNECTION"
"""Name of the environment variable with the connection of an external index, unless its setting
`connection` gives another."""
HASH_FIELDS = "hoodie.bucket.index.hash.field"
RULE_TYPE = "hoodie.bucket.index.partition.rule.type"
EXPRESSIONS = "hoodie.bucket.index.partition.expressions"
RECORD_INDEX_MOVES = "hoodie.record.index.update.partition.path"
"""Whether a key whose new row names another partition moves there. Stored, it holds for all
writers; Hudi's default is false."""
KEY_STATE = "hoodie.lakeops.key.state"
"""Stored: writers keep a key state. The type beside it is that of the index which finds the same
keys, so that Hudi's writers, which have no such state but in Flink, find them too."""
STATE_PARTITIONS, STATE_TTL = "index.partition.regex", "index.state.ttl"
"""Of a write with a key state, as Flink's writers name them: which partitions it keeps, and for how
many days."""
STATE_FOLDER = "hoodie.lakeops.key.state.folder"
"""Of a write with a key state: the local folder in which it outlives the process."""
INDEX_KEYS = (
    INDEX_TYPE, INDEX_CLASS, ENGINE, BUCKETS, BUCKETS_MIN, BUCKETS_MAX, HASH_FIELDS, RULE_TYPE, EXPRESSIONS, KEY_STATE,
)  # fmt: skip
INDEX_NAMES = tuple(dict.fromkeys(kind.hudi_name for kind in IndexType))


def index_spec(options: Mapping[str, str]) -> IndexSpec:
    """The index that the keys describe. Raises KeyError for a type or engine that is not known,
    ValueError that names another wrong key."""
    if options.get(INDEX_CLASS):
        return IndexSpec(IndexType.CUSTOM, class_name=options[INDEX_CLASS], settings=index_settings(options))
    kind = IndexType.named(options[INDEX_TYPE], options.get(ENGINE) or "SIMPLE")
    kind = kind.with_state() if stored_boolean(options.get(KEY_STATE)) else kind
    if not kind.hashes:
        return IndexSpec(kind)
    buckets, hashed = _count(options, BUCKETS), names_in(options.get(HASH_FIELDS, ""))
    if buckets is None:
        raise ValueError(f"{INDEX_TYPE}=BUCKET needs {BUCKETS}, a whole number from 1")
    if kind.has_rings:
        least, most = _count(options, BUCKETS_MIN), _count(options, BUCKETS_MAX)
        if not (least or 1) <= buckets <= (most or buckets):
            raise ValueError(f"{BUCKETS} is {buckets}, and not from {BUCKETS_MIN} to {BUCKETS_MAX} ({least}, {most})")
        return IndexSpec(kind, buckets, hashed, buckets_min=least, buckets_max=most)
    if options.get(RULE_TYPE, "regex").lower() != "regex":
        raise ValueError(f"{RULE_TYPE} is {options[RULE_TYPE]!r}; the only one is regex")
    try:
        rules = parse_rules(options.get(EXPRESSIONS, ""))
    except ValueError as error:
        raise ValueError(f"{EXPRESSIONS}: {error}") from error
    return IndexSpec(kind, buckets, hashed, partition_buckets=rules)


def index_properties(index: IndexSpec | None) -> dict[str, str]:
    """The inverse of `index_spec`; nothing for a table that stores no index."""
    if index is None:
        return {}
    if index.type.is_custom:
        return {INDEX_CLASS: index.class_name} | {INDEX_SETTINGS + name: value for name, value in index.settings}
    out = type_properties(index.type)
    if index.type.hashes:
        out[BUCKETS] = str(index.buckets)
        if index.hash_fields:
            out[HASH_FIELDS] = ",".join(index.hash_fields)
    if index.type.has_rings:
        out[ENGINE] = "CONSISTENT_HASHING"
        bounds = {BUCKETS_MIN: index.buckets_min, BUCKETS_MAX: index.buckets_max}
        out |= {key: str(number) for key, number in bounds.items() if number is not None}
    if index.partition_buckets:
        out |= {RULE_TYPE: "regex", EXPRESSIONS: render_rules(index.partition_buckets)}
    return out


def type_properties(kind: IndexType) -> dict[str, str]:
    """What a table stores of the type alone."""
    return {INDEX_TYPE: kind.stored_name} | ({KEY_STATE: "true"} if kind.keeps_state else {})


def index_settings(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """(name, value) of every setting of a custom index among options or properties, sorted."""
    keys = (key for key in options if key.startswith(INDEX_SETTINGS))
    return tuple(sorted((key.removeprefix(INDEX_SETTINGS), options[key]) for key in keys))


def keys_move(config: TableConfig) -> bool:
    """Whether a table's rows all lie in the partition that their columns name, whoever writes them:
    not where a record index leaves a key in the partition in which it finds it. Hudi stores no
    index, and finds keys by the one that its metadata table has."""
    if config.index is None:
        may_stay = MetadataPartition.RECORD_INDEX in config.metadata_partitions
    else:
        may_stay = config.index.type.may_keep_partition
    return not may_stay or stored_boolean(config.extra.get(RECORD_INDEX_MOVES))


def names_in(text: str) -> tuple[str, ...]:
    """The names of a comma list."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _count(options: Mapping[str, str], key: str) -> int | None:
    text = options.get(key)
    if not text:
        return None
    try:
        return whole(key, text, 1)
    except InvalidOptionError as error:
        raise ValueError(error.message) from None
