"""A ZooKeeper server on this machine, alone and on loopback, from the jars that pyspark brings."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.support.server_process import HOST, ServerProcess, free_ports

JARS = Path(pyspark.__file__).parent / "jars"
_MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"


@dataclass
class ZooKeeper:
    """One server with a folder of its own: started, killed, started again."""

    folder: Path
    port: int
    session_max: float = 40.0
    _process: ServerProcess = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._process = ServerProcess("ZooKeeper", self.folder / "log")

    @property
    def address(self) -> str:
        """Where clients go."""
        return f"{HOST}:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it serves: it listens before, and leaves who asks for a session
        then without an answer. A tick of 100 milliseconds lets sessions be as short as 200."""
        java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
        options = [
            "-Xmx128m",
            "-XX:TieredStopAtLevel=1",
            "-Dzookeeper.admin.enableServer=false",
            "-Dzookeeper.fsync.warningthresholdms=60000",
        ]
        config = self.folder / "zoo.cfg"
        config.write_text(
            f"tickTime=100\nmaxSessionTimeout={self.session_max * 1000:.0f}\ndataDir={self.folder}/data\nclientPort={self.port}\nclientPortAddress={HOST}\n"
            "maxClientCnxns=0\n"
        )
        command = [str(java), *options, "-cp", f"{JARS}/*", _MAIN, str(config)]
        self._process.start(command, lambda _: self._serves())

    def kill(self) -> None:
        """End it at once; what it has promised is on disk."""
        self._process.kill()

    def _serves(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), timeout=1) as connection:
            connection.sendall(b"srvr")
            return connection.recv(16).startswith(b"Zookeeper")
        return False


@contextlib.contextmanager
def running_zookeeper(folder: Path, *, session_max: float = 40.0) -> Iterator[ZooKeeper]:
    """A server with a folder below `folder`, which grants sessions of so many seconds at most."""
    folder.mkdir(parents=True)
    server = ZooKeeper(folder, free_ports(1)[0], session_max)
    server.start()
    try:
        yield server
    finally:
        server.kill()
