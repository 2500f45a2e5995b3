"""Streams of Kinesis for tests: moto's, in this process, which answer as AWS does where moto does
not.

moto moves the records of a shard that is split or merged to what comes of it, and goes on writing
to the shard that is closed; its closed shards have no end, and its sequence numbers begin at 1 in
each shard. Here a closed shard keeps its records and ends, and a sequence number is given once in a
stream.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hudi_spark.jobs.__main__ import main
from hudi_table.api import HudiTable, open_table
from hudi_table.model.job.jobspec import JobResult, JobSpec
from tests.support.feeds import drivers
from tests.support.s3 import ACCESS, S3Server

ACCOUNT, REGION = "123456789012", "us-east-1"
_NUMBERS = itertools.count(49_590_338_271_490_256_608_559_692_538_361_571_095)
_HASHES = 1 << 128


@contextlib.contextmanager
def as_of_aws() -> Iterator[None]:
    """moto's shards, as told above."""
    from moto.kinesis import models
    from moto.kinesis.utils import decompose_shard_iterator
    from moto.utilities.utils import md5_hash

    shard_type, stream_type, backend_type = models.Shard, models.Stream, models.KinesisBackend
    kept = (shard_type.put_record, stream_type.get_shard_for_key, backend_type.get_records)

    def put_record(self: Any, partition_key: str, data: str, explicit_hash_key: str) -> str:
        number = next(_NUMBERS)
        self.records[number] = models.Record(partition_key, data, number, explicit_hash_key)
        return str(number)

    def get_shard_for_key(self: Any, partition_key: str, explicit_hash_key: str) -> Any:
        place = int(explicit_hash_key or md5_hash(partition_key.encode()).hexdigest(), 10 if explicit_hash_key else 16)  # fmt: skip
        return next(s for s in self.shards.values() if s.is_open and s.starting_hash <= place <= s.ending_hash)

    def get_records(self: Any, stream_arn: Any, shard_iterator: str, limit: Any) -> Any:
        following, records, behind = kept[2](self, stream_arn, shard_iterator, limit)
        name, shard, _ = decompose_shard_iterator(shard_iterator)
        found = self.describe_stream(stream_arn=stream_arn, stream_name=name).shards[shard]
        last = next(reversed(found.records), 0)
        drained = not found.is_open and (records[-1].sequence_number if records else last) == last
        return None if drained else following, records, behind

    shard_type.put_record = put_record  # type: ignore[method-assign]
    stream_type.get_shard_for_key = get_shard_for_key  # type: ignore[method-assign]
    backend_type.get_records = get_records  # type: ignore[method-assign]
    try:
        yield
    finally:
        shard_type.put_record, stream_type.get_shard_for_key, backend_type.get_records = kept  # type: ignore[method-assign]


