"""A MariaDB server, from the binaries that `make setup-mariadb` fetches."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.setup_env import MARIADB_SERVER
from tests.support.database_server import DatabaseServer, made
from tests.support.server_process import HOST

USER = "hudi"
PASSWORD = "se-cret/of:the@test?"  # that no message may show, of signs that a URL has to quote
DATABASE = "shop"


class Server(DatabaseServer):
    """One server with a folder of its own."""

    NAME = "MariaDB"

    def make(self) -> None:
        """The system's tables, a database and a user who may do everything."""
        self.data.mkdir()
        self.hand_over(self.data)
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
        listens = [f"--bind-address={HOST}", f"--port={self.port}", f"--socket={self.data / 'socket'}"]
        # Without a certificate of its own it would make one, which takes half a minute.
        tls = [] if any(each.startswith("--ssl") for each in self.settings) else ["--skip-ssl"]
        command = [*self._command(), *listens, *tls, *self.settings]
        self._process.start(command, lambda _: self._answers(), cwd="/", user=self.user)

    def execute(self, *statements: str) -> None:
        """Run statements, each a transaction of its own; several in one text are one."""
        self._ask(";\n".join(statements) + ";")

    def query(self, statement: str) -> list[Any]:
        """Of each row its one column, which is JSON."""
        return [
            json.loads(line) for line in self._ask(statement, "--batch", "--raw", "--skip-column-names").splitlines()
        ]

    def _ask(self, text: str, *options: str) -> str:
        program = [str(self.binaries / "bin" / "mariadb"), "--no-defaults", "--skip-ssl-verify-server-cert"]
        place = [f"--host={HOST}", f"--port={self.port}", f"--user={USER}", "--default-character-set=utf8mb4"]
        done = subprocess.run(
            [*program, *place, *options, f"--password={PASSWORD}", DATABASE], input=text, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"the server does not take it: {done.stderr}")
        return done.stdout

    def _command(self) -> list[str]:
        # What is committed outlives the process, as it would with the default, which waits for the disk too.
        small = ["--skip-log-bin", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=2"]
        return [
            str(self.binaries / "bin" / "mariadbd"), "--no-defaults", f"--datadir={self.data}",
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
    with made(Server, _binaries, settings) as server:
        server.start()
        yield server


def _binaries(folder: Path, user: str | None) -> Path:
    if user is None:
        return MARIADB_SERVER
    with contextlib.suppress(OSError):
        asked = [str(MARIADB_SERVER / "bin" / "mariadbd"), "--no-defaults", "--version"]
        if subprocess.run(asked, cwd="/", user=user, capture_output=True, check=False).returncode == 0:
            return MARIADB_SERVER
    folder.chmod(0o755)
    return shutil.copytree(MARIADB_SERVER, folder / "server")
