"""Flink 1.17 with Apache Hudi's bundle for it, 0.14.0: one process that runs SQL, driven by Py4J
over loopback.

Its jars are pinned in requirements/flink.sha256 and fetched by `make setup-flink`; those of Py4J,
of Hive and of ZooKeeper's client are pyspark's. Each job runs in a small cluster inside the
process. Commands of several threads run beside each other.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from scripts.setup_env import FLINK, FLINK_LIB

_OPENED = (
    *("java.util", "java.util.concurrent", "java.util.concurrent.locks", "java.lang", "java.lang.invoke"),
    *("java.time", "java.net", "java.nio", "java.math", "java.text", "sun.nio.ch"),
)
_BORROWED = ("hive-exec-*.jar", "curator-*.jar", "zookeeper-*.jar", "netty-[a-z]*.jar")
"""Streaming reads ask for an input format of Hive's, and the lock of ZooKeeper for its client: the
bundle has neither."""
_SETTINGS = {
    "parallelism.default": "1",
    "table.exec.resource.default-parallelism": "1",
    "table.local-time-zone": "UTC",
    "restart-strategy": "none",
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "taskmanager.memory.network.min": "32m",
    "taskmanager.memory.network.max": "32m",
}
_LOGGED = """
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1} %m%n
"""
COLUMNS = "id STRING, city STRING, name STRING, price DECIMAL(10, 2), seen TIMESTAMP(6), ts BIGINT"
"""Those of the interop tests' model."""
WAIT_SECONDS_MAX = 240


class FlinkFailedError(AssertionError):
    """Flink refused or failed a statement; the message holds those of all causes."""


@dataclass
class Flink:
    """The process, and the tables that its statements name."""

    folder: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _gateway: Any = field(default=None, repr=False)

    def start(self) -> None:
        """Start it; it ends with this process, too."""
        log = (self.folder / "log").open("w")
        settings = self.folder / "log4j2.properties"
        settings.write_text(_LOGGED)
        jars = Path(pyspark.__file__).parent / "jars"
        (gateway,) = jars.glob("py4j-*.jar")
        borrowed = [str(jar) for pattern in _BORROWED for jar in jars.glob(pattern)]
        home = os.environ.get("JAVA_HOME")
        options = [
            *("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"),
            f"-Dlog4j2.configurationFile={settings}",
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        ]
        port, token, self._process = launch_gateway(
            jarpath=str(gateway),
            classpath=os.pathsep.join([f"{FLINK_LIB}/*", f"{FLINK}/ivy/jars/*", *borrowed]),
            javaopts=options,
            java_path=str(Path(home) / "bin" / "java") if home else "java",
            die_on_exit=True,
            enable_auth=True,
            redirect_stdout=log,
            redirect_stderr=log,
            return_proc=True,
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._gateway.shutdown()
            self._process.kill()
            self._process.communicate()
            self._process = None

    def run(self, *statements: str) -> None:
        """Statements one after the other in an environment of their own; each is awaited."""
        environment = self._environment(streaming=False)
        with failures_named():
            for statement in statements:
                getattr(environment.executeSql(statement), "await")()

    def rows(self, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last of these statements."""
        environment = self._environment(streaming=False)
        with failures_named():
            for statement in statements[:-1]:
                environment.executeSql(statement)
            found = environment.executeSql(statements[-1]).collect()
            return list(_values(found))

    @contextlib.contextmanager
    def following(self, *statements: str) -> Iterator[Followed]:
        """The rows of the last of these statements, a query without an end, as they come."""
        environment = self._environment(streaming=True)
        with failures_named():
            for statement in statements[:-1]:
                environment.executeSql(statement)
            result = environment.executeSql(statements[-1])
        with ThreadPoolExecutor(1) as pool:
            followed = Followed(pool, result.collect())
            try:
                yield followed
            finally:
                with contextlib.suppress(Py4JJavaError):
                    result.getJobClient().get().cancel().get()
                with contextlib.suppress(Py4JJavaError):
                    followed.reading.result(WAIT_SECONDS_MAX)

    def _environment(self, *, streaming: bool) -> Any:
        table = self._gateway.jvm.org.apache.flink.table.api
        settings = table.EnvironmentSettings
        made = table.TableEnvironment.create(settings.inStreamingMode() if streaming else settings.inBatchMode())
        for name, value in _SETTINGS.items():
            made.getConfig().getConfiguration().setString(name, value)
        return made


class Followed:
    """What a query without an end has given so far."""

    def __init__(self, pool: ThreadPoolExecutor, found: Any) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.reading = pool.submit(self._read, found)

    def wait_for(self, count: int) -> list[tuple[Any, ...]]:
        """So many rows, once they are there."""
        until = time.monotonic() + WAIT_SECONDS_MAX
        while len(self.rows) < count:
            if self.reading.done():
                with failures_named():
                    self.reading.result()
            assert time.monotonic() < until, f"{len(self.rows)} rows of {count} after {WAIT_SECONDS_MAX} s"
            time.sleep(0.2)
        return list(self.rows)

    def _read(self, found: Any) -> None:
        for row in _values(found):
            self.rows.append(row)


def table(base: Path, options: Mapping[str, str]) -> str:
    """A statement that names the Hudi table at `base` by its folder, with the columns of the model.
    Under another name than the table has, Flink's commits would bear another name of the schema,
    and Hudi 0.15.0 on Spark would refuse to write after them."""
    told = {"connector": "hudi", "path": str(base), **options}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in told.items())
    return f"CREATE TABLE `{base.name}` ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) WITH ({listed})"


@contextlib.contextmanager
def running_flink(folder: Path) -> Iterator[Flink]:
    """A process with a folder below `folder`, gone at the end."""
    if not FLINK_LIB.is_dir():
        pytest.fail("Flink's jars are not there: make setup-flink")
    folder.mkdir(parents=True)
    flink = Flink(folder)
    flink.start()
    try:
        yield flink
    finally:
        flink.kill()


@contextlib.contextmanager
def failures_named() -> Iterator[None]:
    """A failure of Java's side as `FlinkFailedError`."""
    try:
        yield
    except Py4JJavaError as error:
        said, cause = list[str](), error.java_exception
        while cause is not None:
            said.append(str(cause.toString()))
            cause = cause.getCause()
        raise FlinkFailedError("\n".join(said)) from error


def _values(found: Any) -> Iterator[tuple[Any, ...]]:
    while found.hasNext():
        row = found.next()
        yield tuple(_plain(row.getField(place)) for place in range(row.getArity()))


def _plain(value: Any) -> Any:
    return value.toString() if hasattr(value, "getClass") else value
