"""A MariaDB server on this machine, from the binaries that `make setup-mariadb` fetches: started,
killed, started again.

MariaDB refuses to run as root. Where the tests do, the server runs as `nobody`, from a copy where
that user may not read what was fetched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from scripts.setup_env import MARIADB_SERVER
from tests.support.server_process import HOST, ServerProcess, free_ports

USER = "hudi"
PASSWORD = "se-cret/of:the@test?"  # that no message may show, of signs that a URL has to quote
DATABASE = "shop"


@dataclass
class Server:
    """One server with a folder of its own."""

    folder: Path
    binaries: Path
    port: int
    user: str | None
    settings: tuple[str, ...] = ()
    _process: ServerProcess = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._process = ServerProcess("MariaDB", self.folder / "log")

    def make(self) -> None:
        """The system's tables, a database and a user who may do everything."""
        self._data.mkdir()
        if self.user is not None:
            self.folder.chmod(0o755)
            shutil.chown(self._data, self.user)
        share = self.binaries / "share"
        scripts = [share / name for name in ("mariadb_system_tables.sql", "mariadb_system_tables_data.sql")]
        statements = [
            "create database mysql;",
            "use mysql;",
            *(path.read_text() for path in scripts),
            "flush privileges;",
            f"create database {DATABASE} character set utf8mb4;",
            f"create user '{USER}'@'%' identified by '{PASSWORD}';",
            f"grant all on *.* to '{USER}'@'%' with grant option;",
        ]
        done = subprocess.run(
            [*self._command(), "--bootstrap"], input="\n".join(statements), cwd="/", user=self.user, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"mariadbd --bootstrap failed: {done.stderr[-3000:]}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        listens = [f"--bind-address={HOST}", f"--port={self.port}", f"--socket={self._data / 'socket'}"]
        # Without a certificate of its own it would make one, which takes half a minute.
        tls = [] if any(each.startswith("--ssl") for each in self.settings) else ["--skip-ssl"]
        command = [*self._command(), *listens, *tls, *self.settings]
        self._process.start(command, lambda _: self._answers(), cwd="/", user=self.user)

    def execute(self, *statements: str) -> None:
        """Run statements, each a transaction of its own; several in one text are one."""
        program = [str(self.binaries / "bin" / "mariadb"), "--no-defaults", "--skip-ssl-verify-server-cert"]
        options = [f"--host={HOST}", f"--port={self.port}", f"--user={USER}", "--default-character-set=utf8mb4"]
        done = subprocess.run(
            [*program, *options, f"--password={PASSWORD}", DATABASE], input=";\n".join(statements) + ";", text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"the server does not take it: {done.stderr}")

    def kill(self) -> None:
        """End it at once, as a machine that goes away does."""
        self._process.kill()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _command(self) -> list[str]:
        # What is committed outlives the process, as it would with the default, which waits for the disk too.
        small = ["--skip-log-bin", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=2"]
        return [
            str(self.binaries / "bin" / "mariadbd"), "--no-defaults", f"--datadir={self._data}",
            f"--lc-messages-dir={self.binaries / 'share'}", f"--character-sets-dir={self.binaries / 'share' / 'charsets'}",
            *small,
        ]  # fmt: skip

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), 5) as probe:
            return bool(probe.recv(1))  # the greeting, with which a server begins
        return False


@contextlib.contextmanager
def running_mariadb(*settings: str) -> Iterator[Server]:
    """A server with such settings (`--default-time-zone=+05:30`)."""
    assert MARIADB_SERVER.exists(), "`make setup-mariadb` fetches the server that these tests start"
    with tempfile.TemporaryDirectory(prefix="mariadb-") as folder:
        user = "nobody" if os.getuid() == 0 else None
        server = Server(Path(folder), _binaries(Path(folder), user), free_ports(1)[0], user, settings)
        server.make()
        try:
            server.start()
            yield server
        finally:
            server.kill()


def _binaries(folder: Path, user: str | None) -> Path:
    if user is None:
        return MARIADB_SERVER
    with contextlib.suppress(OSError):
        asked = [str(MARIADB_SERVER / "bin" / "mariadbd"), "--no-defaults", "--version"]
        if subprocess.run(asked, cwd="/", user=user, capture_output=True, check=False).returncode == 0:
            return MARIADB_SERVER
    folder.chmod(0o755)
    return shutil.copytree(MARIADB_SERVER, folder / "server")
