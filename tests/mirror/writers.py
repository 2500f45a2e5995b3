"""The processes that write: ours, and Apache Hudi's on Spark, asked alike and told alike what came
of it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from scripts.setup_env import S3A
from tests.mirror.workload import BUCKETS, KINDS, Write
from tests.support.hudi_oracle import environment
from tests.support.s3 import ACCESS, S3Server

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS, ASK_SECONDS = 300.0, 300.0
TABLE = "mirrored"
RETAINED = "3"
VERSION = 9
"""Of the tables: the newest of both engines."""
_NUMBERS = itertools.count()


class Came(StrEnum):
    """What came of a request."""

    DONE = "done"
    REFUSED = "refused"
    DIED = "died"
    HUNG = "hung"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request, and when it was asked and ended on the clock that all processes
    share."""

    came: Came
    said: str
    asked: float
    ended: float


@dataclass
class Process:
    """A program that answers JSON lines. `folder`: for its log and for rows."""

    command: Sequence[str]
    folder: Path
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        self._log = (self.folder / f"writer-{next(_NUMBERS)}.log").open("wb")
        self._running = subprocess.Popen(
            self.command, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            env=dict(self.env), text=True, start_new_session=True,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """Of the process that sends requests."""
        return self._running.pid

    def ready(self) -> None:
        """Wait until it has started."""
        said = self._line(START_SECONDS)
        assert said is not None, f"{self.command} does not start: see {self._log.name}"

    def ask(self, command: Mapping[str, Any], seconds: float = ASK_SECONDS) -> Answer:
        """One request."""
        assert self._running.stdin is not None
        asked = time.monotonic()
        try:
            self._running.stdin.write(json.dumps(command) + "\n")
            self._running.stdin.flush()
            said = self._line(seconds)
        except BrokenPipeError:
            said = None
        ended = time.monotonic()
        if said is None:
            gone = self._gone(2.0)
            return Answer(Came.DIED if gone else Came.HUNG, "", asked, ended)
        return Answer(Came.DONE if said["ok"] else Came.REFUSED, said.get("message", ""), asked, ended)

    def signal(self, number: signal.Signals) -> None:
        """To it and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._running.pid, number)

    def end(self) -> None:
        """It is gone."""
        self.signal(signal.SIGKILL)
        self._running.wait()
        for stream in (self._running.stdin, self._running.stdout, self._log):
            with contextlib.suppress(OSError, ValueError):
                stream.close()  # type: ignore[union-attr]

    def _gone(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._running.wait(seconds)
        return self._running.poll() is not None

    def _line(self, seconds: float) -> dict[str, Any] | None:
        assert self._running.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._running.stdout, selectors.EVENT_READ)
            line = self._running.stdout.readline() if selector.select(seconds) else ""
        return json.loads(line) if line.endswith("\n") else None


@dataclass(frozen=True, slots=True)
class Case:
    """A table of one round: where it lies, of which kind, under which options."""

    base: str
    kind: str
    options: Mapping[str, str]
    lock: Mapping[str, str] = field(default_factory=dict)


class Writer(Protocol):
    """One process of an engine."""

    process: Process

    def create(self, case: Case, write: Write) -> Answer:
        """A new table with a first write."""

    def upsert(self, case: Case, write: Write) -> Answer:
        """One write, and the table services that are due after it."""

    def rows(self, case: Case) -> list[tuple[str, int]] | str:
        """Keys and who wrote them, by the engine's own reader; or what it said instead."""


@dataclass
class OurWriter:
    """Ours."""

    server: S3Server
    folder: Path

    def __post_init__(self) -> None:
        command = [sys.executable, "-m", "tests.mirror.ours_writer", json.dumps(self.server.options)]
        path = {"PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("", "spark_app", "operator"))}
        self.process = Process(command, self.folder, dict(os.environ) | path)

    def create(self, case: Case, write: Write) -> Answer:
        """As `Writer` says."""
        return self._write(case, write, {"create": case.kind, "version": VERSION})

    def upsert(self, case: Case, write: Write) -> Answer:
        """As `Writer` says."""
        return self._write(case, write, {})

    def _write(self, case: Case, write: Write, more: Mapping[str, Any]) -> Answer:
        rows = {"rows": str(_kept(self.folder, write))}
        told: dict[str, Any] = {"command": "write", "base": f"s3://{case.base}", "options": dict(case.options)}
        compacts = case.kind == "MergeOnRead" and write.number % 2 == 0
        services = {"lock": dict(case.lock), "compacts": compacts, "retained": RETAINED}
        return self.process.ask({**told, **rows, **services, **more})

    def rows(self, case: Case) -> list[tuple[str, int]] | str:
        """As `Writer` says."""
        to = self.folder / f"read-{next(_NUMBERS)}.parquet"
        answer = self.process.ask({"command": "read", "base": f"s3://{case.base}", "to": str(to)})
        return pairs(pq.read_table(to)) if answer.came is Came.DONE else answer.said or answer.came.value


@dataclass
class HudiWriter:
    """Apache Hudi's, in a Spark session of its own."""

    release: str
    server: S3Server
    folder: Path

    def __post_init__(self) -> None:
        python, ivy = environment()
        unwanted = ("SPARK_", "PYSPARK_", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        env = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        scratch = self.folder / f"spark-{next(_NUMBERS)}"
        scratch.mkdir()
        command = [
            str(python), str(ROOT / "tests" / "support" / "hudi_server.py"), "--version", self.release, "--ivy", str(ivy),
            "--beside", str(S3A / "jars"), "--settings", json.dumps(s3a_settings(self.server)),
        ]  # fmt: skip
        self.process = Process(command, scratch, env | {"PYSPARK_PYTHON": str(python), "TZ": "UTC"})

    def create(self, case: Case, write: Write) -> Answer:
        """As `Writer` says."""
        return self._write(case, write, "overwrite")

    def upsert(self, case: Case, write: Write) -> Answer:
        """As `Writer` says."""
        return self._write(case, write, "append")

    def _write(self, case: Case, write: Write, mode: str) -> Answer:
        told = {"base": f"s3a://{case.base}", "rows": f"file://{_kept(self.folder, write)}", "mode": mode}
        options = {**table_options(case.kind), **case.options, **case.lock}
        return self.process.ask({"command": "write", "options": options, **told})

    def rows(self, case: Case) -> list[tuple[str, int]] | str:
        """As `Writer` says."""
        to = self.folder / f"read-{next(_NUMBERS)}"
        answer = self.process.ask({"command": "read", "base": f"s3a://{case.base}", "to": f"file://{to}"})
        if answer.came is not Came.DONE:
            return answer.said or answer.came.value
        return pairs(
            pa.concat_tables([pq.ParquetFile(path).read(columns=["id", "by"]) for path in to.glob("*.parquet")])
        )


def s3a_settings(server: S3Server) -> dict[str, str]:
    """What Spark needs to know of the server. How often and how long S3A tries again is left as it
    comes."""
    return {
        "spark.hadoop.fs.s3a.endpoint": server.endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": ACCESS["access_key_id"],
        "spark.hadoop.fs.s3a.directory.marker.retention": "keep",
        "spark.hadoop.fs.s3a.secret.key": ACCESS["secret_access_key"],
    }


def table_options(kind: str) -> dict[str, str]:
    """What every write of Hudi's is told of the table."""
    tasks = {f"hoodie.{name}.shuffle.parallelism": "2" for name in ("insert", "upsert", "bulkinsert", "delete")}
    return tasks | {
        "hoodie.table.name": TABLE,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.table.type": KINDS[kind],
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": str(BUCKETS),
        "hoodie.bucket.index.hash.field": "id",
        "hoodie.cleaner.commits.retained": RETAINED,
        "hoodie.compact.inline.max.delta.commits": "2",
    }


def pairs(rows: pa.Table) -> list[tuple[str, int]]:
    """Keys and who wrote them."""
    return list(zip(rows["id"].to_pylist(), rows["by"].to_pylist(), strict=True))


def _kept(folder: Path, write: Write) -> Path:
    path = folder / f"rows-{write.number}-{threading.get_ident()}.parquet"
    pq.write_table(write.rows(), path)
    return path
