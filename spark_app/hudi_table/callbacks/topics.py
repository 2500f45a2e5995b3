"""A commit as a message of Kafka: its event as the value, the table's location as the key, so that
the commits of a table lie in one partition, in their order.

Facts (CloudEvents 1.0.2, binding of Kafka): in structured mode the value is the whole event, and
the header `content-type` says so. Facts (librdkafka 2.16): an idempotent producer keeps the order
of what it repeats by itself; what has not been confirmed by the end of its time may have arrived
all the same.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_table.callbacks.cloud_events import MEDIA_TYPE, body_of, event_of
from hudi_table.callbacks.commits import Commit
from hudi_table.callbacks.post import SECONDS, Answer
from hudi_table.callbacks.receivers import Allowed, Target, addresses_of
from hudi_table.callbacks.signatures import HEADER, signature
from hudi_table.errors import HudiError
from hudi_table.sources.kafka.brokers import Brokers, unmade
from hudi_table.sources.kafka.client import QUIET, Complaints, as_hudi, load_client
from hudi_table.sources.kafka.settings import KafkaSettings, client_config
from hudi_table.table.timeline.context import TableContext

BROKERS_MAX = 1000


@dataclass(slots=True)
class TopicReceiver:
    """The topic of `settings`. `key` signs, if there is one; `secret` holds what the brokers ask
    for. It holds connections from the first event on, ended by `close`."""

    settings: KafkaSettings
    key: str = field(repr=False)
    secret: Mapping[str, str] = field(repr=False)
    _producer: Any = field(default=None, repr=False)
    _complaints: Complaints = field(default_factory=Complaints, repr=False)

    def send(self, ctx: TableContext, commit: Commit, allowed: Allowed) -> Answer:
        """One attempt at one commit: the brokers have written it down, or the reason why not."""
        try:
            if self._producer is None:
                refused = self._open(allowed)
                if refused is not None:
                    return refused
            why = self._sent(ctx, commit)
        except HudiError as error:
            why = error.message
        if not why:
            return Answer(True)
        # The next attempt begins anew. What this producer holds still goes nowhere; what it has sent may be written late, as a
        # repetition, for the next commit waits until an attempt was confirmed.
        self.close()
        return Answer(False, why)

    def close(self) -> None:
        """End the connections; what was not confirmed is given up."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(0)
        self._producer = None

    def _open(self, allowed: Allowed) -> Answer | None:
        """Connect, if all that the client would connect to is allowed. Raises HudiError."""
        why = refusal(self.settings.brokers, allowed)
        if why is None:
            brokers = Brokers(self.settings, self.secret)
            # A client goes where the cluster says that its brokers are.
            why = _refusal(brokers.hosts()[:BROKERS_MAX], allowed)
            if why is None:
                brokers.described(self.settings.topics)
        if why is not None:
            return Answer(False, why, refused=True)
        kafka = load_client()
        own = {
            "client.id": "hudi-operator",
            "enable.idempotence": True,
            "linger.ms": 0,
            "message.timeout.ms": int(SECONDS * 1000),
            "error_cb": self._complaints,
        }
        try:
            config = client_config(self.settings, self.secret).config
            self._producer = kafka.Producer({**config, **own}, logger=QUIET)
        except (kafka.KafkaException, ValueError, TypeError) as error:
            raise unmade(error, self.settings) from error
        return None

    def _sent(self, ctx: TableContext, commit: Commit) -> str:
        """Why the brokers have it not; "" if they have it."""
        event = event_of(ctx, commit)
        body = body_of(event)
        headers = [("content-type", MEDIA_TYPE.encode())]
        if self.key:
            headers.append((HEADER, signature(self.key, body, int(ctx.clock.now().timestamp())).encode()))
        told: list[Any] = []
        (topic,) = self.settings.topics
        place = str(event["source"]).encode()
        try:
            self._producer.produce(topic, body, place, headers=headers, on_delivery=lambda error, _: told.append(error))
        except load_client().KafkaException as error:
            return as_hudi(error.args[0], self.settings.brokers, self._complaints).message
        self._producer.flush(SECONDS + 1)
        if not told:
            return f"no answer within {SECONDS:g} s"
        return as_hudi(told[0], self.settings.brokers, self._complaints).message if told[0] is not None else ""


def refusal(brokers: str, allowed: Allowed) -> str | None:
    """Why one of these brokers, `host:port,…`, may not be connected to."""
    named = (address.rpartition(":") for address in brokers.split(","))
    return _refusal(((host, int(port)) for host, _, port in named), allowed)


def _refusal(places: Iterable[tuple[str, int]], allowed: Allowed) -> str | None:
    """Why one of these may not be connected to. A client resolves names itself, so each of their
    addresses must be allowed."""
    for host, port in places:
        if not allowed.host(host.lower()):
            return f"host {host} is not allowed"
        if _is_address(host):
            continue
        try:
            addresses = addresses_of(Target("kafka", host, port, ""))
        except OSError:
            continue  # the client will say so
        bad = next((each for each in addresses if not allowed.address(each)), None)
        if bad is not None:
            return f"host {host} is at {bad}, an address of this machine or its link, which is not allowed"
    return None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
