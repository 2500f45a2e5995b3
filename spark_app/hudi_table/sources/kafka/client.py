"""The client's errors in the words of ours, and its calls bounded in time."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from hudi_table.errors import AccessDeniedError, HudiError, InvalidRequestError, UnavailableError
from hudi_table.model.job.variables import CERTIFICATE, KEY

TIMEOUT_SECONDS = 20.0
LOOK_SECONDS = 0.2
QUIET = logging.getLogger("hudi_table.kafka")
QUIET.addHandler(logging.NullHandler())
"""What the client would write to the terminal goes to a log that nobody has to hear."""


def load_client() -> Any:
    """The module confluent_kafka. Raises InvalidRequestError where it is not installed."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise InvalidRequestError(
            "Kafka needs confluent-kafka, not installed here: pip install 'hudi-table[kafka]'"
        ) from error
    return confluent_kafka


class Complaints:
    """What the client says beside its calls: a call that times out does not tell that the password
    was wrong."""

    def __init__(self) -> None:
        self.worst: Any = None

    def __call__(self, error: Any) -> None:
        """Keep an error if it is the first, or refuses credentials."""
        if self.worst is None or _refuses(error):
            self.worst = error

    @property
    def denied(self) -> bool:
        """Whether credentials or certificates are refused."""
        return self.worst is not None and _refuses(self.worst)


_DENIED = frozenset(
    {
        "_AUTHENTICATION",
        "_SSL",
        "SASL_AUTHENTICATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
    }
)
_CERTIFICATE = re.compile(r"SSL alert number (?:4[0-9]|116)\b", re.ASCII)
"""How brokers refuse the certificate of a client, or that it has none (RFC 8446, 6.2): to the
client a connection that breaks."""
_ELECTING = frozenset(
    {"UNKNOWN_LEADER_EPOCH", "FENCED_LEADER_EPOCH", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION"}
)
_MISSING = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID"})


def _refuses(error: Any) -> bool:
    return error.name() in _DENIED or _CERTIFICATE.search(str(error.str())) is not None


def as_hudi(error: Any, brokers: str, complaints: Complaints | None = None) -> HudiError:
    """An error of the client (a KafkaError) as one of ours."""
    if complaints is not None and complaints.denied:
        error = complaints.worst
    name, said = error.name(), " ".join(str(error.str()).split())
    if _CERTIFICATE.search(said):
        return AccessDeniedError(
            f"the brokers at {brokers} refuse the client's certificate: {said}; give them one that they trust, as {CERTIFICATE} and {KEY}"
        )
    if name in _DENIED:
        return AccessDeniedError(f"the brokers at {brokers} refuse: {said}")
    if name in _MISSING:
        return InvalidRequestError(f"the brokers at {brokers} have no such topic: {said}")
    return UnavailableError(f"the brokers at {brokers} do not answer: {said or name}")


def is_starting(error: HudiError) -> bool:
    """Whether a broker may have just begun, or ended: it knows no leader of the partition that
    knows of itself, or not even the topic. Another look finds them within seconds."""
    cause = error.__cause__
    return cause is not None and bool(cause.args) and getattr(cause.args[0], "name", str)() in _ELECTING | _MISSING


def results(admin: Any, futures: Mapping[Any, Any], brokers: str, complaints: Complaints) -> dict[Any, Any]:
    """What futures of an admin client came to. Raises HudiError."""
    return {key: result(admin, future, brokers, complaints) for key, future in futures.items()}


def result(admin: Any, future: Any, brokers: str, complaints: Complaints) -> Any:
    """What a future of an admin client came to. Raises HudiError: at once where the brokers refuse,
    which the client itself tries over and over."""
    kafka = load_client()
    for _ in range(int((TIMEOUT_SECONDS + 5) / LOOK_SECONDS)):
        try:
            return future.result(LOOK_SECONDS)
        except kafka.KafkaException as error:
            admin.poll(0)
            raise as_hudi(error.args[0], brokers, complaints) from error
        except TimeoutError:
            admin.poll(0)
            if complaints.denied:
                raise as_hudi(complaints.worst, brokers) from None
    raise UnavailableError(f"the brokers at {brokers} do not answer within {TIMEOUT_SECONDS:.0f} s")
