"""What the brokers have of an ingest's topics: ids, partitions, and where each begins and ends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hudi_table.errors import InvalidRequestError, UnavailableError
from hudi_table.model.job.positions import Extent, Positions, TopicExtent
from hudi_table.model.job.retention import Limits
from hudi_table.sources.kafka.client import (
    QUIET,
    TIMEOUT_SECONDS,
    Complaints,
    as_hudi,
    is_starting,
    load_client,
    result,
    results,
)
from hudi_table.sources.kafka.settings import KafkaSettings, client_config
from hudi_table.table.store.clock import SystemClock

Place = tuple[str, int]
"""(topic, partition)."""
FIRST_SECONDS = 3.0
STARTING_LOOKS, STARTING_LOOK_SECONDS = 20, 0.5


def by_place(positions: Positions) -> dict[Place, int]:
    """The offsets of positions."""
    return {(t, p): offset for t, topic in positions.topics.items() for p, offset in topic.offsets.items()}


class Brokers:
    """Questions to a cluster. It holds connections, and ends them with itself."""

    def __init__(self, settings: KafkaSettings, environment: Mapping[str, str]) -> None:
        kafka = load_client()
        from confluent_kafka.admin import AdminClient

        self._settings = settings
        self._complaints = Complaints()
        config: dict[str, Any] = {**client_config(settings, environment).config, "error_cb": self._complaints}
        try:
            self._admin = AdminClient(config, logger=QUIET)
        except (kafka.KafkaException, ValueError, TypeError) as error:
            raise unmade(error, settings) from error

    def extent(self, known: Collection[str] = ()) -> Extent:
        """What is there now, of a range what lies before its end. `known`: topics that were there,
        see `described`. Raises InvalidRequestError for a topic that is not there, UnavailableError,
        AccessDeniedError."""
        found, end = self.extent_of(self.topics(known), known), self._settings.end
        if end is None:
            return found
        if end.offsets is not None:
            unknown = next((t for t in end.offsets.topics if t not in found.topics), None)
            if unknown is not None:
                raise InvalidRequestError(f"kafka.endAt.offsets names topic {unknown}, which is none of the source's")
            return found.until(by_place(end.offsets))
        ends = by_place(found.ends)
        at = self.at_time(ends, end.timestamp)
        return found.until({place: offset if offset >= 0 else ends[place] for place, offset in at.items()})

    def extent_of(self, topics: Collection[str], known: Collection[str] = ()) -> Extent:
        """The same of these topics."""
        described = self.described(topics, known)
        cluster = self.cluster()
        places = [(name, partition) for name, (_, partitions) in described.items() for partition in partitions]
        begin, end, high = self._ends(places)

        def of(name: str, found: Mapping[Place, int]) -> dict[int, int]:
            return {partition: found[name, partition] for partition in described[name][1]}

        return Extent(
            cluster,
            {
                name: TopicExtent(number, of(name, begin), of(name, end), of(name, high))
                for name, (number, _) in described.items()
            },
        )

    def cluster(self) -> str:
        """The cluster's id."""
        return str(self._cluster().cluster_id or "")

    def hosts(self) -> tuple[tuple[str, int], ...]:
        """(host, port) of each broker, as the cluster gives it to clients."""
        return tuple((str(each.host), int(each.port)) for each in self._cluster().nodes)

    def _cluster(self) -> Any:
        asked = self._admin.describe_cluster(request_timeout=TIMEOUT_SECONDS)
        return result(self._admin, asked, self._settings.brokers, self._complaints)

    def topics(self, known: Collection[str] = ()) -> tuple[str, ...]:
        """Those that are named, or that there are of the pattern; `known` as of `described`."""
        if self._settings.pattern is None:
            return self._settings.topics
        wanted = {name for name in known if self._settings.matches(name)}
        for _ in range(STARTING_LOOKS):
            found = {name for name in self._listed().topics if self._settings.matches(name)}
            if wanted <= found:
                break
            SystemClock().sleep(STARTING_LOOK_SECONDS)
        return tuple(sorted(found))

    def named(self) -> tuple[str, ...]:
        """All topics that there are."""
        return tuple(self._listed().topics)

    def _listed(self) -> Any:
        """What the cluster says of itself. A call goes on to its end though credentials are
        refused, so the first one is short."""
        try:
            return self._list(FIRST_SECONDS)
        except UnavailableError:
            return self._list(TIMEOUT_SECONDS - FIRST_SECONDS)

    def _list(self, seconds: float) -> Any:
        kafka = load_client()
        try:
            return self._admin.list_topics(timeout=seconds)
        except kafka.KafkaException as error:
            self._admin.poll(0)
            raise as_hudi(error.args[0], self._settings.brokers, self._complaints) from error

    def described(self, topics: Collection[str], known: Collection[str] = ()) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Topic → (its id, its partitions). A broker that has just begun may not know yet of a
        topic that it has: after those of `known`, which were there, it is asked again, and after
        any as long as it knows of none at all.

        Raises InvalidRequestError for a topic that does not exist, UnavailableError for one of a
        pattern: another look at what there is of the pattern goes on without it.
        """
        found: dict[str, tuple[str, tuple[int, ...]]] = {}
        for left in reversed(range(STARTING_LOOKS)):
            missing = self._describe([name for name in topics if name not in found], found)
            for name, error in missing.items():
                if not left or not (name in known or self._may_come(name)):
                    raise self._gone(name) from error
            if not missing:
                break
            SystemClock().sleep(STARTING_LOOK_SECONDS)
        return found

    def _gone(self, name: str) -> InvalidRequestError | UnavailableError:
        settings = self._settings
        if settings.pattern is not None:
            return UnavailableError(f"topic {name} of kafka.topicPattern is not at {settings.brokers} any more")
        return InvalidRequestError(
            f"topic {name} does not exist at {settings.brokers}: create it, or correct kafka.topics"
        )

    def _may_come(self, name: str) -> bool:
        """Whether a topic that was missing is there by now, or the brokers know of none at all."""
        listed = self._listed().topics
        return not listed or name in listed

    def _describe(
        self, topics: list[str], found: dict[str, tuple[str, tuple[int, ...]]]
    ) -> dict[str, InvalidRequestError]:
        """Note what the brokers know of these topics; returns what they say of those that they do
        not know."""
        if not topics:
            return {}
        kafka, missing = load_client(), {}
        asked = self._admin.describe_topics(kafka.TopicCollection(topics), request_timeout=TIMEOUT_SECONDS)
        for name, future in asked.items():
            try:
                one = result(self._admin, future, self._settings.brokers, self._complaints)
            except InvalidRequestError as error:
                missing[name] = error
            else:
                found[name] = (str(one.topic_id), tuple(sorted(each.id for each in one.partitions)))
        return missing

    def limits(self, topics: Collection[str]) -> dict[str, Limits]:
        """How long each topic keeps messages; all of them where its `cleanup.policy` does not
        delete. Raises AccessDeniedError where its configuration may not be asked for."""
        import confluent_kafka.admin as admin

        wanted = [admin.ConfigResource(admin.ConfigResource.Type.TOPIC, name) for name in sorted(topics)]  # type: ignore[attr-defined]
        asked = self._admin.describe_configs(wanted, request_timeout=TIMEOUT_SECONDS)
        found = results(self._admin, asked, self._settings.brokers, self._complaints)
        return {resource.name: _limits({k: e.value for k, e in each.items()}) for resource, each in found.items()}

    def committed(self, group: str, places: Iterable[Place]) -> dict[Place, int]:
        """The offsets that a consumer group has committed, without partitions of which it has
        none. Raises AccessDeniedError where the group may not be looked at."""
        kafka = load_client()
        asked = [kafka.TopicPartition(topic, partition) for topic, partition in places]
        if not asked:
            return {}
        wanted = [kafka.ConsumerGroupTopicPartitions(group, asked)]
        futures = self._admin.list_consumer_group_offsets(wanted, require_stable=True, request_timeout=TIMEOUT_SECONDS)
        found = result(self._admin, futures[group], self._settings.brokers, self._complaints).topic_partitions
        for each in found:
            if each.error is not None:
                raise as_hudi(each.error, self._settings.brokers, self._complaints)
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def at_time(self, places: Iterable[Place], millis: int) -> dict[Place, int]:
        """The first offset of each partition with that timestamp or a later one, -1 where there is
        none. It may be that of a control marker."""
        return self._offsets(list(places), _specs().for_timestamp(millis))

    def newest(self, places: Iterable[Place]) -> dict[Place, int]:
        """The greatest timestamp of each partition, without those that hold none. Brokers before
        Kafka 3.0 do not tell."""
        try:
            found = self._listed_offsets(list(places), _specs().max_timestamp())
        except UnavailableError:
            return {}
        return {place: each.timestamp for place, each in found.items() if each.timestamp >= 0}

    def _ends(self, places: list[Place]) -> tuple[dict[Place, int], dict[Place, int], dict[Place, int]]:
        latest = _specs().latest()
        # What is committed is asked for last: an end that was read before may lie behind the one that is told.
        begin = self._offsets(places, _specs().earliest())
        end = self._offsets(places, latest, committed=True)
        return begin, end, self._offsets(places, latest)

    def _offsets(self, places: list[Place], spec: Any, *, committed: bool = False) -> dict[Place, int]:
        found = self._listed_offsets(places, spec, committed=committed)
        return {place: each.offset for place, each in found.items()}

    def _listed_offsets(self, places: list[Place], spec: Any, *, committed: bool = False) -> dict[Place, Any]:
        if not places:
            return {}
        kafka = load_client()
        level = kafka.IsolationLevel.READ_COMMITTED if committed else kafka.IsolationLevel.READ_UNCOMMITTED
        for left in reversed(range(STARTING_LOOKS)):
            asked = self._admin.list_offsets(
                {kafka.TopicPartition(topic, partition): spec for topic, partition in places},
                isolation_level=level,
                request_timeout=TIMEOUT_SECONDS,
            )
            try:
                found = results(self._admin, asked, self._settings.brokers, self._complaints)
                break
            except (UnavailableError, InvalidRequestError) as error:
                if not left or not is_starting(error):
                    raise
                SystemClock().sleep(STARTING_LOOK_SECONDS)
        return {(place.topic, place.partition): each for place, each in found.items()}


def _limits(config: Mapping[str, Any]) -> Limits:
    if "delete" not in str(config.get("cleanup.policy", "delete")):
        return Limits()

    def of(name: str) -> int | None:
        number = int(config.get(name) or -1)
        return number if number >= 0 else None

    return Limits(of("retention.ms"), of("retention.bytes"))


def _specs() -> Any:
    """The client's ways to ask for an offset."""
    import confluent_kafka.admin as admin

    return admin.OffsetSpec  # type: ignore[attr-defined]


def unmade(error: Exception, settings: KafkaSettings) -> InvalidRequestError:
    """The client takes its configuration or does not; what it says of it may quote a secret, so the
    message names its kind alone."""
    del error
    return InvalidRequestError(
        f"the client refuses its configuration for {settings.brokers} ({settings.protocol}): check the brokers' addresses, "
        "kafka.security and the PEM texts of the Secret"
    )
