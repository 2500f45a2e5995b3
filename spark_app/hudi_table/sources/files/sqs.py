"""A queue of SQS: how much waits, receiving, deleting, hiding.

Facts (SQS developer guide): a receive gives at most ten messages, and hides them for its visibility
timeout, which can be set anew while it lasts, to twelve hours at the most; a long poll asks all
servers, a short one some; a message comes at least once; what was received too often goes to
another queue, if there is a redrive policy. moto and boto3 1.43 tried.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hudi_table.errors import AccessDeniedError, InvalidRequestError, UnavailableError
from hudi_table.table.store import threads
from hudi_table.table.store.at_once import REQUESTS_AT_ONCE
from hudi_table.table.store.options import check_values

BATCH = 10
_DENIED = ("AccessDenied", "InvalidClientTokenId", "UnrecognizedClient", "SignatureDoesNotMatch", "ExpiredToken", "MissingAuthenticationToken")  # fmt: skip
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
        try:
            from botocore.exceptions import (  # type: ignore[import-untyped]
                BotoCoreError,
                ClientError,
                NoCredentialsError,
                PartialCredentialsError,
            )
        except ImportError as error:
            raise InvalidRequestError(
                "notifications of SQS need boto3: pip install 'hudi-table[aws]' brings it"
            ) from error
        try:
            if self._client is None:
                self._client = _client(self.url, region_of(self.url, self.region), self.credentials)
            call: Callable[..., Any] = getattr(self._client, request)
            return call(QueueUrl=self.url, **more)
        except ClientError as error:
            raise _meaning(error, self.url) from error
        except NoCredentialsError as error:
            raise AccessDeniedError(f"no credentials for the queue {self.url}: set them as for S3") from error
        except (PartialCredentialsError, ValueError) as error:
            raise InvalidRequestError(
                f"the queue {self.url} cannot be asked: {error}; correct its URL, or the credentials"
            ) from error
        except BotoCoreError as error:
            raise UnavailableError(f"the queue {self.url} did not answer: {error}; try again later") from error


def _client(url: str, region: str, credentials: Mapping[str, str]) -> Any:
    from botocore.config import Config  # type: ignore[import-untyped]

    known = {name.lower(): credentials[name] for name in _CREDENTIALS if credentials.get(name)}
    check_values(known, "AWS_")
    # A key that the environment holds does not complete one that was given.
    given = known if "aws_access_key_id" in known else {}
    config = Config(
        retries={"total_max_attempts": 3, "mode": "standard"},
        connect_timeout=5,
        read_timeout=30,
        max_pool_connections=REQUESTS_AT_ONCE,
    )
    place = urlsplit(url)
    with _ONE_AT_A_TIME:
        return _session().client(
            "sqs", region_name=region, endpoint_url=f"{place.scheme}://{place.netloc}", config=config, **given
        )


@functools.cache
def _session() -> Any:
    """It keeps what it has read of AWS's services: a client of a new one takes twenty times as
    long."""
    import boto3  # type: ignore[import-untyped]

    return boto3.session.Session()


_ONE_AT_A_TIME = threads.lock()
"""Clients may be used by several threads, and are made by one at a time."""
_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def _meaning(error: Any, url: str) -> Exception:
    code, status = error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    code = str(code).removeprefix("AWS.SimpleQueueService.")
    if code in ("NonExistentQueue", "QueueDoesNotExist"):
        return InvalidRequestError(f"there is no queue {url}: create it, or correct notifications.queue")
    if any(code.startswith(one) for one in _DENIED):
        return AccessDeniedError(
            f"the queue {url} refused the credentials ({code}): they need sqs:GetQueueAttributes, sqs:ReceiveMessage, "
            "sqs:DeleteMessage and sqs:ChangeMessageVisibility"
        )
    if status >= 500 or "Throttl" in code or code in ("OverLimit", "RequestThrottled"):
        return UnavailableError(f"the queue {url} answered {code}; try again later")
    return InvalidRequestError(f"the queue {url} refused the request with {code}")
