"""The lock of Apache Hudi's `DynamoDBBasedLockProvider`: one item, as Amazon's lock client writes
it.

No clock on a wall is asked. Who holds the lock gives the item a new version within each lease; who
wants it takes an item whose version has stood for a whole lease before his own eyes.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from typing import Any

from hudi_table.errors import (
    AccessDeniedError,
    CorruptTableError,
    HudiError,
    InvalidRequestError,
    OutcomeUnknownError,
    UnavailableError,
)
from hudi_table.model import digits
from hudi_table.model.options.lock_settings import DynamoLockSettings
from hudi_table.table.locks.lease import Lease, lost, wait
from hudi_table.table.store.ports import Clock

Item = dict[str, dict[str, str]]
_NAMES = {
    "#key": "key",
    "#owner": "ownerName",
    "#lease": "leaseDuration",
    "#version": "recordVersionNumber",
    "#released": "isReleased",
}
_DENIED = ("AccessDenied", "UnrecognizedClient", "InvalidSignature", "ExpiredToken", "MissingAuthentication")


class _RefusedError(Exception):
    """The condition did not hold."""


class DynamoLock:
    """The item of the settings' key. `client`: of boto3."""

    def __init__(self, client: Any, clock: Clock, settings: DynamoLockSettings, *, pause: float) -> None:
        self._client = client
        self._clock = clock
        self._settings = settings
        self._pause = pause

    def acquire(self, patience: float) -> HeldDynamoLock:
        """Take it within so many seconds, after which an item that another left there is not yet
        stale perhaps: patience should be greater than its lease."""
        held = HeldDynamoLock(_Table(self._client, self._settings), self._clock, self._settings)
        return wait(held.attempt, self._clock, patience=patience, pause=self._pause, what=held.what)


class HeldDynamoLock:
    """What one owner has written into the item, and when it sent it."""

    def __init__(self, table: _Table, clock: Clock, settings: DynamoLockSettings) -> None:
        self._table = table
        self._clock = clock
        self._owner = f"hudi_table{uuid.uuid4()}"
        self._lease = Lease(clock, settings.lease)
        self._sent: dict[str, float] = {}
        """Versions that may be there, with the moments of their sending."""
        self._version: str | None = None
        self._seen: tuple[str, float] = ("", 0.0)
        """Another's version, and when it was seen first."""
        self.what = f"the lock {settings.key!r} in the table {settings.table} of DynamoDB"

    def attempt(self) -> HeldDynamoLock | str:
        """The lock if it is free now, else who has it."""
        item = self._table.get()
        if item is None:
            return self._taken("attribute_not_exists(#key)", {})
        version, owner = _text(item, "#version"), _text(item, "#owner")
        values = {":old": {"S": version}}
        if version in self._sent:
            self._have(version)
            return self
        if _NAMES["#released"] in item:
            return self._taken("#version = :old AND attribute_exists(#released)", values)
        if version != self._seen[0]:
            self._seen = (version, self._clock.boot_seconds())
        if self._clock.boot_seconds() - self._seen[1] > _millis(item) / 1000:
            return self._taken("#version = :old", values)
        return f"{owner} has it"

    def valid(self) -> bool:
        """Whether its lease lasts."""
        return self._lease.lasts()

    def lease_seconds(self) -> float:
        """For how long a renewal lasts."""
        return self._lease.seconds

    def renew(self) -> None:
        """Give the item a new version, if it has ours."""
        if self._version is None:
            raise lost(self.what, "it was given back, or lost before")
        for _ in range(2):
            old, new = self._version, self._fresh()
            try:
                self._table.renew(old, new, self._owner, self._lease.seconds)
                return self._have(new)
            except _RefusedError:
                self._find_again()
            except OutcomeUnknownError:
                self._find_again()
                if self._version != new:
                    raise UnavailableError(f"{self.what} was not renewed; try again") from None
                return None
        raise lost(self.what, "another writer has just taken it")

    def release(self) -> None:
        """Delete the item, if it is ours."""
        if self._version is None:
            return
        with contextlib.suppress(HudiError, _RefusedError):
            self._table.delete(self._version, self._owner)
        self._lease.end()
        self._version = None

    def _taken(self, condition: str, values: Item) -> HeldDynamoLock | str:
        version = self._fresh()
        try:
            self._table.take(version, self._owner, self._lease.seconds, condition, values)
        except _RefusedError:
            return "another writer was faster"
        except OutcomeUnknownError:
            return "DynamoDB lost the reply to a request for it"  # the next look tells
        self._have(version)
        return self

    def _fresh(self) -> str:
        version = str(uuid.uuid4())
        self._sent[version] = self._lease.sending()
        return version

    def _have(self, version: str) -> None:
        self._lease.granted(self._sent[version])
        self._version = version
        self._sent = {version: self._sent[version]}

    def _find_again(self) -> None:
        """Which version of ours is there. Raises WriteAbortedError if none is."""
        item = self._table.get()
        version = "" if item is None else _text(item, "#version")
        if version not in self._sent:
            self._lease.end()
            self._version = None
            raise lost(self.what, "another writer has taken it")
        if version != self._version:
            self._have(version)


