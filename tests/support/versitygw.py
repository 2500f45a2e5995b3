"""versitygw: an S3 server over a folder that serves requests side by side, as moto, behind one
lock, does not."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from e2e.cluster import binaries
from tests.support.s3 import ACCESS, S3Server, with_bucket

READY_SECONDS_MAX = 30.0


@contextlib.contextmanager
def running_versitygw(folder: Path) -> Iterator[S3Server]:
    """A server of `folder` on a free loopback port, with one bucket. Built first where it is not
    there: a minute, once."""
    binaries.build("versitygw")
    folder.mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, "ROOT_ACCESS_KEY": ACCESS["access_key_id"], "ROOT_SECRET_KEY": ACCESS["secret_access_key"]}
    command: list[str | Path] = [
        binaries.path_of("versitygw"),
        "--port",
        f"127.0.0.1:{port}",
        "--quiet",
        "posix",
        folder,
    ]
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    try:
        _wait(process, port)
        yield with_bucket(port)
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + READY_SECONDS_MAX
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            assert process.poll() is None, "another server answers at this port"
            return
        assert process.poll() is None, f"versitygw ended with {process.returncode}"
        assert time.monotonic() < end, "versitygw does not listen"
        time.sleep(0.05)
