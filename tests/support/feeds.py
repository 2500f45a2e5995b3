"""An ingest from Kafka in a folder of its own, run in this process or in one of its own, and what
its table holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_spark.jobs.__main__ import main
from hudi_table.api import HudiTable, open_table
from hudi_table.model.job.jobspec import JobResult, JobSpec
from tests.support import all_in_tasks
from tests.support.kafka import Broker

drivers: list[subprocess.Popen[bytes]] = []
"""That were started and not put away yet."""


def end_drivers() -> None:
    """Kill what still runs, as a test leaves it that fails: the next one is not to hear of it."""
    while drivers:
        driver = drivers.pop()
        driver.kill()
        driver.wait()


def driver_of(asked: Path, answer: Path, log: Path, module: str = "hudi_spark.jobs") -> subprocess.Popen[bytes]:
    """An attempt in a process of its own; see `end_drivers`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with log.open("wb") as said:
        driver = subprocess.Popen(
            [sys.executable, "-m", module, str(asked), str(answer)],
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment,
        )  # fmt: skip
    drivers.append(driver)
    return driver


def spark(master: str = "local[2]") -> dict[str, Any]:
    """What a job is told of its session."""
    return {"conf": {"spark.master": master, "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}}


def row(number: int, **more: Any) -> bytes:
    """A JSON message."""
    return json.dumps({"id": f"k{number}", "n": number, **more}).encode()


@dataclass
class Feed:
    """One ingest of one topic, or of what `kafka` says instead. `table` and `work` are laid over
    the defaults. `in_tasks`: on Spark the driver reads nothing itself, however little
    it is."""

    folder: Path
    broker: Broker
    topic: str
    table: dict[str, Any] = field(default_factory=dict)
    work: dict[str, Any] = field(default_factory=dict)
    form: str = "json"
    engine: str = "Local"
    master: str = "local[2]"
    in_tasks: bool = True
    runs: int = 0

    @property
    def apart(self) -> bool:
        """Whether tasks read it all."""
        return self.engine == "Spark" and self.in_tasks

    @property
    def location(self) -> Path:
        return self.folder / "lake" / "orders"

    def spec(self, attempt: str, progress: str = "", work: dict[str, Any] | None = None, **kafka: Any) -> JobSpec:
        source = {"brokers": self.broker.address, "topics": [self.topic], **kafka}
        if "topicPattern" in kafka:
            del source["topics"]
        table = {
            "name": "orders",
            "location": f"file://{self.location}",
            "type": "CopyOnWrite",
            "recordKey": ["id"],
            "index": {"type": "Bucket", "buckets": 2},
            **self.table,
        }
        asked = {
            "type": "Ingest",
            "name": "feed",
            "operation": "Upsert",
            "source": {"type": "Kafka", "format": self.form, "kafka": source},
            **self.work,
            **(work or {}),
        }
        return JobSpec(
            attempt=attempt,
            table=table,
            work=asked,
            engine=self.engine,
            spark=spark(self.master),
            progress=progress,
        )

    def files(self, spec: JobSpec) -> tuple[Path, Path]:
        place = self.folder / spec.attempt
        place.mkdir()
        (place / "spec.json").write_text(spec.to_json())
        return place / "spec.json", place / "result.json"

    def run(self, work: dict[str, Any] | None = None, **kafka: Any) -> JobResult:
        """An attempt in this process."""
        self.runs += 1
        asked, answer = self.files(self.spec(f"run-{self.runs}", work=work, **kafka))
        job = all_in_tasks.main if self.apart else main
        job([str(asked), str(answer)])
        return JobResult.from_json(answer.read_text())

    def start(self, work: dict[str, Any] | None = None, **kafka: Any) -> subprocess.Popen[bytes]:
        """An attempt in a process of its own."""
        self.runs += 1
        asked, answer = self.files(self.spec(f"run-{self.runs}", work=work, **kafka))
        module = all_in_tasks.__name__ if self.apart else "hudi_spark.jobs"
        return driver_of(asked, answer, asked.parent / "log", module)

    def result(self) -> JobResult:
        """Of the newest attempt."""
        return JobResult.from_json((self.folder / f"run-{self.runs}" / "result.json").read_text())

    def log(self, run: int | None = None) -> str:
        """Of an attempt, the newest unless told."""
        return (self.folder / f"run-{run or self.runs}" / "log").read_text()

    def open(self) -> HudiTable:
        return open_table(f"file://{self.location}")

    def rows(self, *columns: str) -> list[dict[str, Any]]:
        """What the table shows, by `id`."""
        table: pa.Table = self.open().scan(columns=list(columns) or ["id", "n"]).to_arrow()
        return sorted(table.to_pylist(), key=lambda each: str(each.get("id")))

    def begun(self) -> bool:
        """Whether the table is there; its folder comes before its properties."""
        return (self.location / ".hoodie" / "hoodie.properties").exists()
