"""Receivers of a table's commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hudi_operator.api.fields.brokers import BROKERS, TOPIC_LENGTH_MAX, SaslMechanism, SecurityProtocol
from hudi_operator.api.fields.patterns import ENDPOINT, NAME, OBJECT_NAME
from hudi_operator.api.schema import Rule, prop
from hudi_table.callbacks.kinds import CommitKind

SIGNING_KEY, BEARER_TOKEN = "signingKey", "bearerToken"


@dataclass(frozen=True, slots=True)
class CallbackSecret:
    """A Secret of the same namespace."""

    name: str = prop(
        f"name of the Secret: its {SIGNING_KEY} signs each event; its {BEARER_TOKEN}, if it has one, is sent to url as the Authorization header; "
        "KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD, KAFKA_CA, KAFKA_CLIENT_CERTIFICATE and KAFKA_CLIENT_KEY are for the brokers of kafka",
        pattern=OBJECT_NAME,
        max_length=253,
    )


@dataclass(frozen=True, slots=True)
class CallbackSecuritySpec:
    """How the brokers are spoken to. User, password and PEM texts are in the Secret of
    secretRef."""

    protocol: SecurityProtocol = prop("with TLS, with a user, both or none", SecurityProtocol.PLAINTEXT)
    mechanism: SaslMechanism = prop("of the protocols with a user", SaslMechanism.SCRAM_SHA_512)


@dataclass(frozen=True, slots=True)
class CallbackKafkaSpec:
    """A topic of Kafka that each event is sent to; its key is the table's location."""

    brokers: str = prop(
        "brokers to begin with, such as kafka-0:9092,kafka-1:9092; their hosts, and those under which the brokers know each other, must be some of "
        "callbacks.allowedHosts of the operator's chart",
        pattern=BROKERS,
        min_length=1,
        max_length=1024,
    )
    topic: str = prop("name of the topic", pattern="^[A-Za-z0-9._-]+$", min_length=1, max_length=TOPIC_LENGTH_MAX)
    security: CallbackSecuritySpec = prop("how the brokers are spoken to", CallbackSecuritySpec)

    @property
    def has_user(self) -> bool:
        """Whether the brokers ask for a user."""
        return self.security.protocol in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_TLS)


@dataclass(frozen=True, slots=True)
class CallbackSpec:
    """One receiver of the table's commits."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.url) != has(self.kafka)",
            "give url or kafka, one of them",
            "url",
            lambda c: (c.url is None) != (c.kafka is None),
        ),
        Rule(
            "has(self.secretRef) || !(has(self.url) || (has(self.kafka) && self.kafka.security.protocol.startsWith('Sasl')))",
            "url needs secretRef, whose key signs, and so do brokers that ask for a user",
            "secretRef",
            lambda c: c.secret_ref is not None or not (c.url is not None or (c.kafka is not None and c.kafka.has_user)),
        ),
    )

    name: str = prop(
        "name of the callback, unique in the table: its position is kept by it", pattern=NAME, max_length=40
    )
    url: str | None = prop(
        "where each event is posted to, as http(s)://host[:port]/path; its host must be one of callbacks.allowedHosts of the operator's chart",
        None,
        pattern=ENDPOINT,
        max_length=1024,
    )
    kafka: CallbackKafkaSpec | None = prop("the topic that each event is sent to", None)
    secret_ref: CallbackSecret | None = prop("the Secret that signs, and that holds what the receiver asks for", None)
    events: tuple[CommitKind, ...] = prop(
        "Write: commits of rows; Rewrite: compactions and clusterings, which change none",
        (CommitKind.WRITE,),
        min_items=1,
        max_items=2,
        unique=True,
    )
    since: str | None = prop(
        "commits after this instant (on table versions 8 and 9: that completed after it) are sent, or earliest for all; absent: those that complete once the callback is there. It counts until the "
        "status has a position",
        None,
        pattern="^(earliest|[0-9]{17})$",
        max_length=17,
    )
