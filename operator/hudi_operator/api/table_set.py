"""`HudiTableSet`: many tables of one source, a HudiTable for each topic that a pattern selects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from hudi_operator.api.fields.brokers import TOPIC_LENGTH_MAX
from hudi_operator.api.fields.patterns import DURATION, is_pattern
from hudi_operator.api.ingests.ingest import IngestSpec
from hudi_operator.api.ingests.source import KeyFormat, SourceType
from hudi_operator.api.schema import Rule, prop
from hudi_operator.api.status import CONDITION_LENGTH_MAX, Condition
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.api.templates import KEY

FOLLOWED = "{topic}"
"""The one topic of the ingest by which a template follows each of its topics."""
_NAMING = ("{topic}", "{table}", "{name}")
_FOLLOWS = "has(i.source.kafka) && i.source.kafka.topics == ['{topic}']"
PATTERN_LENGTH_MAX = 256
TABLES_MAX, TABLES = 1000, 100
OVERRIDES_MAX = 200
FAILING_MAX, VANISHED_MAX = 10, 20
"""So many of them a status tells by name; of all it tells the number."""
SAID_LENGTH_MAX = 512


class SetDeletionPolicy(StrEnum):
    """What becomes of the HudiTables of a set that is deleted. What then becomes of their files
    their own deletionPolicy says."""

    DELETE = "Delete"
    ORPHAN = "Orphan"


def _is_pattern(field: str) -> str:
    """CEL: what is no expression of RE2 cannot be evaluated."""
    return f"!has(self.{field}) || ''.matches(self.{field}) in [true, false]"


@dataclass(frozen=True, slots=True)
class DatabaseSelector:
    """Tables of a database whose changes Debezium writes to topics `prefix.schema.table`."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            _is_pattern("tablePattern"),
            "tablePattern is a regular expression of RE2, such as public.*",
            "tablePattern",
            lambda d: is_pattern(d.table_pattern),
        ),
    )

    topic_prefix: str = prop("topic.prefix of the connector", pattern="^[A-Za-z0-9._-]+$", max_length=200)
    table_pattern: str = prop(
        "regular expression of whole names schema.table; of MySQL and MariaDB the schema is the database",
        ".*",
        min_length=1,
        max_length=PATTERN_LENGTH_MAX,
    )


@dataclass(frozen=True, slots=True)
class SelectorSpec:
    """Which topics have a table."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.topicPattern) != has(self.database)",
            "give topicPattern or database, one of them",
            "",
            lambda s: (s.topic_pattern is None) != (s.database is None),
        ),
        Rule(
            _is_pattern("topicPattern"),
            "topicPattern is a regular expression of RE2, such as orders-.*",
            "topicPattern",
            lambda s: s.topic_pattern is None or is_pattern(s.topic_pattern),
        ),
        Rule(
            _is_pattern("excludePattern"),
            "excludePattern is a regular expression of RE2, such as .*-test",
            "excludePattern",
            lambda s: s.exclude_pattern is None or is_pattern(s.exclude_pattern),
        ),
    )

    topic_pattern: str | None = prop(
        "regular expression of whole names of topics; those that come later have a table, too",
        None,
        min_length=1,
        max_length=PATTERN_LENGTH_MAX,
    )
    database: DatabaseSelector | None = prop("the same by the tables of a database that Debezium follows", None)
    exclude_pattern: str | None = prop(
        "regular expression of whole names of topics that have none", None, min_length=1, max_length=PATTERN_LENGTH_MAX
    )

    @property
    def pattern(self) -> str:
        """The expression of whole names of topics."""
        if self.database is None:
            return self.topic_pattern or ""
        prefix = self.database.topic_prefix.replace(".", "\\.")
        return f"{prefix}\\.(?:{self.database.table_pattern})"


@dataclass(frozen=True, slots=True)
class TemplateSpec:
    """A HudiTable in which placeholders stand for what is each topic's own."""

    spec: HudiTableSpec = prop("spec of the HudiTable")
    name: str = prop(
        "name of the HudiTable; a run of anything but letters and digits, a dot too, becomes one hyphen, and letters small ones: a.b and a_b collide",
        "{topic}",
        min_length=1,
        max_length=253,
    )
    labels: dict[str, str] = prop("labels of the HudiTable", dict, max_items=32, item_max_length=63)
    annotations: dict[str, str] = prop("annotations of the HudiTable", dict, max_items=32, item_max_length=4096)


@dataclass(frozen=True, slots=True)
class OverrideSpec:
    """What is otherwise for one topic."""

    topic: str = prop("whole name of the topic", min_length=1, max_length=TOPIC_LENGTH_MAX)
    name: str | None = prop("name of its HudiTable", None, min_length=1, max_length=253)
    skip: bool = prop("it has no table", False)
    spec: dict[str, Any] = prop(
        "what is changed of template.spec: fields are replaced, null takes one away, items of lists that have a name are merged by it",
        dict,
    )


def _tells_key(ingest: IngestSpec) -> bool:
    """Whether the keys of its messages name columns."""
    kafka = ingest.source.kafka
    return ingest.source.type is SourceType.DEBEZIUM or (kafka is not None and kafka.key_format is not KeyFormat.RAW)


