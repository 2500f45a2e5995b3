"""hudi-rs, which is neither engine's, reading one table again and again in a process of its own."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection

from tests.mirror.history import Read
from tests.mirror.writers import pairs
from tests.support import hudi_rs
from tests.support.s3 import ACCESS, S3Server

PAUSE_SECONDS = 0.4
SAID_MAX = 300


class Reader:
    """The process; `near` is the server without a proxy before it."""

    def __init__(self, near: S3Server) -> None:
        self._control, theirs = multiprocessing.Pipe()
        options = {
            "aws_endpoint": near.endpoint, "aws_region": "us-east-1", "aws_allow_http": "true",
            **{f"aws_{name}": value for name, value in ACCESS.items()},
        }  # fmt: skip
        spawned = multiprocessing.get_context("spawn")
        self._process = spawned.Process(target=_serve, args=(theirs, options), daemon=True)
        self._process.start()

    def begin(self, base: str) -> None:
        """From now on it reads this table."""
        self._control.send(f"s3://{base}")

    def end(self) -> list[Read]:
        """What it has read, one read after this call among it, which is the last."""
        self._control.send("")
        reads: list[Read] = self._control.recv()
        return reads

    def close(self) -> None:
        """It is gone."""
        self._process.terminate()
        self._process.join()


def _serve(control: Connection, options: Mapping[str, str]) -> None:
    while base := control.recv():
        reads: list[Read] = []
        while not control.poll(PAUSE_SECONDS):
            reads.append(_read(base, options))
        control.recv()
        control.send([*reads, _read(base, options)])


def _read(base: str, options: Mapping[str, str]) -> Read:
    began = time.monotonic()
    try:
        found: list[tuple[str, int]] | str = pairs(hudi_rs.read(base, **options))
    # The reader has exceptions of its own for whatever it does not understand: each is what a reader meets.
    except Exception as error:  # noqa: BLE001
        found = str(error)[:SAID_MAX]
    return Read(began, time.monotonic(), found)
