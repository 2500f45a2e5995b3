"""Brokers of Kafka, and how they are spoken to."""

from __future__ import annotations

from enum import StrEnum

BROKERS = r"^[A-Za-z0-9._-]+:[0-9]{1,5}(,[A-Za-z0-9._-]+:[0-9]{1,5})*$"
"""Hosts and ports: no user, no key."""
TOPIC_LENGTH_MAX = 249


class SecurityProtocol(StrEnum):
    """How brokers are spoken to."""

    PLAINTEXT = "Plaintext"
    TLS = "Tls"
    SASL_PLAINTEXT = "SaslPlaintext"
    SASL_TLS = "SaslTls"


class SaslMechanism(StrEnum):
    """How a user proves to be one."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
