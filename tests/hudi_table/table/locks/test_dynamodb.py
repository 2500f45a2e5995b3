"""The lock of DynamoDB, by the items that Amazon's lock client writes, before moto."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError  # type: ignore[import-untyped]

from hudi_table.errors import (
    AccessDeniedError,
    CorruptTableError,
    InvalidRequestError,
    UnavailableError,
    WriteAbortedError,
)
from hudi_table.model.options.lock_settings import DynamoLockSettings
from hudi_table.table.locks.dynamodb import DynamoLock, HeldDynamoLock, dynamo_client
from hudi_table.table.store.clock import SystemClock
from tests.support.lock_clients import SkewedClock
from tests.support.s3 import S3Server, running_s3

pytestmark = pytest.mark.s3
TABLE = "hudi-locks"


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """moto has DynamoDB, too; one request at a time, so a condition and its write are one."""
    with running_s3() as found:
        yield found


@pytest.fixture
def client(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    made = dynamo_client(settings_of("trips", endpoint=server.endpoint))
    with contextlib.suppress(made.exceptions.ResourceNotFoundException):
        made.delete_table(TableName=TABLE)
    made.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return made


def settings_of(key: str, endpoint: str | None = None) -> DynamoLockSettings:
    return DynamoLockSettings(TABLE, key, region="us-east-1", endpoint=endpoint)


def lock_of(client: Any, clock: Any) -> DynamoLock:
    return DynamoLock(client, clock, settings_of("trips"), pause=1.0)


def item(client: Any) -> dict[str, Any] | None:
    found: dict[str, Any] | None = client.get_item(TableName=TABLE, Key={"key": {"S": "trips"}}).get("Item")
    return found


def put(client: Any, **fields: str) -> None:
    written = {"key": "trips", "ownerName": "ip-10-0-0-1uuid", "leaseDuration": "60000"} | fields
    client.put_item(TableName=TABLE, Item={name: {"S": text} for name, text in written.items()})


def test_the_lock_is_held_by_one_until_it_is_given_back(client: Any):
    clock = SkewedClock()
    held = lock_of(client, clock).acquire(0)
    there = item(client)
    assert there is not None
    assert set(there) == {"key", "ownerName", "leaseDuration", "recordVersionNumber"}
    assert there["leaseDuration"] == {"S": "60000"}
    with pytest.raises(UnavailableError, match=f"{there['ownerName']['S']} has it"):
        lock_of(client, clock).acquire(5)
    held.renew()
    renewed = item(client)
    assert renewed is not None
    assert {**renewed, "recordVersionNumber": there["recordVersionNumber"]} == there
    assert renewed != there
    held.release()
    assert item(client) is None
    assert not held.valid()
    held.release()


def test_a_lock_whose_version_stood_for_a_whole_lease_is_taken_over(client: Any):
    put(client, recordVersionNumber="v1", leaseDuration="20000")
    clock = SkewedClock()
    held = lock_of(client, clock).acquire(30)
    assert clock.boot_seconds() == 21
    assert held.valid()


def test_a_lock_that_is_renewed_is_not_taken_over(client: Any):
    put(client, recordVersionNumber="v1", leaseDuration="20000")

    class Renewing(SkewedClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.boot_seconds() % 10 == 0:
                put(client, recordVersionNumber=f"v{self.boot_seconds()}", leaseDuration="20000")

    with pytest.raises(UnavailableError, match="ip-10-0-0-1uuid has it"):
        lock_of(client, Renewing()).acquire(200)


def test_a_lock_that_was_marked_as_released_is_free(client: Any):
    """As by a client that does not delete it."""
    put(client, recordVersionNumber="v1", isReleased="1")
    assert lock_of(client, SkewedClock()).acquire(0).valid()
    there = item(client)
    assert there is not None
    assert "isReleased" not in there


def test_a_holder_whose_lease_passed_sees_that_another_took_it(client: Any):
    clock = SkewedClock()
    held = lock_of(client, clock).acquire(0)
    other = lock_of(client, clock).acquire(100)
    assert clock.boot_seconds() == 61
    assert not held.valid()
    with pytest.raises(WriteAbortedError, match="another writer has taken it"):
        held.renew()
    held.release()
    assert other.valid()
    other.renew()


@pytest.mark.parametrize("fields", [{}, {"recordVersionNumber": "v1", "leaseDuration": "soon"}])
def test_an_item_that_no_lock_client_wrote_is_nobodys_to_take(client: Any, fields: dict[str, str]):
    put(client, **fields)
    with pytest.raises(CorruptTableError, match="trips"):
        lock_of(client, SkewedClock()).acquire(0)


@dataclass
class LosingReplies:
    """A client of which the reply to the next write is lost; `applied`: whether that was done."""

    inner: Any
    applied: bool | None = None

    def get_item(self, **request: Any) -> Any:
        return self.inner.get_item(**request)

    def __getattr__(self, name: str) -> Any:
        def write(**request: Any) -> Any:
            applied, self.applied = self.applied, None
            if applied is not False:
                answer = getattr(self.inner, name)(**request)
            if applied is not None:
                raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
            return answer

        return write


@pytest.mark.parametrize("applied", [True, False])
def test_a_reply_that_was_lost_is_looked_for_in_the_item(client: Any, applied: bool):
    clock, losing = SkewedClock(), LosingReplies(client)
    losing.applied = applied
    held = lock_of(losing, clock).acquire(5)
    assert held.valid()
    clock.sleep(30)
    losing.applied = applied
    if applied:
        held.renew()
    else:
        with pytest.raises(UnavailableError, match="not renewed"):
            held.renew()
    clock.sleep(29)
    assert held.valid()
    clock.sleep(30.9)
    assert held.valid() == applied
    held.renew()
    losing.applied = applied
    held.release()
    assert (item(client) is None) == applied


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("ResourceNotFoundException", 400, InvalidRequestError),
        ("AccessDeniedException", 400, AccessDeniedError),
        ("UnrecognizedClientException", 400, AccessDeniedError),
        ("ProvisionedThroughputExceededException", 400, UnavailableError),
        ("InternalServerError", 500, UnavailableError),
        ("ValidationException", 400, InvalidRequestError),
    ],
)
def test_what_dynamodb_refuses_is_named(client: Any, code: str, status: int, expected: type[Exception]):
    class Refusing:
        def get_item(self, **_: Any) -> Any:
            answer = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(answer, "GetItem")

    with pytest.raises(expected, match=r"hudi-locks"):
        lock_of(Refusing(), SkewedClock()).acquire(0)


def test_a_table_that_is_not_there_is_named_with_its_key(client: Any):
    settings = DynamoLockSettings(f"none-{uuid.uuid4().hex}", "trips", region="us-east-1")
    with pytest.raises(InvalidRequestError, match="the text `key` as its partition key"):
        DynamoLock(client, SkewedClock(), settings, pause=1).acquire(0)


def test_of_six_threads_one_has_the_lock_at_a_time(client: Any):
    inside: list[int] = []

    def work(number: int) -> None:
        lock = DynamoLock(client, SystemClock(), settings_of("trips"), pause=0.01)
        for _ in range(5):
            held: HeldDynamoLock = lock.acquire(120)
            inside.append(number)
            assert inside == [number], "two are inside"
            held.renew()
            inside.remove(number)
            held.release()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


def test_the_client_repeats_no_request_by_itself(client: Any):
    assert client.meta.config.retries["total_max_attempts"] == 1
