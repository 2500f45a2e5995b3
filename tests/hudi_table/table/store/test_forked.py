"""Processes that were started from one that had asked a store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.s3 import running_s3

pytestmark = pytest.mark.s3
REPOSITORY = Path(__file__).parents[4]
STARTED = """
import json, multiprocessing, sys
from hudi_table.errors import HudiError
from hudi_table.table.store.opening import open_storage

uri, options, method = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
storage = open_storage(uri, options)
if method != "fork before":
    storage.put("x", b"found")
with multiprocessing.get_context(method.split()[0]).Pool(1) as pool:
    try:
        print(pool.apply_async(storage.get, ("x",)).get(timeout=20).decode())
    except HudiError as error:
        print(error)
"""
FORKED = """
import json, os, sys
from hudi_table.errors import HudiError
from hudi_table.table.store.opening import open_storage

storage = open_storage(sys.argv[1], json.loads(sys.argv[2]))
storage.put("x", b"found")

def write():
    with storage.open_write("x") as sink:
        sink.write(b"x" * (20 << 20))

options = json.loads(sys.argv[2])
for call in (lambda: storage.get("x"), lambda: open_storage(sys.argv[1], options).get("x"), write):
    if os.fork() == 0:
        try:
            call()
        except HudiError as error:
            print(error, flush=True)
        os._exit(0)
    os.wait()
"""


def printed(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    env = {"PYTHONPATH": str(REPOSITORY / "spark_app"), "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=env)
    return done.stdout


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_a_started_process_reads_a_store_that_its_parent_had_asked_or_is_told_how_to_be_started(method: str) -> None:
    with running_s3() as server:
        found = printed(STARTED, server.new_uri(), json.dumps(server.options), method)
    assert ("start processes by the method 'spawn' or 'forkserver'" if method == "fork" else "found") in found


def test_a_process_that_was_forked_before_the_first_request_reads_a_store() -> None:
    with running_s3() as server:
        assert "no object 'x'" in printed(STARTED, server.new_uri(), json.dumps(server.options), "fork before")


def test_a_forked_process_is_refused_by_name_by_what_it_inherits_and_by_what_it_opens() -> None:
    """It waited for ever."""
    with running_s3() as server:
        found = printed(FORKED, server.new_uri(), json.dumps(server.options)).splitlines()
    assert len(found) == 3
    assert all("which was forked from one that had asked a store" in line for line in found)
