"""The keys of topics whose HudiTables are to have their columns: read by the operator, as topics
are listed by it, some at a time, and remembered until the tables are there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.api.resources import DesiredSet, Key
from hudi_operator.api.table_set import HudiTableSetSpec
from hudi_operator.manifests.sources import kafka_document
from hudi_operator.plan.observed import Problem
from hudi_operator.runtime.masking import masked_problem
from hudi_operator.runtime.observing.problems import problem_of
from hudi_table.errors import HudiError
from hudi_table.model.bounded import Bounded
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Clock

READ_MAX = 20
"""So many are read at one reconcile: each is a question to a registry, or a message."""
KNOWN_MAX = 20_000
FAILED_SECONDS = 45.0
"""A key that could not be read is read again when topics are listed again."""
Found = tuple[str, ...] | Problem
Reader = Callable[[HudiTableSetSpec, Mapping[str, str], Sequence[str]], Mapping[str, tuple[str, ...] | HudiError]]


def read_keys(
    spec: HudiTableSetSpec, secret: Mapping[str, str], topics: Sequence[str]
) -> Mapping[str, tuple[str, ...] | HudiError]:
    """As the brokers and the registry have them now."""
    # The client is loaded by who has such a set.
    from hudi_table.sources.kafka.settings import KafkaSettings
    from hudi_table.sources.kafka.topic_keys import columns_of

    source = spec.follower.source
    assert source.kafka is not None
    document = {"type": source.type.value, "format": source.format, "kafka": kafka_document(source.kafka)}
    try:
        return columns_of(KafkaSettings.of(document), secret, SystemClock(), tuple(topics))
    except HudiError as error:
        return dict.fromkeys(topics, error)


@dataclass
class SetKeys:
    """Keys of topics by set. For several threads at once."""

    clock: Clock
    reader: Reader = read_keys
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: Bounded[tuple[Key, str], tuple[Any, float, Found]] = field(default_factory=lambda: Bounded(KNOWN_MAX))

    def of(self, desired: DesiredSet, secret: Mapping[str, str], topics: Sequence[str]) -> dict[str, Found]:
        """Topic → the columns of its key, or why they are not known; nothing of those that are to
        be read the next time."""
        if desired.spec is None or not topics:
            return {}
        key, now = desired.identity.key, self.clock.boot_seconds()
        asked = (desired.identity.uid, desired.spec.follower.source, hash(tuple(sorted(secret.items()))))
        found = {topic: held for topic in topics if (held := self._held(key, topic, asked, now)) is not None}
        unread = [topic for topic in topics if topic not in found][:READ_MAX]
        if unread:
            read = self.reader(desired.spec, secret, unread)
            for topic, columns in read.items():
                found[topic] = (
                    masked_problem(problem_of(columns), secret) if isinstance(columns, HudiError) else columns
                )
            moment = self.clock.boot_seconds()
            with self._lock:
                for topic in read:
                    self._known[key, topic] = (asked, moment, found[topic])
        return found

    def forget(self, key: Key) -> None:
        """A set is gone."""
        with self._lock:
            for kept in [each for each in self._known if each[0] == key]:
                self._known.pop(kept, None)

    def _held(self, key: Key, topic: str, asked: Any, now: float) -> Found | None:
        kept = self._known.get((key, topic))
        if kept is None or kept[0] != asked:
            return None
        return kept[2] if not isinstance(kept[2], Problem) or now - kept[1] < FAILED_SECONDS else None
