"""What a message of S3 says: which objects came.

Facts: "Event message structure" of the S3 user guide: records with `eventName`, `s3.bucket.name`
and `s3.object.key`, the key encoded as in a form; a test event when notifications are set up. A
topic of SNS lays its own envelope around, unless delivery is raw; EventBridge has an envelope of
its own, and a plain key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from hudi_table.model.json_text import parse_json

_TEST = "s3:TestEvent"
_SAID_MAX = 60


@dataclass(frozen=True, slots=True)
class Created:
    """An object that came, or came anew."""

    bucket: str
    key: str


def created_objects(body: str) -> tuple[Created, ...]:
    """Of a message's body. Empty for what else happens in a bucket: objects that go, test events.
    Raises ValueError for what is no event of S3."""
    found = _document(body)
    if found.get("Type") == "Notification" and isinstance(found.get("Message"), str):
        found = _document(found["Message"])
    if found.get("Event") == _TEST:
        return ()
    if found.get("source") == "aws.s3" and isinstance(found.get("detail"), Mapping):
        return _of_bridge(str(found.get("detail-type")), found["detail"])
    records = found.get("Records")
    if not isinstance(records, list):
        raise ValueError(f"is no event of S3: {_shown(body)}")
    return tuple(made for record in records if (made := _of_record(record)) is not None)


def _document(text: str) -> Mapping[str, Any]:
    try:
        found = parse_json(text)
    except ValueError:
        found = None
    if not isinstance(found, Mapping):
        raise ValueError(f"is no event of S3: {_shown(text)}")
    return found


def _of_record(record: Any) -> Created | None:
    if not isinstance(record, Mapping) or not isinstance(record.get("eventName"), str):
        raise ValueError(f"holds a record that is no event of S3: {_shown(str(record))}")
    # Names with and without "s3:" are sent: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-event-types-and-destinations.html
    if not record["eventName"].removeprefix("s3:").startswith("ObjectCreated:"):
        return None
    made = _made(record.get("s3"), record)
    return Created(made.bucket, unquote_plus(made.key))


def _of_bridge(kind: str, detail: Mapping[str, Any]) -> tuple[Created, ...]:
    return (_made(detail, detail),) if kind == "Object Created" else ()


def _made(holder: Any, said: Any) -> Created:
    try:
        bucket, key = holder["bucket"]["name"], holder["object"]["key"]
    except (KeyError, TypeError):
        bucket = key = None
    if not isinstance(bucket, str) or not isinstance(key, str):
        raise ValueError(f"names no bucket and object: {_shown(str(said))}")
    return Created(bucket, key)


def _shown(text: str) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= _SAID_MAX else words[:_SAID_MAX] + "…")
