"""Ours in the race of streams: a driver without a JVM, which every run starts anew, and Spark's
structured streaming."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.ours import Spark
from bench.process import compiled
from bench.settings import CODEC
from bench.stream_jars import our_jars
from bench.stream_settings import BUCKETS, KEY, ORDERING, Feed
from bench.stream_spark import catch_up, follow
from hudi_table.model.job.jobspec import JobResult, JobSpec

END_SECONDS_MAX = 60.0


class LocalStreams:
    """The job that a HudiTable runs, in a process of its own from its start on."""

    def catch_up(self, rows: Path, base: Path) -> None:
        self._run(Feed.load(rows), base, "Once")

    def follow(self, rows: Path, base: Path) -> None:
        self._run(Feed.load(rows), base, "Continuous")

    def _run(self, feed: Feed, base: Path, mode: str) -> None:
        with tempfile.TemporaryDirectory(prefix="stream-") as folder:
            asked, answer = Path(folder) / "spec.json", Path(folder) / "result.json"
            asked.write_text(_spec(feed, base, mode).to_json())
            driver = subprocess.Popen(
                [sys.executable, "-m", "hudi_spark.jobs", str(asked), str(answer)],
                stdin=subprocess.DEVNULL,
                env=compiled() | {"PYTHONPATH": os.pathsep.join(sys.path)},
            )
            try:
                if mode == "Continuous":
                    try:
                        driver.wait(feed.seconds)
                    except subprocess.TimeoutExpired:
                        driver.send_signal(signal.SIGTERM)
                    driver.wait(END_SECONDS_MAX)
                else:
                    driver.wait()
            finally:
                driver.kill()
                driver.wait()
            result = JobResult.from_json(answer.read_text())
            if result.outcome != "Succeeded":
                raise RuntimeError(f"the driver ended with {result.outcome}: {result.message}")


def _spec(feed: Feed, base: Path, mode: str) -> JobSpec:
    kafka = {"brokers": feed.brokers, "topics": [feed.topic], "maxRows": feed.batch_rows}
    table = {
        "name": "rides",
        "location": f"file://{base}",
        "type": "MergeOnRead",
        "recordKey": [KEY],
        "orderingFields": [ORDERING],
        "index": {"type": "Bucket", "buckets": BUCKETS},
        "options": {"hoodie.parquet.compression.codec": CODEC},
    }
    work = {
        "type": "Ingest",
        "name": "rides",
        "operation": "Upsert",
        "mode": mode,
        "commitIntervalSeconds": feed.interval,
        "source": {"type": "Kafka", "format": "json", "kafka": kafka},
    }
    return JobSpec(attempt=f"bench-{base.name}", table=table, work=work, engine="Local")


class SparkStreams(Spark):
    """Our streaming sink on Spark."""

    def __init__(self) -> None:
        super().__init__(bloom=False, more_jars=our_jars())

    def catch_up(self, rows: Path, base: Path) -> None:
        catch_up(self._spark, Feed.load(rows), base, SINK)

    def follow(self, rows: Path, base: Path) -> None:
        follow(self._spark, Feed.load(rows), base, SINK)


SINK = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.precombine.field": ORDERING,
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.parquet.compression.codec": CODEC,
}
