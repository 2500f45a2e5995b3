"""An ingest from Kinesis as a manifest asks for it, by `hudictl local`, with jobs in processes of
their own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table.api import open_table
from hudi_table.cli.program import main as hudictl
from hudi_table.errors import HudiError
from hudi_table.table.store.clock import SystemClock
from tests.support.feeds import row
from tests.support.kinesis import REGION, TestStream, as_of_aws, environment_of
from tests.support.manifests import manifest
from tests.support.s3 import S3Server, running_s3

pytestmark = pytest.mark.s3
QUICK = RetryPolicy(attempts_max=2, backoff_first_seconds=0.2, backoff_max_seconds=0.2)


class OverError(Exception):
    """The test has seen enough."""


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    with as_of_aws(), running_s3() as found:
        yield found


@dataclass
class Place:
    """A folder with a manifest, and its state."""

    folder: Path
    stream: TestStream
    lines: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def location(self) -> str:
        return f"file://{self.folder}/lake/orders"

    def apply(self, *, watch: bool = False, **of_ingest: Any) -> Mapping[str, Any]:
        keys = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": environment_of(self.stream.store)}  # fmt: skip
        asked = of_ingest.pop("kinesis", {})
        source = {"type": "Kinesis", "format": "json", "kinesis": {"stream": self.stream.name, "endpoint": self.stream.store.endpoint, **asked}}  # fmt: skip
        spec = {
            "location": self.location,
            "recordKey": ["id"],
            "index": {"type": "Simple"},
            "storage": {"region": REGION, "credentialsSecretRef": {"name": "keys"}},
            "ingest": [{"name": "feed", "operation": "Insert", "source": source, **of_ingest}],
        }
        path, over = self.folder / "manifest.yaml", self.over
        path.write_text(yaml.safe_dump_all([manifest("orders", **spec), keys]))

        class Clock(SystemClock):
            def sleep(self, seconds: float) -> None:
                if over.is_set():
                    raise OverError
                super().sleep(min(seconds, 0.1))

        runtime = LocalRuntime([path], self.folder / "state", Clock(), self.lines.append, QUICK, watch=watch)
        try:
            return runtime.run()[0]
        except OverError:
            over.clear()
            stored: dict[str, Any] = json.loads(
                (self.folder / "state" / "resources" / "HudiTable.default.orders.json").read_text()
            )
            return stored

    def count(self) -> int:
        try:
            return open_table(self.location).scan(columns=["id"]).to_arrow().num_rows
        except HudiError:
            return 0


@pytest.fixture
def place(store: S3Server, tmp_path: Path) -> Place:
    return Place(tmp_path, TestStream(store))


def condition(found: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return next((each for each in found["status"]["conditions"] if each["type"] == kind), {})


def wait_for(found: Callable[[], bool], place: Place) -> None:
    until = time.monotonic() + 60
    while not found():
        assert time.monotonic() < until, place.lines
        time.sleep(0.1)


def test_what_the_stream_holds_is_taken_and_what_cannot_be_read_is_told(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.stream.put([row(i) for i in range(30)])
    found = place.apply()
    assert (place.count(), condition(found, "Ready")["status"]) == (30, "True"), place.lines
    assert hudictl(["checkpoint", "show", place.location, "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    (told,) = [each for each in items if each["ingest"] == "feed"]
    assert (told["source"], told["checkpoint"].startswith(f"{place.stream.name},shardId-")) == ("Kinesis", True)
    place.stream.put([b"{", row(30)])
    stalled = condition(place.apply(activeDeadline="1h"), "Stalled")
    assert stalled["reason"] == "InvalidData", place.lines
    found = place.apply(onUndecodable="Quarantine")
    assert (place.count(), found["status"]["ingest"][0]["refusedMessages"]) == (31, 1)


def test_one_driver_follows_the_stream(place: Place) -> None:
    seen: list[str] = []

    def life() -> None:
        for number in range(3):
            place.stream.put([row(i) for i in range(20 * number, 20 * number + 20)])
            wait_for(lambda wanted=20 * number + 20: place.count() == wanted, place)  # type: ignore[misc]
            place.stream.split(place.stream.open_shards()[0])
        seen.extend(path.parent.name for path in (place.folder / "state" / "attempts").glob("*/process.json"))
        place.over.set()

    other = threading.Thread(target=life)
    other.start()
    try:
        place.apply(watch=True, mode="Continuous", commitInterval="300ms")
    finally:
        other.join()
    assert len(seen) == 1, place.lines
    assert place.count() == 60
