"""`kubectl hudi` where something is wrong: what blocks a table, logs of pods that do or do not run,
and what the user may not see.

A real kubectl, API server and operator; the test plays the kubelet.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from hudi_table.api import create_table
from hudi_table.model.table.properties import METADATA_DROPPED
from hudi_table.table.timeline.properties import replace_properties
from tests.support.api_server import ApiServer
from tests.support.kubelet import eventually
from tests.support.kubelet_logs import bind, node_with_logs
from tests.support.operator_process import operator as operator_process
from tests.support.shell import Shell, made, made_with_files

START_SECONDS = 120.0
"""An operator starts, leads, and launches; on a busy machine that takes a while."""


def test_why_of_a_table_that_nobody_looks_at(server: ApiServer, shell: Shell) -> None:
    made(server, shell.namespace, suspend=True)
    text = shell.good("why", "flights", code=3)
    assert text.startswith("flights: something blocks it\n")
    assert "blocks  it is suspended\n" in text
    patch = """→ kubectl patch ht flights -n """ + shell.namespace
    assert patch in text
    for verb in ("run", "plan"):
        done = shell.hudi(verb, "flights", "Cleaning")
        assert (done.returncode, "HudiTable flights is suspended, so nothing runs" in done.stderr) == (1, True)


def test_why_of_a_secret_that_is_missing_says_how_to_make_it(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    made(server, shell.namespace, location="s3://lake/flights", storage={"credentialsSecretRef": {"name": "s3"}})
    with operator_process(server, shell.namespace, tmp_path / "log"):
        eventually(lambda: "Stalled" in shell.hudi("status").stdout, "it is not stalled", START_SECONDS)
    text = shell.good("why", "flights", code=3)
    assert f"there is no Secret 's3' in namespace {shell.namespace}; create it" in text
    assert f"→ kubectl create secret generic s3 -n {shell.namespace} --from-literal=AWS_ACCESS_KEY_ID=…" in text
    assert shell.document("status", "flights")["items"][0]["reason"] == "InvalidSpec"


def test_why_of_an_attempt_that_may_not_be_started(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    quota = {"hard": {"count/jobs.batch": "0"}}
    server.apply({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": shell.namespace}, "spec": quota,
    })  # fmt: skip
    eventually(lambda: server.get("resourcequota", "none", "-n", shell.namespace).get("status"), "no quota")
    made_with_files(server, shell.namespace, tmp_path)
    with operator_process(server, shell.namespace, tmp_path / "log"):
        eventually(
            lambda: "stalled: AccessDenied" in shell.hudi("why", "flights").stdout,
            "it is not told",
            START_SECONDS,
        )
    text = shell.good("why", "flights", code=3)
    assert "exceeded quota: none" in text
    assert f"→ kubectl describe quota -n {shell.namespace}" in text


def test_why_of_a_pod_that_cannot_start(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    made_with_files(server, shell.namespace, tmp_path)
    with operator_process(server, shell.namespace, tmp_path / "log"):
        pod = eventually(
            lambda: next(iter(server.get("pods", "-n", shell.namespace)["items"]), None), "no pod", START_SECONDS
        )
        name = pod["metadata"]["name"]
        waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
        container = {
            "name": "job",
            "image": "i",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"waiting": waiting},
        }
        status = {"status": {"phase": "Pending", "containerStatuses": [container]}}
        patched = server.kubectl(
            "patch",
            "pod",
            name,
            "-n",
            shell.namespace,
            "--subresource=status",
            "--type=merge",
            "-p",
            json.dumps(status),
        )
        assert patched.returncode == 0, patched.stderr
        eventually(lambda: "Ingest/feed" in shell.hudi("status").stdout, "the attempt is not told", START_SECONDS)
        text = shell.good("why", "flights", code=3)
        assert f"pod {name} does not start: ImagePullBackOff" in text
        assert "runs    Ingest/feed is at work" in text
        logs = shell.hudi("logs", "flights")
        assert (logs.returncode, "the pod does not start: ImagePullBackOff: no such image" in logs.stderr) == (1, True)


def test_why_of_a_metadata_table_that_was_switched_off(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "ts": pa.array([1, 2], pa.int64())})
    index = {"type": "Bucket", "buckets": 4}
    table = create_table(str(tmp_path / "lake"), rows.schema, record_key="id", ordering_fields="ts", index=index)
    table.upsert(rows)
    replace_properties(table.context, {METADATA_DROPPED: "a key stands in two file groups"})
    made(server, shell.namespace, location=f"file://{tmp_path / 'lake'}", ingest=None)

    def told() -> list[dict[str, str]]:
        events = server.get("events.events.k8s.io", "-n", shell.namespace)["items"]
        return [event for event in events if event["reason"] == "MetadataTableSwitchedOff"]

    with operator_process(server, shell.namespace, tmp_path / "log"):
        eventually(lambda: "SwitchedOff" in shell.hudi("why", "flights").stdout, "it is not told", START_SECONDS)
        text = shell.good("why", "flights")
        assert "debt    Indexing is due: SwitchedOff" in text
        assert "a key stands in two file groups; readers list the folders" in text
        assert f"→ kubectl hudi run flights Indexing -n {shell.namespace}" in text
        (row,) = shell.document("status", "flights")["items"]
        assert (row["health"], row["debts"]) == ("Ready", ["no metadata table"])
        assert "MetadataTable" in shell.good("report", "flights")
        (event,) = eventually(told, "no event tells it")
        assert (event["type"], event["note"].partition(";")[0]) == ("Warning", "a key stands in two file groups")

        shell.good("run", "flights", "Indexing", "--index", "column_stats")
        (service,) = server.get("tsvc", "-n", shell.namespace)["items"]
        assert service["spec"]["type"] == "Indexing"
        assert service["spec"]["indexing"] == {"partitions": ["column_stats"], "indexes": [], "drop": []}
        eventually(lambda: "Indexing is at work" in shell.hudi("why", "flights").stdout, "it is not run", START_SECONDS)

        table.build_metadata(["column_stats"])
        replace_properties(table.context, {METADATA_DROPPED: None})
        looked = server.kubectl("annotate", "ht", "flights", "-n", shell.namespace, "looked=again")
        assert looked.returncode == 0, looked.stderr
        eventually(lambda: "SwitchedOff" not in shell.hudi("why", "flights").stdout, "it stays", START_SECONDS)
        conditions = {each["type"]: each for each in shell.document("report", "flights")["conditions"]}
        assert conditions["MetadataTable"]["message"] == "ready: column_stats, files"
        assert len(told()) == 1


def test_a_table_that_is_not_there_is_told_with_what_is(server: ApiServer, shell: Shell) -> None:
    made(server, shell.namespace)
    for verb in (["why"], ["timeline"], ["report"], ["logs"], ["plan"], ["approve"], ["lag"], ["status"]):
        done = shell.hudi(*verb, "planes")
        assert (done.returncode, done.stdout) == (1, ""), verb
        assert f"there is no HudiTable 'planes' in namespace {shell.namespace}; there are flights" in done.stderr


def test_what_the_account_may_not_see_is_told_in_plain_words(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    token = server.kubectl("create", "token", "default", "-n", shell.namespace).stdout.strip()
    config = json.loads(server.kubectl("config", "view", "--raw", "-o", "json").stdout)
    config["users"][0]["user"] = {"token": token}
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    done = shell.hudi("status", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: AccessDenied: the API server refuses: ")
    assert f"ask for a Role of hudi.lakeops.dev in namespace {shell.namespace}" in done.stderr


def test_a_cluster_that_is_not_there_is_told_in_plain_words(shell: Shell, tmp_path: Path) -> None:
    nothing = shell("hudi", "status", "--kubeconfig", str(tmp_path / "none"))
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert nothing.stderr.startswith("error: InvalidOption: no cluster to ask: ")
    unknown = shell("hudi", "status", "--context", "other")
    assert (unknown.returncode, "--context NAME" in unknown.stderr) == (2, True)
    config = json.loads(shell.server.kubectl("config", "view", "--raw", "-o", "json").stdout)
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "dead").write_text(json.dumps(config))
    dead = shell("hudi", "status", "--kubeconfig", str(tmp_path / "dead"))
    assert (dead.returncode, dead.stderr.startswith("error: Unavailable: the API server cannot be reached")) == (
        1,
        True,
    )


def test_the_log_of_a_pod_is_printed(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    made_with_files(server, shell.namespace, tmp_path)
    nothing = shell.hudi("logs", "flights")
    assert (nothing.returncode, "nothing has run for flights yet" in nothing.stderr) == (1, True)
    with ExitStack() as stack:
        stack.enter_context(operator_process(server, shell.namespace, tmp_path / "log"))
        asked = stack.enter_context(node_with_logs(server, tmp_path, "first line\nsecond line, with ü"))
        pod = eventually(
            lambda: next(iter(server.get("pods", "-n", shell.namespace)["items"]), None), "no pod", START_SECONDS
        )
        eventually(lambda: "Ingest/feed" in shell.hudi("status").stdout, "the attempt is not told", START_SECONDS)
        waits = shell.hudi("logs", "flights")
        assert (waits.returncode, "the pod has said nothing yet" in waits.stderr) == (1, True)
        bind(server, pod)
        status = json.dumps({"status": {"phase": "Running"}})
        server.kubectl(
            "patch",
            "pod",
            pod["metadata"]["name"],
            "-n",
            shell.namespace,
            "--subresource=status",
            "--type=merge",
            "-p",
            status,
        )
        done = shell.hudi("logs", "flights", "--tail", "7", "-f")
        assert (done.returncode, done.stdout) == (0, "first line\nsecond line, with ü\n"), done.stderr
        assert f"Ingest/feed, attempt 1 as {pod['metadata']['labels']['job-name']}: Running" in done.stderr
        assert asked == [f"/containerLogs/{shell.namespace}/{pod['metadata']['name']}/job?follow=true&tailLines=7"]