def _follower(spec: HudiTableSetSpec) -> list[IngestSpec]:
    kafka = [each for each in spec.template.spec.ingest if each.source.kafka is not None]
    return [each for each in kafka if each.source.kafka is not None and each.source.kafka.topics == (FOLLOWED,)]


@dataclass(frozen=True, slots=True)
class HudiTableSetSpec:
    """Many tables of one source: a HudiTable for each topic."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"self.template.spec.ingest.exists_one(i, {_FOLLOWS})",
            "one ingest of template.spec, of type Kafka or Debezium, has kafka.topics ['{topic}']: its brokers are asked for topics",
            "template",
            lambda s: len(_follower(s)) == 1,
        ),
        Rule(
            " || ".join(f"self.template.spec.location.contains('{each}')" for each in _NAMING),
            "template.spec.location needs {topic}, {table} or {name}: without one all tables would lie at one place",
            "template",
            lambda s: any(each in s.template.spec.location for each in _NAMING),
        ),
        Rule(
            f"!has(self.selector.database) || self.template.spec.ingest.all(i, !({_FOLLOWS}) || i.source.type == 'Debezium')",
            "selector.database goes with an ingest of type Debezium",
            "selector",
            lambda s: s.selector.database is None or all(i.source.type is SourceType.DEBEZIUM for i in _follower(s)),
        ),
        Rule(
            f"!('{KEY}' in self.template.spec.recordKey) || self.template.spec.ingest.all(i, !({_FOLLOWS}) || "
            "i.source.type == 'Debezium' || i.source.kafka.keyFormat != 'raw')",
            "recordKey {key} needs keys that name columns: an ingest of type Debezium, or kafka.keyFormat json or avro",
            "template",
            lambda s: KEY not in s.template.spec.record_key or all(map(_tells_key, _follower(s))),
        ),
    )

    selector: SelectorSpec = prop("which topics have a table")
    template: TemplateSpec = prop(
        "the HudiTable of a topic; {topic}, {table}, {schema}, {name}, {namespace} and {set} are replaced in every text, and {key} of recordKey by "
        "the columns of the topic's key"
    )
    overrides: tuple[OverrideSpec, ...] = prop(
        "what is otherwise for some topics", (), max_items=OVERRIDES_MAX, list_key="topic"
    )
    max_tables: int = prop(
        "of more topics no further table is made: a pattern that selects too much does no harm",
        TABLES,
        minimum=1,
        maximum=TABLES_MAX,
    )
    prune: bool = prop(
        "delete the HudiTable of a topic that is gone, or selected no more; its own deletionPolicy says what becomes of its files",
        False,
    )
    prune_after: str = prop("a topic must have been gone for so long", "1h", pattern=DURATION, max_length=32)
    deletion_policy: SetDeletionPolicy = prop(
        "what deleting the set does to its HudiTables: deletes them, or lets them be", SetDeletionPolicy.DELETE
    )
    suspend: bool = prop("look for no topics, make and change no HudiTable; those that are there go on", False)

    @property
    def follower(self) -> IngestSpec:
        """The ingest by which each topic is followed."""
        return _follower(self)[0]


@dataclass(frozen=True, slots=True)
class FailingTable:
    """A topic without a table, or a table that is not ready."""

    topic: str = prop("name of the topic")
    table: str = prop("name of its HudiTable, made or not")
    reason: str = prop("stable name: hudictl explain REASON")
    message: str = prop("what is so", max_length=SAID_LENGTH_MAX)


@dataclass(frozen=True, slots=True)
class VanishedTopic:
    """A topic that is gone, or selected no more, and whose HudiTable is there."""

    topic: str = prop("name of the topic")
    table: str = prop("name of its HudiTable")
    since: str = prop("when it was first missed, RFC 3339", format="date-time")


@dataclass(frozen=True, slots=True)
class HudiTableSetStatus:
    """State of a HudiTableSet."""

    observed_generation: int = prop("generation that the status speaks of", 0, minimum=0)
    conditions: tuple[Condition, ...] = prop(
        "Ready and TopicsListed; Reconciling and Stalled while they are so; NameCollision, TooManyTopics and TopicsVanished where there is something to say",
        (),
        list_key="type",
    )
    topics: int | None = prop("topics that are selected; absent until they were listed", None)
    tables: int = prop("HudiTables that there are", 0)
    ready_tables: int = prop("of these, how many are ready, or wait for their first rows", 0)
    failing_tables: int = prop("topics without a table, and tables that are not ready", 0)
    vanished_topics: int = prop("topics that are gone and whose HudiTables are there", 0)
    failing: tuple[FailingTable, ...] = prop("the first of those that fail", (), max_items=FAILING_MAX)
    vanished: tuple[VanishedTopic, ...] = prop("the first of those that are gone", (), max_items=VANISHED_MAX)


assert CONDITION_LENGTH_MAX > FAILING_MAX * SAID_LENGTH_MAX  # all that a status tells by name fits into a condition
