"""`source.notifications` of an ingest from files: a queue that tells which files came."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hudi_operator.api.schema import prop


class NotificationType(StrEnum):
    """Which queue tells."""

    SQS = "Sqs"


@dataclass(frozen=True, slots=True)
class NotificationsSpec:
    """A queue that gets the events of the bucket, of its own for this ingest. It is asked with the
    credentials of the store."""

    type: NotificationType = prop("which queue it is")
    queue: str = prop(
        "its URL, such as https://sqs.eu-central-1.amazonaws.com/123456789012/landing",
        pattern="^https?://[^/@?#]+/[^@?#]+$",
        max_length=512,
    )
