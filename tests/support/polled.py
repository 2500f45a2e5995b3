"""Ingests whose sources are asked for what waits, and what gives each source rows: a folder, a
queue that tells of files, a database, a statement over another table, a package."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_spark.jobs.__main__ import main
from hudi_table import create_table, open_table
from hudi_table.errors import HudiError
from hudi_table.model.job.jobspec import JobResult, JobSpec
from tests.support import postgres
from tests.support.feeds import driver_of, spark
from tests.support.s3 import ACCESS, S3Server

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])
AT_ONCE = {"mode": "Continuous", "commitIntervalSeconds": 0.3}
PACKAGE = """
import json
import pathlib

import pyarrow as pa


class Lines:
    \"\"\"Objects of a file, some at a time; the position is how many lines were read.\"\"\"

    def __init__(self, options):
        self.path, self.size = pathlib.Path(options["path"]), int(options.get("size", "7"))

    def read(self, position):
        begin = int(position or 0)
        lines = self.path.read_text().split("\\n")[:-1][begin : begin + self.size]
        if not lines:
            return None
        return pa.Table.from_pylist([json.loads(line) for line in lines]), str(begin + len(lines))
"""


def rows_of(numbers: Iterable[int]) -> pa.Table:
    """A row for each number."""
    found = list(numbers)
    return pa.table({"id": [f"k{n}" for n in found], "n": pa.array(found, pa.int64())}, SCHEMA)


def parquet(rows: pa.Table) -> bytes:
    """A file of them."""
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return sink.getvalue()


@dataclass
class Polled:
    """An ingest in a folder of its own. `put` gives its source rows. `operation`: Insert where rows
    that come twice are to be seen twice."""

    folder: Path
    source: dict[str, Any]
    put: Callable[[Iterable[int]], None]
    operation: str = "Upsert"
    storage: dict[str, Any] = field(default_factory=dict)
    table: dict[str, Any] = field(default_factory=dict)
    engine: str = "Local"
    runs: int = 0

    @property
    def location(self) -> str:
        """Of its table."""
        return f"file://{self.folder}/lake/orders"

    def spec(self, attempt: str, source: dict[str, Any] | None = None, **work: Any) -> JobSpec:
        """Of an attempt; `source` is laid over the source."""
        table = {
            "name": "orders", "location": self.location, "type": "CopyOnWrite", "recordKey": ["id"],
            "index": {"type": "Simple"}, "options": {}, **self.table,
        }  # fmt: skip
        asked = {
            "type": "Ingest", "name": "feed", "operation": self.operation, "transform": [],
            "source": {**self.source, **(source or {})}, **work,
        }  # fmt: skip
        return JobSpec(attempt, table, asked, engine=self.engine, storage=self.storage, spark=spark())

    def _files(self, **changes: Any) -> tuple[Path, Path]:
        self.runs += 1
        place = self.folder / f"run-{self.runs}"
        place.mkdir(parents=True)
        (place / "spec.json").write_text(self.spec(f"run-{self.runs}", **changes).to_json())
        return place / "spec.json", place / "result.json"

    def run(self, **changes: Any) -> JobResult:
        """An attempt in this process."""
        asked, answer = self._files(**changes)
        main([str(asked), str(answer)])
        return JobResult.from_json(answer.read_text())

    def start(self, **changes: Any) -> subprocess.Popen[bytes]:
        """An attempt of mode Continuous in a process of its own; see `feeds.end_drivers`."""
        asked, answer = self._files(**{**AT_ONCE, **changes})
        return driver_of(asked, answer, asked.parent / "log")

    def log(self, run: int | None = None) -> str:
        """Of an attempt, the newest unless told."""
        return (self.folder / f"run-{run or self.runs}" / "log").read_text()

    def result(self) -> JobResult:
        """Of the newest attempt."""
        return JobResult.from_json((self.folder / f"run-{self.runs}" / "result.json").read_text())

    def numbers(self) -> list[int]:
        """Of the rows in the table, none where there is none."""
        try:
            found = open_table(self.location).scan(["n"]).to_arrow()
        except (HudiError, FileNotFoundError):
            return []
        return sorted(found.column("n").to_pylist())


def of_folder(folder: Path) -> Polled:
    """Files of a folder."""
    landing = folder / "landing"
    landing.mkdir()

    def put(numbers: Iterable[int]) -> None:
        name = f"{uuid.uuid4().hex}.parquet"
        (landing / f".{name}").write_bytes(parquet(rows_of(numbers)))
        (landing / f".{name}").rename(landing / name)

    return Polled(folder, {"type": "Files", "path": f"file://{landing}", "format": "parquet"}, put, "Insert")


def of_queue(folder: Path, store: S3Server, name: str, queue: str) -> Polled:
    """Files of a folder of a bucket whose events a queue gets."""

    def put(numbers: Iterable[int]) -> None:
        key = f"{name}/{uuid.uuid4().hex}.parquet"
        store.client().put_object(Bucket=store.bucket, Key=key, Body=parquet(rows_of(numbers)))

    source = {
        "type": "Files", "path": f"s3://{store.bucket}/{name}/", "format": "parquet",
        "notifications": {"type": "Sqs", "queue": queue},
    }  # fmt: skip
    storage = {
        "endpoint": store.endpoint, "region": "us-east-1",
        "credentials": [f"AWS_{each.upper()}" for each in ACCESS],
    }  # fmt: skip
    return Polled(folder, source, put, "Insert", storage)


def of_database(folder: Path, server: postgres.Server) -> Polled:
    """Rows of a table of PostgreSQL, by a number that grows."""
    name = f"t{uuid.uuid4().hex[:10]}"
    server.execute(f"create table {name} (id text, n bigint)")

    def put(numbers: Iterable[int]) -> None:
        values = ", ".join(f"('k{n}', {n})" for n in numbers)
        server.execute(f"insert into {name} values {values}")

    asked = {
        "url": f"postgresql://127.0.0.1:{server.port}/postgres", "table": name, "incremental": {"column": "n", "lag": 0},
    }  # fmt: skip
    return Polled(folder, {"type": "Jdbc", "jdbc": asked}, put)


def of_statement(folder: Path) -> Polled:
    """Rows of another table, by a number that grows."""
    above = create_table(str(folder / "above"), SCHEMA, record_key="id")
    query = "SELECT id, n FROM above"
    tables = [{"name": "above", "location": f"file://{folder}/above"}]
    asked = {"query": query, "tables": tables, "incremental": {"column": "n", "lag": 0}}
    return Polled(folder, {"type": "Sql", "sql": asked}, lambda numbers: _wrote(above, numbers))


def _wrote(table: Any, numbers: Iterable[int]) -> None:
    table.upsert(rows_of(numbers))


def of_package(folder: Path) -> Polled:
    """Lines of a file, read by the class of a package that the caller has on the path."""
    lines = folder / "lines"
    lines.touch()

    def put(numbers: Iterable[int]) -> None:
        with lines.open("a") as file:
            file.write("".join(json.dumps({"id": f"k{n}", "n": n}) + "\n" for n in numbers))

    source = {"type": "Custom", "custom": {"name": "lines", "options": {"path": str(lines)}}}
    return Polled(folder, source, put, "Insert")


def kill_of(process: Path) -> None:
    """Kill the process that a local attempt's file names."""
    os.kill(json.loads(process.read_text())["pid"], signal.SIGKILL)
