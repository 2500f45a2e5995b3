"""Reading on in a thread of its own, while what was read before is decoded and committed.

One batch at the most is read ahead, within the bounds of a commit: a process that has more to catch
up with holds the messages of two, and of both what is decoded already.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace

from hudi_table.sources.formats.values import Early
from hudi_table.sources.kafka.brokers import Place
from hudi_table.sources.kafka.consume import Consumer, Messages, Until
from hudi_table.table.store import threads


class Ahead:
    """What comes behind the positions of a consumer, which nobody else asks until `end`. `early`:
    decodes it."""

    def __init__(self, consumer: Consumer, until: Until, early: Early | None = None) -> None:
        self._start = consumer.positions
        self._until = until
        self._ended = threads.event()
        self._thread = threads.pool(1, "hudi-kafka")
        alone = replace(until, deadline=None, told=self._ended.is_set)
        self._found: Future[Messages] = self._thread.submit(consumer.read, alone, consumer.none(early), waits=False)

    def end(self) -> Messages:
        """What has been read. Raises what the reading raised."""
        self.drop()
        return self._found.result()

    def drop(self) -> None:
        """End it, whatever it has come to: who reads on begins somewhere else."""
        self._ended.set()
        self._thread.shutdown()

    def is_of(self, start: Mapping[Place, int], until: Until) -> bool:
        """Whether a batch that begins at `start` begins with what is read here."""
        # A strict reading has left out what lies behind its stops, and another one has read it.
        same = until.strict == self._until.strict and (not until.strict or until.stops == self._until.stops)
        return self._start == start and same
