"""A queue of SQS: how much waits, receiving, deleting, hiding.

Facts (SQS developer guide): a receive gives at most ten messages, and hides them for its visibility
timeout, which can be set anew while it lasts, to twelve hours at the most; a long poll asks all
servers, a short one some; a message comes at least once; what was received too often goes to
another queue, if there is a redrive policy. moto and boto3 1.43 tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hudi_table.errors import InvalidRequestError, UnavailableError
from hudi_table.sources import aws

BATCH = 10
_MISSING = ("NonExistentQueue", "QueueDoesNotExist")
_RIGHTS = "sqs:GetQueueAttributes, sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility"
_HOST = re.compile(r"(?:sqs\.([a-z0-9-]+)|([a-z0-9-]+)\.queue)\.amazonaws\.com(?:\.cn)?", re.ASCII)
_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Message:
    """`receipt`: by which it is deleted or hidden; anew with each receive."""

    receipt: str
    body: str


@dataclass(frozen=True, slots=True)
class Depth:
    """About how many messages wait, how many somebody has received and not deleted, and whether
    what is received too often goes to another queue."""

    waiting: int
    in_flight: int
    redrives: bool


def region_of(url: str, region: str | None = None) -> str:
    """Of a queue of AWS the one in its URL, of others what is given."""
    found = _HOST.fullmatch(urlsplit(url).hostname or "")
    return next((part for part in found.groups() if part), _REGION) if found is not None else region or _REGION


@dataclass(slots=True)
class Queue:
    """The queue of a URL. `credentials`: AWS's three variables; where they are not among them,
    boto3's own chain finds some."""

    url: str
    region: str | None = None
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    _client: Any = field(default=None, repr=False)

    def depth(self) -> Depth:
        """Raises UnavailableError, AccessDeniedError, InvalidRequestError."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "RedrivePolicy"]
        found = self._ask("get_queue_attributes", AttributeNames=names).get("Attributes", {})
        waiting, in_flight = (int(found.get(name, 0)) for name in names[:2])
        return Depth(waiting, in_flight, "RedrivePolicy" in found)

    def receive(self, hidden: int, wait: int) -> list[Message]:
        """At most ten messages, hidden for so many seconds; none after `wait` seconds without
        one."""
        found = self._ask("receive_message", MaxNumberOfMessages=BATCH, VisibilityTimeout=hidden, WaitTimeSeconds=wait)
        return [Message(str(each["ReceiptHandle"]), str(each.get("Body", ""))) for each in found.get("Messages", ())]

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete at most ten messages; those that are gone are left alone."""
        self._each("delete_message_batch", receipts, {})

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Hide at most ten messages from now on for so many seconds; those that are seen again, or
        gone, are left alone."""
        self._each("change_message_visibility_batch", receipts, {"VisibilityTimeout": seconds})

    def _each(self, request: str, receipts: Sequence[str], more: Mapping[str, Any]) -> None:
        entries = [{"Id": str(number), "ReceiptHandle": one, **more} for number, one in enumerate(receipts)]
        failed = self._ask(request, Entries=entries).get("Failed", ())
        # A receipt that is too old is the sender's fault, and nothing is to be done: the message comes again.
        if any(not each.get("SenderFault", True) for each in failed):
            raise UnavailableError(f"the queue {self.url} did not do all of {request}; try again later")

    def _ask(self, request: str, **more: Any) -> Any:
        with aws.meaning(
            f"the queue {self.url}", "its URL", "notifications of SQS", _RIGHTS, dict.fromkeys(_MISSING, self._missing)
        ):
            if self._client is None:
                place = urlsplit(self.url)
                endpoint = f"{place.scheme}://{place.netloc}"
                self._client = aws.client("sqs", region_of(self.url, self.region), endpoint, self.credentials)
            call: Callable[..., Any] = getattr(self._client, request)
            return call(QueueUrl=self.url, **more)

    def _missing(self) -> Exception:
        return InvalidRequestError(f"there is no queue {self.url}: create it, or correct notifications.queue")
