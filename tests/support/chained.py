"""Two Hudi tables, the second of which follows the first by ingests, in this process or in one of
its own."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_spark.jobs.__main__ import main
from hudi_table import HudiTable, create_table, open_table
from hudi_table.arguments import TableTypeName
from hudi_table.model.job.jobspec import MEMORY_BYTES, JobResult, JobSpec
from tests.support.feeds import driver_of

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])


def rows_of(*rows: tuple[str, str | None, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


@dataclass
class Chain:
    """Two tables, the second of which follows the first."""

    folder: Path
    kind: TableTypeName = "CopyOnWrite"
    version: int = 6
    partitioned: bool = True
    ordering: tuple[str, ...] = ()
    """Of the second table."""
    merge_mode: str | None = None
    index: str = "Simple"
    """Of both."""

    @property
    def above(self) -> HudiTable:
        return open_table(str(self.folder / "above"))

    @property
    def below(self) -> HudiTable:
        return open_table(str(self.folder / "below"))

    def begin(self) -> None:
        create_table(
            str(self.folder / "above"), SCHEMA, record_key="id", partition_by=["city"] if self.partitioned else [],
            type=self.kind, version=self.version, index={"type": self.index},
        )  # fmt: skip

    def spec(self, attempt: str = "one", *, engine: str = "Local", **hudi: Any) -> JobSpec:
        table = {
            "name": "below",
            "location": f"file://{self.folder}/below",
            "recordKey": ["id"],
            "partitionBy": [{"field": "city", "type": "Simple"}] if self.partitioned else [],
            "index": {"type": self.index},
            "options": {},
            "type": self.kind,
            "tableVersion": self.version,
            "orderingFields": list(self.ordering),
            **({"mergeMode": self.merge_mode} if self.merge_mode else {}),
        }
        changes: dict[str, Any] = {
            name: hudi.pop(name)
            for name in (
                "operation",
                "transform",
                "mode",
                "commitIntervalSeconds",
                "schemaPolicy",
                "expectations",
                "maxErrorRatio",
                MEMORY_BYTES,
            )
            if name in hudi
        }
        source = {"type": "Hudi", "hudi": {"location": f"file://{self.folder}/above", **hudi}}
        work = {"type": "Ingest", "name": "feed", "operation": "Upsert", "source": source, "transform": [], **changes}
        return JobSpec(attempt, table, work, engine=engine)

    def follow(self, attempt: str = "one", **changes: Any) -> JobResult:
        paths = [self.folder / "spec.json", self.folder / "result.json"]
        paths[0].write_text(self.spec(attempt, **changes).to_json())
        main([str(path) for path in paths])
        return JobResult.from_json(paths[1].read_text())

    def start(self, attempt: str, **changes: Any) -> subprocess.Popen[bytes]:
        """An attempt in a process of its own; see `feeds.end_drivers`."""
        asked, answer = self.folder / f"{attempt}.spec.json", self.folder / f"{attempt}.result.json"
        asked.write_text(self.spec(attempt, **changes).to_json())
        return driver_of(asked, answer, self.folder / f"{attempt}.log")

    def log(self, attempt: str) -> str:
        return (self.folder / f"{attempt}.log").read_text()

    def result(self, attempt: str) -> JobResult:
        return JobResult.from_json((self.folder / f"{attempt}.result.json").read_text())

    def shown(self, table: HudiTable) -> list[tuple[Any, ...]]:
        found = table.scan(SCHEMA.names).to_arrow().to_pylist()
        return sorted(tuple(row[name] for name in SCHEMA.names) for row in found)
