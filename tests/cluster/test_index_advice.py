"""One life of advice on a real API server: a service's job measures it, the status and one event
tell it, and it goes when it was followed.

A real operator, kubectl and jobs, whose pods a test runs. The advice is about bloom filters that
the manifest makes too small.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.api_server import ApiServer
from tests.support.kubelet import eventually
from tests.support.living import pods_run
from tests.support.manifests import manifest
from tests.support.operator_process import FedTable, operator
from tests.support.shell import Shell, path_with_plugin

WAIT_SECONDS = 180.0
KEYS, ROW_BYTES = 100, 200_000
"""Together they are what a table needs to be measured."""
TOO_SMALL = {
    "hoodie.index.bloom.num_entries": "10",
    "hoodie.index.bloom.fpp": "0.1",
    "hoodie.bloom.index.filter.type": "SIMPLE",
}


def lands(table: FedTable, number: int) -> None:
    """The same keys with other values, so that their one file is written anew."""
    rows = {
        "id": [f"k{i}" for i in range(KEYS)],
        "ts": pa.array([number] * KEYS, pa.int64()),
        "noise": pa.array([os.urandom(ROW_BYTES) for _ in range(KEYS)], pa.binary()),
    }
    pq.write_table(pa.table(rows), table.folder / "unfinished")
    (table.folder / "unfinished").rename(table.landing / f"{number}.parquet")
    table.touch(number)


def service(table: FedTable) -> dict[str, Any]:
    body = manifest("clean", "TableService", tableRef={"name": table.name}, type="Cleaning")
    return {**body, "metadata": {"name": "clean", "namespace": table.namespace}}


@pytest.mark.timeout(900)
def test_advice_appears_in_status_and_one_event_and_goes_when_it_was_followed(
    server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    table = FedTable(server, namespace, "flights", tmp_path)
    shell = Shell(server, namespace, path_with_plugin(server, tmp_path))

    def status() -> dict[str, Any]:
        return dict(server.get("ht", "flights", "-n", namespace).get("status", {}))

    def becomes(right: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        return eventually(lambda: found if right(found := status()) else None, what, WAIT_SECONDS)

    def ingested(runs: int) -> Callable[[dict[str, Any]], bool]:
        return lambda found: [run["phase"] for run in found.get("runs", ())] == ["Succeeded"] * runs

    def told() -> list[dict[str, Any]]:
        found = server.get("events.events.k8s.io", "-n", namespace)["items"]
        return [event for event in found if event["reason"] == "IndexAdvice"]

    table.create(index={"type": "Bloom"}, options=TOO_SMALL)
    with ExitStack() as stack:
        stack.enter_context(pods_run(server, namespace, tmp_path / "pods"))
        stack.enter_context(operator(server, namespace, tmp_path / "log"))
        lands(table, 1)
        assert "index" not in becomes(ingested(1), "nothing is ingested")

        server.apply(service(table))
        eventually(
            lambda: server.get("tsvc", "clean", "-n", namespace).get("status", {}).get("runs"), "it does not run"
        )
        index = becomes(lambda found: bool(found.get("index")), "nothing is measured")["index"]
        assert "the bloom filters of 1 of 1 file are too full" in index["advice"][0]
        assert (index["type"], index["instant"]) == ("Bloom", status()["timeline"]["lastInstant"])
        described = server.kubectl("describe", "ht", "flights", "-n", namespace).stdout
        assert "the bloom filters of 1 of 1 file are too full" in described
        (event,) = told()
        assert (event["type"], event["regarding"]["kind"], event["note"]) == ("Normal", "HudiTable", index["advice"][0])
        why = shell.good("why", "flights")
        assert "advice  its index Bloom could do better\n        the bloom filters of 1 of 1" in why
        assert f"→ kubectl edit ht flights -n {namespace}" in why
        assert shell.document("status")["items"][0]["advice"] == ["index Bloom: see why"]
        assert shell.document("report", "flights")["index"] == index

        lands(table, 2)
        again = becomes(ingested(2), "nothing more is ingested")["index"]
        assert again["instant"] > index["instant"], "the ingest has measured it, too"
        assert len(told()) == 1

        change = json.dumps({"spec": {"options": dict.fromkeys(TOO_SMALL)}})
        done = server.kubectl("patch", "ht", "flights", "-n", namespace, "--type=merge", "-p", change)
        assert done.returncode == 0, done.stderr
        lands(table, 3)
        mended = becomes(ingested(3), "nothing is ingested with other options")["index"]
        assert (mended["advice"], mended["instant"] > again["instant"]) == ([], True)
        assert "advice" not in shell.good("why", "flights")
        assert len(told()) == 1
        assert all("index" not in run for run in status()["runs"])
