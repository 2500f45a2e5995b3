"""A server of a database on this machine, with a folder of its own: started, killed, started again.

Databases refuse to run as root. Where the tests do, a server runs as `nobody`, from a copy where
that user may not read its binaries.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar

from tests.support.server_process import ServerProcess, free_ports

S = TypeVar("S", bound="DatabaseServer")


@dataclass
class DatabaseServer:
    """One server. `user`: as whom it runs, None for who runs the tests."""

    NAME: ClassVar[str]

    folder: Path
    binaries: Path
    port: int
    user: str | None
    settings: tuple[str, ...] = ()
    _process: ServerProcess = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._process = ServerProcess(self.NAME, self.folder / "log")

    @property
    def data(self) -> Path:
        """Its files."""
        return self.folder / "data"

    def make(self) -> None:
        """Its files, before it starts first."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it, and wait until it answers."""
        raise NotImplementedError

    def kill(self) -> None:
        """End it at once, as a machine that goes away does."""
        self._process.kill()

    def hand_over(self, *paths: Path) -> None:
        """Give files to the user that it runs as."""
        if self.user is not None:
            self.folder.chmod(0o755)
            for path in paths:
                shutil.chown(path, self.user)


@contextlib.contextmanager
def made(kind: type[S], binaries: Callable[[Path, str | None], Path], settings: tuple[str, ...]) -> Iterator[S]:
    """A server that was not started yet, killed at the end. `binaries`: where they are for a folder
    and a user."""
    with tempfile.TemporaryDirectory(prefix=f"{kind.NAME.lower()}-") as folder:
        user = "nobody" if os.getuid() == 0 else None
        server = kind(Path(folder), binaries(Path(folder), user), free_ports(1)[0], user, settings)
        server.make()
        try:
            yield server
        finally:
            server.kill()
