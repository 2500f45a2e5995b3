"""How far an ingest is behind its topics, partition by partition."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.model.job.lag import PartitionLag
from hudi_table.model.job.positions import Positions, lost, unread, words_of
from hudi_table.sources.kafka.brokers import Brokers
from hudi_table.sources.kafka.keeping import waiting_of
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.table.store.ports import Clock


def lags_of(
    settings: KafkaSettings, environment: Mapping[str, str], held: Positions | None, clock: Clock
) -> tuple[list[PartitionLag], str]:
    """Every partition, and in words what the brokers no longer have, "" if nothing is lost; `held`:
    where the ingest is, None before its first commit, when it is not known what waits. Raises
    UnavailableError, AccessDeniedError, InvalidRequestError."""
    brokers = Brokers(settings, environment)
    extent = brokers.extent()
    waits = unread(extent, held) if held is not None else {}
    told = {(each.topic, each.partition): each for each in waiting_of(settings, environment, waits, clock).unread}
    places = [(topic, partition) for topic, there in sorted(extent.topics.items()) for partition in sorted(there.end)]
    newest = brokers.newest(places)
    found = []
    for topic, partition in places:
        at, rows = waits.get((topic, partition), (None, None))
        seen = told.get((topic, partition))
        size = round(seen.messages * seen.size) if seen is not None else 0 if rows == 0 else None
        found.append(
            PartitionLag(
                topic,
                str(partition),
                str(at) if at is not None else None,
                str(extent.topics[topic].end[partition]),
                rows,
                size,
                seen.oldest if seen is not None else None,
                newest.get((topic, partition)),
            )
        )
    losses = lost(extent, held)
    return found, words_of(losses) if losses else ""
