"""Databases that an ingest of type Jdbc reads, and an ingest that follows one table of them: what
the tests of both share."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hudi_spark.jobs.__main__ import main
from hudi_table.api import open_table
from hudi_table.model.job.jobspec import JobResult, JobSpec
from tests.support import mariadb, postgres
from tests.support.feeds import spark


class Server(Protocol):
    """A server that a test starts."""

    port: int

    def execute(self, *statements: str) -> None: ...
    def kill(self) -> None: ...
    def start(self) -> None: ...


@dataclass(frozen=True)
class Vendor:
    """What is written otherwise in one database: `words` of a statement (`$time`), and calls:
    `$series(N)`, a table of the numbers i from 1 to N, and `$later(E)`, E seconds after 2026."""

    scheme: str
    database: str
    user: str
    password: str
    running: Callable[..., Any]
    series: str
    later: str
    words: dict[str, str]

    def sql(self, statement: str) -> str:
        """A statement of this database."""
        statement = re.sub(r"\$series\((\w+)\)", self.series, statement)
        statement = re.sub(r"\$later\(([^()]*)\)", self.later, statement)
        return re.sub(r"\$(time|local|text)\b", lambda found: self.words[found[1]], statement)


POSTGRES = Vendor(
    "postgresql", "postgres", postgres.USER, postgres.PASSWORD, postgres.running_postgres,
    r"generate_series(1, \1) i", r"(timestamp '2026-01-01' + (\1) * interval '1 s')",
    {"time": "timestamptz", "local": "timestamp", "text": "text"},
)  # fmt: skip
MARIADB = Vendor(
    "mariadb", mariadb.DATABASE, mariadb.USER, mariadb.PASSWORD, mariadb.running_mariadb,
    r"(select seq as i from seq_1_to_\1) as series", r"(timestamp'2026-01-01 00:00:00' + interval (\1) second)",
    {"time": "timestamp(6) null", "local": "datetime(6)", "text": "varchar(50)"},
)  # fmt: skip


@dataclass
class Database:
    """A table of a name of its own, and the ingest that follows it."""

    server: Server
    vendor: Vendor
    folder: Path
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:10]}")
    runs: int = 0
    engine: str = "Local"

    def do(self, *statements: str) -> None:
        """Run statements, in which `$t` is the table."""
        self.server.execute(*(self.vendor.sql(re.sub(r"\$t\b", self.name, each)) for each in statements))

    @property
    def location(self) -> str:
        """Of the table of the lake."""
        return str(self.folder / "lake")

    @property
    def url(self) -> str:
        """Of the ingest."""
        return f"{self.vendor.scheme}://127.0.0.1:{self.server.port}/{self.vendor.database}"

    def run(self, columns: dict[str, str] | None = None, work: dict[str, Any] | None = None, **jdbc: Any) -> JobResult:
        """An attempt in this process."""
        self.runs += 1
        asked: dict[str, Any] = {"url": self.url, **jdbc}
        if "query" not in asked:
            asked.setdefault("table", self.name)
        asked = json.loads(json.dumps(asked).replace("$t", self.name))
        table = {
            "name": "orders", "location": f"file://{self.location}", "type": "CopyOnWrite", "recordKey": ["id"],
            "index": {"type": "Bucket", "buckets": 2},
        }  # fmt: skip
        source = {"type": "Jdbc", "jdbc": asked, **({"columns": columns} if columns else {})}
        body = {"type": "Ingest", "name": "feed", "operation": "Upsert", "source": source, **(work or {})}
        place = self.folder / f"run-{self.runs}"
        place.mkdir()
        spec = JobSpec(attempt=f"run-{self.runs}", table=table, work=body, engine=self.engine, spark=spark())
        (place / "spec.json").write_text(spec.to_json())
        main([str(place / "spec.json"), str(place / "result.json")])
        return JobResult.from_json((place / "result.json").read_text())

    def good(self, **how: Any) -> JobResult:
        """An attempt that commits."""
        done = self.run(**how)
        assert done.outcome == "Succeeded", done.message
        return done

    def rows(self, *columns: str) -> list[dict[str, Any]]:
        """Of the table of the lake, by `id`; all columns, if none is named."""
        found = open_table(self.location).scan(columns=list(columns) or None).to_arrow().to_pylist()
        return sorted(found, key=lambda each: each["id"])