class _Table:
    """The requests, each sent once: what becomes of one whose reply was lost is seen in the
    item."""

    def __init__(self, client: Any, settings: DynamoLockSettings) -> None:
        self._client = client
        self._settings = settings
        self._key = {"key": {"S": settings.key}}

    def get(self) -> Item | None:
        table = self._settings.table
        found = self._ask(lambda: self._client.get_item(TableName=table, Key=self._key, ConsistentRead=True))
        item: Item | None = found.get("Item")
        return item

    def take(self, version: str, owner: str, lease: float, condition: str, values: Item) -> None:
        item = self._key | {
            "ownerName": {"S": owner},
            "leaseDuration": {"S": str(round(lease * 1000))},
            "recordVersionNumber": {"S": version},
        }
        self._write(self._client.put_item, condition, values, Item=item)

    def renew(self, old: str, new: str, owner: str, lease: float) -> None:
        values = {":old": {"S": old}, ":owner": {"S": owner}, ":new": {"S": new}}
        values[":lease"] = {"S": str(round(lease * 1000))}
        update = "SET #lease = :lease, #version = :new"
        self._write(self._client.update_item, _OURS, values, Key=self._key, UpdateExpression=update)

    def delete(self, version: str, owner: str) -> None:
        self._write(self._client.delete_item, _OURS, {":old": {"S": version}, ":owner": {"S": owner}}, Key=self._key)

    def _write(self, request: Callable[..., Any], condition: str, values: Item, **more: Any) -> None:
        said = f"{condition} {more.get('UpdateExpression', '')}"
        more["ExpressionAttributeNames"] = {name: meant for name, meant in _NAMES.items() if name in said}
        if values:
            more["ExpressionAttributeValues"] = values
        self._ask(lambda: request(TableName=self._settings.table, ConditionExpression=condition, **more), writes=True)

    def _ask(self, request: Callable[[], Any], *, writes: bool = False) -> Any:
        from botocore.exceptions import (  # type: ignore[import-untyped]
            BotoCoreError,
            ClientError,
            NoCredentialsError,
        )

        where = f"the table {self._settings.table} of DynamoDB"
        try:
            return request()
        except ClientError as error:
            raise _meaning(error, where, writes=writes) from error
        except NoCredentialsError as error:
            raise AccessDeniedError(f"no credentials for {where}: set them as for S3") from error
        except BotoCoreError as error:
            # Whether it was sent is not told.
            kind = OutcomeUnknownError if writes else UnavailableError
            raise kind(f"{where} did not answer: {error}; try again later") from error


_OURS = "attribute_exists(#key) AND #version = :old AND #owner = :owner"


def dynamo_client(settings: DynamoLockSettings) -> Any:
    """boto3's client, which repeats nothing by itself."""
    try:
        import boto3  # type: ignore[import-untyped]
        from botocore.config import Config  # type: ignore[import-untyped]
    except ImportError as error:
        raise InvalidRequestError("a lock of DynamoDB needs boto3: pip install 'hudi-table[aws]' brings it") from error
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=min(30.0, settings.lease / 3))
    return boto3.client("dynamodb", region_name=settings.region, endpoint_url=settings.endpoint, config=config)


def _text(item: Item, name: str) -> str:
    found = item.get(_NAMES[name], {}).get("S")
    if found is None:
        raise CorruptTableError(
            f"the item {item.get('key')} of the table of locks has no {_NAMES[name]!r}: no lock client wrote it"
        )
    return found


def _millis(item: Item) -> int:
    text = _text(item, "#lease")
    found = digits.whole(text)
    if found is None:
        raise CorruptTableError(f"the item {item.get('key')} of the table of locks has a lease of {text[:40]!r}")
    return found


def _meaning(error: Any, where: str, *, writes: bool) -> Exception:
    code, status = error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    if code == "ConditionalCheckFailedException":
        return _RefusedError()
    if code == "ResourceNotFoundException":
        return InvalidRequestError(f"{where} does not exist: create it, with the text `key` as its partition key")
    if any(code.startswith(one) for one in _DENIED):
        return AccessDeniedError(f"{where} refused the credentials ({code}): check the key and what it may do")
    if status >= 500 and writes:
        return OutcomeUnknownError(f"{where} answered {status} {code}; whether it was done is not known")
    if status >= 500 or "Throttling" in code or "Throughput" in code or "LimitExceeded" in code:
        return UnavailableError(f"{where} answered {code}; try again later")
    return InvalidRequestError(f"{where} refused the request with {code}")
