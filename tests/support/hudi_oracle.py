"""Apache Hudi itself as the oracle of the interop tests: a warm Spark process for each Hudi
version.

The process runs `hudi_server.py` in an environment of its own (`make interop-env`: pyspark 3.5 and
the Hudi bundles), found through `HUDI_INTEROP_PYTHON` and `HUDI_INTEROP_IVY`, by default
`.venv-hudi/bin/python` and `.cache/ivy`.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("0.15.0", "1.1.1")
START_SECONDS = 300
CALL_SECONDS = 300


@dataclass(frozen=True, slots=True)
class StreamerCheckpoint:
    """A checkpoint of Hudi Streamer, the `--checkpoint` that its job has begun at, and its
    `--ignore-checkpoint`."""

    text: str
    reset: str | None = None
    ignored: str | None = None


class HudiFailedError(AssertionError):
    """Apache Hudi refused or failed a command; the message starts with its own."""


class HudiOracle:
    """One Hudi version. Commands of one oracle run one after the other; two oracles run side by
    side."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._folder = Path(tempfile.mkdtemp(prefix=f"oracle-{version}-"))
        self._log = (self._folder / "server.log").open("wb")
        self._lock = threading.Lock()
        self._calls = 0
        python, ivy = environment()
        # Whatever Spark this shell or test run is set up for is another one than the oracle's.
        unwanted = ("SPARK_", "PYSPARK_", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self._process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name("hudi_server.py")), "--version", version, "--ivy", str(ivy)],
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
            | {"PYSPARK_PYTHON": str(python), "TZ": "UTC"},
            text=True,
        )
        self._ready = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"HudiOracle({self.version!r})"

    @property
    def is_1x(self) -> bool:
        """Whether this is a Hudi 1.x."""
        return not self.version.startswith("0.")

    def read(self, base: Path | str, *, where: str = "", **options: str) -> pa.Table:
        """The table's rows as Hudi reads them, meta columns included. Option names: `.` written as
        `__`."""
        folder = self._fresh()
        settings = {key.replace("__", "."): value for key, value in options.items()}
        self._call({"command": "read", "base": str(base), "options": settings, "to": str(folder), "where": where})
        return _rows(folder)

    def write(self, base: Path | str, rows: pa.Table, options: Mapping[str, str], *, mode: str = "append") -> None:
        """Write `rows` with Hudi's DataFrame writer. `options` are complete but for what every
        write here shares."""
        folder = self._fresh()
        folder.mkdir()
        path = folder / "rows.parquet"
        pq.write_table(rows, path)
        command = {"command": "write", "base": str(base), "rows": str(path), "mode": mode}
        self._call(command | {"options": self.common_options() | dict(options)})

    def sql(self, statement: str) -> pa.Table:
        """Run a SQL statement, such as `CALL run_clean(path => '…')`, and return its rows."""
        folder = self._fresh()
        self._call({"command": "sql", "statement": statement, "to": str(folder)})
        return _rows(folder)

    def run(self, statement: str) -> None:
        """Run a SQL statement that has no rows, such as `CREATE TABLE`."""
        self._call({"command": "sql", "statement": statement})

    def hfile(self, path: Path | str, keys: Sequence[str]) -> tuple[list[str], dict[str, bytes], int | None]:
        """(all keys of an HFile, values of `keys`, entries by HBase's reader, which 1.x no longer
        has)."""
        answer = self._call({"command": "hfile", "path": str(path), "keys": list(keys)})
        values = {key: bytes.fromhex(value) for key, value in answer["values"].items()}
        return answer["found"], values, answer["hbase"]

    def lock_rounds(self, provider: str, properties: Mapping[str, str], rounds: int, critical: Path) -> int:
        """Take and give back a lock that often; how often somebody else was inside, told by the
        file `critical`."""
        command = {"command": "lock", "provider": provider, "properties": dict(properties)}
        answer = self._call(command | {"rounds": rounds, "critical": str(critical)})
        return int(answer["met"])

    def lose_lock(self, provider: str, properties: Mapping[str, str]) -> bool:
        """Try once to take a lock, and close the client; whether it was got."""
        return bool(self._call({"command": "lose_lock", "provider": provider, "properties": dict(properties)})["got"])

    def lock_bytes(self) -> dict[str, str]:
        """What it writes into the file of a lock, and into the object of one where it has that."""
        answer = self._call({"command": "lock_bytes"})
        return {name: answer[name] for name in ("file", "object") if name in answer}

    def checkpoint(self, base: Path | str, told: StreamerCheckpoint) -> tuple[StreamerCheckpoint, dict[str, str]]:
        """(what Hudi Streamer of 1.x goes on from on a table, the extra metadata of a commit of its
        that holds `told`)."""
        source = "org.apache.hudi.utilities.sources.JsonKafkaSource"
        answer = self._call({"command": "checkpoint", "base": str(base), "source": source, **asdict(told)})
        return StreamerCheckpoint(*answer["read"]), answer["written"]

    def common_options(self) -> dict[str, str]:
        """What every write here shares: two tasks, and for 1.x to stay on table version 6."""
        tasks = {f"hoodie.{kind}.shuffle.parallelism": "2" for kind in ("insert", "upsert", "bulkinsert", "delete")}
        if not self.is_1x:
            return tasks
        return tasks | {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}

    def close(self) -> None:
        """End the process and remove what it wrote."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"command": "stop"}) + "\n")
            self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _fresh(self) -> Path:
        with self._lock:
            self._calls += 1
            return self._folder / f"call-{self._calls}"

    def _call(self, command: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            if not self._ready:
                self._answer(START_SECONDS)
                self._ready = True
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            answer = self._answer(CALL_SECONDS)
        if not answer["ok"]:
            raise HudiFailedError(f"Hudi {self.version}, {command['command']}: {answer['message']}")
        return answer

    def _answer(self, seconds: int) -> dict[str, Any]:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            line = self._process.stdout.readline() if selector.select(seconds) else ""
        if not line:
            ended = self._process.poll() is not None
            self._process.kill()
            tail = Path(self._log.name).read_text("utf-8", "replace")[-4000:]
            what = "ended" if ended else f"gave no answer within {seconds} s"
            raise HudiFailedError(f"the process of Hudi {self.version} {what}; its log ends:\n{tail}")
        return json.loads(line)


def environment() -> tuple[Path, Path]:
    """Python and jar cache of the interop environment; fails with what to type where they are
    missing."""
    python = Path(os.environ.get("HUDI_INTEROP_PYTHON") or ROOT / ".venv-hudi" / "bin" / "python")
    ivy = Path(os.environ.get("HUDI_INTEROP_IVY") or ROOT / ".cache" / "ivy")
    if not python.exists():
        raise FileNotFoundError(f"no Python with pyspark 3.5 at {python}: run `make interop-env`")
    return python.absolute(), ivy.absolute()


def _rows(folder: Path) -> pa.Table:
    files = sorted(folder.glob("*.parquet"))
    tables = [pq.ParquetFile(file).read() for file in files]
    shutil.rmtree(folder)
    return pa.concat_tables(tables)
