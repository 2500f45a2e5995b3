"""Apache Hudi's steps on an object store, beside ours: a process of its own, warm from step to
step."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.far_store import FarStore
from bench.peers import HUDI
from bench.process import Contender
from bench.race import HUDI_PYTHON
from scripts.setup_env import S3A
from tests.mirror.writers import s3a_settings
from tests.support.s3 import S3Server

NAME = f"Apache Hudi {HUDI}"


@dataclass(frozen=True, slots=True)
class HudiPeer:
    """Its process. Whatever it does goes by way of the proxy: S3A keeps a client for a bucket."""

    contender: Contender
    store: FarStore
    folder: Path
    buckets: int

    def made(self, kind: str, rows: list[pa.Table]) -> Callable[[S3Server], str]:
        """What makes a table: of the first rows, and by upserts of the others."""

        def make(server: S3Server) -> str:
            uri = server.new_uri()
            self.store.wait(0.0)
            for number, each in enumerate(rows):
                self._run("upsert" if number else "bulk_insert", kind, uri, each)
            return uri

        return make

    def does(self, step: str, kind: str, rows: pa.Table | None = None) -> Callable[[S3Server, str], object]:
        """What does a step."""
        return lambda _, uri: self._run(step, kind, uri, rows)

    def _run(self, step: str, kind: str, uri: str, rows: pa.Table | None) -> None:
        told, given = self.folder / "table.json", self.folder / "rows.parquet"
        s3a = {name.removeprefix("spark.hadoop."): value for name, value in s3a_settings(self.store.far).items()}
        location = "s3a" + uri.removeprefix("s3")
        told.write_text(json.dumps({"location": location, "type": kind, "buckets": self.buckets, "s3a": s3a}))
        if rows is not None:
            pq.write_table(rows, given)
        self.contender.run(step, given, told)


@contextlib.contextmanager
def hudi_peer(store: FarStore, folder: Path, buckets: int) -> Iterator[HudiPeer | None]:
    """None where its environment is not there: `make bench BENCH=--store` makes it."""
    jars = S3A / "jars"
    if not (HUDI_PYTHON.exists() and jars.exists()):
        yield None
        return
    folder.mkdir(parents=True)
    os.environ["HUDI_BENCH_S3A"] = str(jars)
    with Contender(f"hudi-store-{HUDI}", bloom=False, python=HUDI_PYTHON) as contender:
        yield HudiPeer(contender, store, folder, buckets)
