"""Each fault of the proxy happens at the request that it was told, and only there."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.mirror.proxy import Fault, FaultyStore, Noise, before
from tests.support.s3 import ACCESS, running_s3

pytestmark = pytest.mark.s3


@pytest.fixture(scope="module")
def store() -> Iterator[FaultyStore]:
    with running_s3() as near, before(near) as found:
        yield found


@pytest.fixture
def client(store: FaultyStore) -> Any:
    """One that tries nothing again."""
    import boto3  # type: ignore[import-untyped]
    from botocore.config import Config  # type: ignore[import-untyped]

    store.arm(None)
    names = {f"aws_{name}": value for name, value in ACCESS.items()}
    config = Config(retries={"total_max_attempts": 1})
    made = boto3.client("s3", endpoint_url=store.far.endpoint, region_name="us-east-1", config=config, **names)
    yield made
    made.close()


def put(client: Any, store: FaultyStore, key: str, **more: str) -> str:
    """'' if it was done, else the code of the error or its name."""
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

    try:
        client.put_object(Bucket=store.near.bucket, Key=key, Body=b"x", **more)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    except BotoCoreError as error:
        return type(error).__name__
    return ""


def test_without_a_fault_all_goes_through_and_changes_are_counted(store: FaultyStore, client: Any) -> None:
    assert [put(client, store, f"plain/{number}") for number in range(2)] == ["", ""]
    client.list_objects_v2(Bucket=store.near.bucket)
    assert (store.look().changes, store.arm(None).changes, store.look().changes) == (2, 2, 0)


def test_an_answer_is_lost_behind_what_was_done(store: FaultyStore, client: Any) -> None:
    store.arm(Fault("lost answer", 2))
    assert put(client, store, "lost/1") == ""
    assert put(client, store, "lost/2") == "ConnectionClosedError"
    assert put(client, store, "lost/3") == ""
    assert store.near.keys("lost/") == ["lost/1", "lost/2", "lost/3"]
    assert store.arm(None).fired.endswith("/lost/2")


def test_a_reset_keeps_a_request_from_the_store(store: FaultyStore, client: Any) -> None:
    store.arm(Fault("reset", 1))
    assert put(client, store, "reset/1") in {"ConnectionClosedError", "EndpointConnectionError"}
    assert put(client, store, "reset/2") == ""
    assert store.near.keys("reset/") == ["reset/2"]


def test_a_late_request_is_done_behind_its_repetition(store: FaultyStore, client: Any) -> None:
    store.arm(Fault("late", 1, seconds=0.5))
    assert put(client, store, "late/1") == "ConnectionClosedError"
    assert store.near.keys("late/") == []
    end = time.monotonic() + 20
    while not store.near.keys("late/") and time.monotonic() < end:
        time.sleep(0.05)
    assert store.near.keys("late/") == ["late/1"]


def test_of_a_doubled_request_the_second_answer_comes_back(store: FaultyStore, client: Any) -> None:
    store.arm(Fault("doubled", 1))
    assert put(client, store, "doubled/1", IfNoneMatch="*") == "PreconditionFailed"
    assert store.near.keys("doubled/") == ["doubled/1"]


def test_a_burst_refuses_so_many_requests(store: FaultyStore, client: Any) -> None:
    store.arm(Fault("burst", 2, count=3))
    assert [put(client, store, f"burst/{number}") for number in range(6)] == ["", *["SlowDown"] * 3, "", ""]


def test_what_another_process_does_elsewhere_is_not_counted(store: FaultyStore, client: Any) -> None:
    store.arm(Fault("reset", 2, under="mine/"))
    assert [put(client, store, key) for key in ("other/1", "mine/1", "other/2")] == ["", "", ""]
    assert store.look().changes == 1
    assert put(client, store, "mine/2") != ""


def test_a_kill_ends_the_process_that_sends(store: FaultyStore, client: Any) -> None:
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    store.arm(Fault("kill after", 1, victim.pid))
    assert put(client, store, "kill/1") == "ConnectionClosedError"
    assert victim.wait(20) == -9
    assert store.near.keys("kill/") == ["kill/1"]


def test_noise_meets_one_request_of_so_many_and_ends_when_it_is_told(store: FaultyStore, client: Any) -> None:
    store.arm(Noise(one_in=4, seconds=0.2, seed=1))
    came = {put(client, store, f"noise/{number}") for number in range(80)}
    times = store.arm(None).times
    assert 8 <= times <= 36
    assert {"", "SlowDown"} < came
    assert [put(client, store, "quiet/1"), store.look().times] == ["", 0]