@dataclass
class TestStream:
    """A stream of its own, put to and resharded."""

    __test__ = False

    store: S3Server
    count: int = 2
    name: str = field(default_factory=lambda: f"orders-{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        import boto3  # type: ignore[import-untyped]

        keys = {f"aws_{name}": value for name, value in ACCESS.items()}
        self.client = boto3.client("kinesis", endpoint_url=self.store.endpoint, region_name=REGION, **keys)
        self.create()

    def create(self) -> None:
        self.client.create_stream(StreamName=self.name, ShardCount=self.count)

    @property
    def state(self) -> Any:
        """moto's own."""
        from moto.kinesis.models import kinesis_backends

        return kinesis_backends[ACCOUNT][REGION].streams[self.name]

    def put(self, values: list[bytes], key: str | None = None) -> None:
        records = [{"Data": value, "PartitionKey": key or f"p{i}"} for i, value in enumerate(values)]
        for start in range(0, len(records), 500):
            self.client.put_records(StreamName=self.name, Records=records[start : start + 500])

    def open_shards(self) -> list[str]:
        return [name for name, shard in self.state.shards.items() if shard.is_open]

    def split(self, name: str) -> list[str]:
        """Two shards in the place of one."""
        shard = self.state.shards[name]
        middle = (shard.starting_hash + shard.ending_hash) // 2
        shard.is_open = False
        return [self._add(shard.starting_hash, middle, name), self._add(middle + 1, shard.ending_hash, name)]

    def merge(self, first: str, second: str) -> str:
        """One shard in the place of two neighbours."""
        one, other = (self.state.shards[name] for name in (first, second))
        one.is_open = other.is_open = False
        return self._add(min(one.starting_hash, other.starting_hash), max(one.ending_hash, other.ending_hash), first, second)  # fmt: skip

    def _add(self, start: int, end: int, parent: str, adjacent: str | None = None) -> str:
        from moto.kinesis.models import Shard

        made = Shard(len(self.state.shards), start, end, parent=parent, adjacent_parent=adjacent)
        self.state.shards[made.shard_id] = made
        return str(made.shard_id)

    def trim(self, shard: str, count: int) -> None:
        """Retention takes the oldest records of a shard."""
        records = self.state.shards[shard].records
        for number in list(records)[:count]:
            del records[number]


@dataclass
class KinesisFeed:
    """One ingest of one stream. `table` and `work` are laid over the defaults."""

    folder: Path
    stream: TestStream
    table: dict[str, Any] = field(default_factory=dict)
    work: dict[str, Any] = field(default_factory=dict)
    form: str = "json"
    runs: int = 0

    @property
    def location(self) -> Path:
        return self.folder / "lake" / "orders"

    def spec(self, work: dict[str, Any] | None = None, **kinesis: Any) -> JobSpec:
        self.runs += 1
        table = {
            "name": "orders",
            "location": f"file://{self.location}",
            "type": "CopyOnWrite",
            "recordKey": ["id"],
            "index": {"type": "Simple"},
            **self.table,
        }
        source = {"stream": self.stream.name, "endpoint": self.stream.store.endpoint, "region": REGION, **kinesis}
        asked = {
            "type": "Ingest",
            "name": "feed",
            "operation": "Upsert",
            "source": {"type": "Kinesis", "format": self.form, "kinesis": source},
            **self.work,
            **(work or {}),
        }
        return JobSpec(attempt=f"run-{self.runs}", table=table, work=asked, engine="Local")

    def files(self, spec: JobSpec) -> tuple[str, str]:
        place = self.folder / spec.attempt
        place.mkdir()
        (place / "spec.json").write_text(spec.to_json())
        return str(place / "spec.json"), str(place / "result.json")

    def run(self, work: dict[str, Any] | None = None, **kinesis: Any) -> JobResult:
        """An attempt in this process, which has the keys in its environment."""
        main(list(self.files(self.spec(work, **kinesis))))
        return self.result()

    def start(self, work: dict[str, Any] | None = None, **kinesis: Any) -> subprocess.Popen[bytes]:
        """An attempt in a process of its own."""
        files = self.files(self.spec(work, **kinesis))
        environment = os.environ | environment_of(self.stream.store) | {"PYTHONPATH": os.pathsep.join(sys.path)}
        with (self.folder / f"run-{self.runs}" / "log").open("wb") as log:
            driver = subprocess.Popen(
                [sys.executable, "-m", "hudi_spark.jobs", *files],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            )  # fmt: skip
        drivers.append(driver)
        return driver

    def result(self) -> JobResult:
        """Of the newest attempt."""
        return JobResult.from_json((self.folder / f"run-{self.runs}" / "result.json").read_text())

    def log(self) -> str:
        """Of the newest attempt."""
        return (self.folder / f"run-{self.runs}" / "log").read_text()

    def open(self) -> HudiTable:
        return open_table(f"file://{self.location}")

    def rows(self, *columns: str) -> list[dict[str, Any]]:
        """What the table shows, by `n`."""
        found = self.open().scan(columns=list(columns) or ["id", "n"]).to_arrow().to_pylist()
        return sorted(found, key=lambda each: (str(each.get("n")).zfill(9), str(each.get("id"))))

    def numbers(self) -> list[int]:
        return [each["n"] for each in self.rows("n")]

    def errors(self) -> list[dict[str, Any]]:
        return open_table(f"file://{self.location}_kinesis_errors").scan().to_arrow().to_pylist()

    def checkpoint(self) -> dict[str, Any]:
        """Of the newest commit, as it stands there."""
        from hudi_table.sources.checkpoints import all_checkpoints

        (text,) = (text for key, _, text in all_checkpoints(self.open().context) if key == "lakeops.ingest.feed")
        found: dict[str, Any] = json.loads(text)
        return found


def environment_of(store: S3Server) -> dict[str, str]:
    """The keys of a store as a launcher hands them over."""
    return {f"AWS_{name.upper()}": str(store.options[name]) for name in ACCESS}
