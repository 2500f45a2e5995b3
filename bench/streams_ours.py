"""Ours in the race of streams: the job of a HudiTable, which every run starts anew, with engine
Local and with engine Spark."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from bench.process import compiled
from bench.settings import CODEC, CORES, SPARK_CONF
from bench.stream_settings import BUCKETS, KEY, ORDERING, Feed
from hudi_table.model.job.jobspec import JobResult, JobSpec

END_SECONDS_MAX = 60.0


class LocalStreams:
    """The job that a HudiTable runs, in a process of its own from its start on."""

    engine = "Local"

    def catch_up(self, rows: Path, base: Path) -> None:
        with driver(Feed.load(rows), base, "Once", engine=self.engine) as process:
            process.wait()

    def follow(self, rows: Path, base: Path) -> None:
        feed = Feed.load(rows)
        running = driver(feed, base, "Continuous", engine=self.engine)
        with running as process, contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(feed.seconds)


class SparkStreams(LocalStreams):
    """The same, whose tasks of Spark read the topic; its JVM starts with it."""

    engine = "Spark"


@contextlib.contextmanager
def driver(
    feed: Feed, base: Path, mode: str, more: Mapping[str, str] = MappingProxyType({}), *, engine: str = "Local"
) -> Iterator[subprocess.Popen[bytes]]:
    """A driver's process; told to end at the end. `more`: options of the table. Raises RuntimeError
    if it failed."""
    with tempfile.TemporaryDirectory(prefix="stream-") as folder:
        asked, answer = Path(folder) / "spec.json", Path(folder) / "result.json"
        asked.write_text(_spec(feed, base, mode, more, engine).to_json())
        process = subprocess.Popen(
            [sys.executable, "-m", "hudi_spark.jobs", str(asked), str(answer)],
            stdin=subprocess.DEVNULL,
            env=compiled() | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(END_SECONDS_MAX)
        finally:
            process.kill()
            process.wait()
        result = JobResult.from_json(answer.read_text())
        if result.outcome != "Succeeded":
            raise RuntimeError(f"the driver ended with {result.outcome}: {result.message}")


def _spec(feed: Feed, base: Path, mode: str, more: Mapping[str, str], engine: str) -> JobSpec:
    kafka = {"brokers": feed.brokers, "topics": [feed.topic], "maxRows": feed.batch_rows}
    table = {
        "name": "rides",
        "location": f"file://{base}",
        "type": "MergeOnRead",
        "recordKey": [KEY],
        "orderingFields": [ORDERING],
        "index": {"type": "Bucket", "buckets": BUCKETS},
        "options": {"hoodie.parquet.compression.codec": CODEC, **more},
    }
    work = {
        "type": "Ingest",
        "name": "rides",
        "operation": "Upsert",
        "mode": mode,
        "commitIntervalSeconds": feed.interval,
        "source": {"type": "Kafka", "format": "json", "kafka": kafka},
    }
    conf = {"spark.master": f"local[{CORES}]", **SPARK_CONF} if engine == "Spark" else {}
    return JobSpec(attempt=f"bench-{base.name}", table=table, work=work, engine=engine, spark={"conf": conf})
