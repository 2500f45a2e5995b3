"""`kubectl hudi` as the real kubectl finds it, against a real API server with a real operator. The test plays the kubelet.

What each verb prints of given documents is in tests/hudi_operator/cli; here it is what the verbs do, and what they meet.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.api_server import ApiServer
from tests.support.kubelet import eventually
from tests.support.kubelet_logs import bind, node_with_logs
from tests.support.living import pods_run
from tests.support.manifests import ingest, manifest, spec
from tests.support.operator_process import operator as operator_process

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120.0
"""An operator starts, leads, and a job of its runs to its end; on a busy machine that takes a while."""
CANARY = "canary-7f3a91bc"


@dataclass(frozen=True)
class Shell:
    """A person at a terminal, whose kubectl has the plugin."""

    server: ApiServer
    namespace: str
    path: str

    def __call__(self, *arguments: str, kubeconfig: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": self.path,
            "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("operator", "spark_app")),
            "KUBECONFIG": kubeconfig or str(self.server.kubeconfig),
        }
        return subprocess.run(["kubectl", *arguments], capture_output=True, text=True, check=False, env=environment)

    def hudi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self("hudi", *arguments, "-n", self.namespace)

    def good(self, *arguments: str, code: int = 0) -> str:
        done = self.hudi(*arguments)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

    def document(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.good(*arguments, "-o", "json", code=code))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, server: ApiServer) -> str:
    """A PATH with kubectl and the plugin, as an installer would write it."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "kubectl-hudi"
    call = "import sys; from hudi_operator.cli.kubectl.program import main; sys.exit(main())"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{call}' \"$@\"\n")
    script.chmod(0o755)
    return os.pathsep.join([str(folder), str(server.programs), "/usr/bin", "/bin"])


@pytest.fixture
def shell(server: ApiServer, namespace: str, path: str) -> Shell:
    return Shell(server, namespace, path)


@pytest.fixture(scope="module")
def lake(server: ApiServer, path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A namespace with an operator, a kubelet, and a table of two commits whose files are many and small."""
    folder = tmp_path_factory.mktemp("lake")
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "living"}})
    done = server.kubectl("wait", "--for=create", "--timeout=30s", "serviceaccount/default", "-n", "living")
    assert done.returncode == 0, done.stderr
    shell = Shell(server, "living", path)
    (folder / "landing").mkdir()
    with ExitStack() as stack:
        stack.enter_context(operator_process(server, "living", folder / "log"))
        stack.enter_context(pods_run(server, "living", folder))
        document = spec(
            location=f"file://{folder / 'lake'}",
            index={"type": "Simple"},
            partitionBy=[{"field": "day"}],
            ingest=[
                ingest(
                    operation="Insert",
                    source={"type": "Files", "path": f"file://{folder / 'landing'}/", "format": "parquet"},
                )
            ],
            options={"hoodie.parquet.small.file.limit": "0"},
            spark={"conf": {"spark.hadoop.fs.s3a.secret.key": CANARY}},
        )
        for number in (1, 2):
            lands(folder / "landing", number)
            body = manifest("flights", **document)
            body["metadata"] |= {"namespace": "living", "annotations": {"touched": str(number)}}
            server.apply(body)
            eventually(lambda number=number: has(shell, number), f"batch {number} is not taken", START_SECONDS)  # type: ignore[misc]
        yield shell


def lands(landing: Path, number: int) -> None:
    keys = [f"k{number}-{i}" for i in range(10)]
    rows = pa.table({"id": keys, "ts": pa.array([number] * 10, pa.int64()), "day": [f"d{i}" for i in range(10)]})
    pq.write_table(rows, landing / f"{number}.parquet")


def has(shell: Shell, number: int) -> bool:
    status = shell.server.get("ht", "flights", "-n", "living").get("status", {})
    settled = all(run["phase"] != "Running" for run in status.get("runs", ()))
    return bool(settled and (status.get("data") or {}).get("records") == 10 * number)


def plain(text: str) -> str:
    """Ages, instants, attempts and digests as names."""
    text = re.sub(r"\b\d{17}\b", "INSTANT", text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "DIGEST", text)
    return re.sub(r" {2,}", "  ", re.sub(r"(?<![\w.])(\d+[smhd]){1,2}(?!\w)", "AGE", text))


def test_kubectl_finds_the_plugin(shell: Shell) -> None:
    assert "kubectl-hudi" in shell("plugin", "list").stdout
    done = shell("hudi", "--help")
    assert (done.returncode, done.stdout.startswith("usage: kubectl hudi")) == (0, True)


def test_what_is_no_verb_of_the_cluster_is_one_of_hudictl(shell: Shell) -> None:
    done = shell("hudi", "explain", "WriteConflict")
    assert done.returncode == 0
    assert "WriteConflict" in done.stdout
    assert shell("hudi", "timeline", "/nowhere/at/all").stderr.startswith("error: TableNotFound")
    assert shell("hudi", "nonsense").returncode == 2


def test_the_status_of_all_tables(lake: Shell) -> None:
    assert plain(lake.good("status")) == (
        "TABLE  HEALTH  LAST COMMIT  WAITING  RECORDS  SIZE  OWES  AT WORK  TO APPROVE\n"
        f"flights  Ready  AGE  0 files  20  {size_of(lake)}  100% small files  -  -\n"
    )
    (row,) = lake.document("status", "flights")["items"]
    assert (row["namespace"], row["health"], row["records"], row["waitingFiles"]) == ("living", "Ready", 20, 0)
    assert row["debts"] == ["100% small files"]
    lake.good("status", "--fail-on", "blocked")
    lake.good("status", "--fail-on", "debts", code=3)
    assert "living" in lake("hudi", "status", "-A").stdout


def size_of(lake: Shell) -> str:
    found = re.search(r"[\d.]+ KiB", lake.good("status"))
    assert found is not None
    return found[0]


def test_the_timeline_from_the_status_and_from_the_store(lake: Shell) -> None:
    done = lake.hudi("timeline", "flights")
    lines = plain(done.stdout).splitlines()
    assert lines[0] == "INSTANT  ACTION  STATE  AGE  WORK"
    assert lines.count("INSTANT  commit  completed  AGE  Ingest/feed") == 2
    assert "3 writes are in the active timeline" in done.stderr
    stored = lake.document("timeline", "flights", "--storage")["items"]
    assert [each["inserted"] for each in stored if each["action"] == "commit"] == [10, 10, 0]
    told = {each["instant"] for each in lake.document("timeline", "flights")["items"]}
    assert {each["instant"] for each in stored if each["inserted"]} <= told


def test_a_plan_is_made_shown_approved_and_run(lake: Shell) -> None:
    first = lake.hudi("plan", "flights", "Clustering")
    assert first.returncode == 5, first.stderr
    assert re.match(r"SERVICE +TABLE +TYPE +STATE +DIGEST", first.stdout)
    assert "to approve" in first.stdout
    (plan,) = lake.document("plan", "flights", code=5)["items"]
    assert (plan["type"], plan["state"], plan["filesBefore"]) == ("Clustering", "to approve", 20)
    name, digest = plan["service"], plan["digest"]
    assert f"kubectl hudi approve {name} --plan {digest} --yes -n living" in first.stderr
    again = lake.document("plan", "flights", "Clustering", code=5)["items"]
    assert [each["service"] for each in again] == [name], "a plan waits, and another one is made"
    why = lake.hudi("why", "flights")
    assert why.stdout.startswith("flights: something waits\n")
    assert (why.returncode, f"→ kubectl hudi approve {name} -n living" in why.stdout) == (3, True)
    assert lake.document("status")["items"][0]["plansWaiting"] == [name]
    shown = lake.hudi("approve", "flights")
    assert (shown.returncode, digest in shown.stdout) == (5, True)
    other = lake.hudi("approve", name, "--plan", "0" * 16, "--yes")
    assert (other.returncode, f"that is {digest}" in other.stderr) == (4, True)
    ran = lake.hudi("approve", name, "--plan", digest, "--yes", "--wait")
    assert ran.returncode == 0, ran.stderr
    assert lake.document("plan", "flights")["items"][0]["state"] == "done"
    assert lake.hudi("approve", "flights", "--yes").returncode == 1
    eventually(lambda: lake.document("status")["items"][0]["files"] == 10, "the files are not fewer")


def test_a_service_runs_once_and_is_followed(lake: Shell) -> None:
    done = lake.hudi("run", "flights", "Savepoint", "--wait")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Phase +Succeeded$", done.stdout, re.MULTILINE)
    assert "Savepoint is started" in done.stderr or "runs as" in done.stderr
    name = lake.document("run", "flights", "Cleaning", "--wait")["service"]
    made = lake.server.get("tsvc", name, "-n", "living")
    assert made["metadata"]["ownerReferences"][0]["name"] == "flights"
    assert made["metadata"]["labels"] == {"app.kubernetes.io/created-by": "kubectl-hudi"}


def test_a_service_that_fails_ends_with_its_reason(lake: Shell) -> None:
    done = lake.hudi("run", "flights", "Rollback", "--instant", "20200101000000000", "--yes", "--wait")
    assert done.returncode == 1
    assert "error: InvalidRequest: " in done.stderr
    assert lake.hudi("why", "flights").stdout.startswith("flights: nothing blocks it, but a service failed\n")
    assert "kubectl hudi logs flights-rollback-" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "flights", "Rollback", "--instant", "20200101000000000"], "Rollback takes rows away: give --yes"),
        (["run", "flights", "Restore", "--yes"], "Restore needs --instant"),
        (["run", "flights", "Resize"], "a Resize runs by a plan that was approved"),
        (["run", "flights", "Cleaning", "--days", "3"], "PartitionTTL needs --days, and nothing else takes it"),
        (["plan", "flights", "Compacting"], "invalid choice: 'Compacting'"),
        (["status", "-w", "-o", "json"], "leave one out"),
        (["status", "flights", "-A"], "a NAME is of one namespace"),
    ],
)
def test_what_cannot_be_asked_is_told_before_anything_is_made(lake: Shell, arguments: list[str], said: str) -> None:
    before = len(lake.server.get("tsvc", "-n", "living")["items"])
    done = lake.hudi(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert said in done.stderr
    assert len(lake.server.get("tsvc", "-n", "living")["items"]) == before


def test_a_report_tells_everything_and_no_secret(lake: Shell) -> None:
    text = lake.good("report", "flights")
    heads = [line for line in text.splitlines() if line.isupper() and line.isalpha()]
    assert heads == ["WHY", "CONDITIONS", "TIMELINE", "RUNS", "INGEST", "UPKEEP", "SERVICES", "EVENTS", "SPEC"]
    assert "spark.hadoop.fs.s3a.secret.key: '***'" in text
    page = lake.document("report", "flights")
    assert page["cluster"]["version"].startswith("v1.")
    assert page["cluster"]["leader"]
    assert {each["reason"] for each in page["events"]} >= {"Started", "Succeeded"}
    assert page["spec"]["recordKey"] == ["id"]
    assert CANARY not in text + json.dumps(page) + lake.good("report", "flights", "-o", "yaml")


def test_the_log_of_a_pod_that_is_gone_is_what_the_status_keeps(lake: Shell) -> None:
    run = lake.server.get("ht", "flights", "-n", "living")["status"]["runs"][-1]["name"]
    lake.server.kubectl("delete", "job", run, "-n", "living", "--wait=true", "--cascade=foreground")
    done = lake.hudi("logs", "flights", "--run", run)
    assert (done.returncode, done.stdout) == (1, "")
    assert "its pod is gone, and its log with it; the status keeps: Succeeded: " in done.stderr
    assert "there is no attempt 'x' of flights; there are flights-" in lake.hudi("logs", "flights", "--run", "x").stderr


def test_the_log_of_a_pod_is_printed(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    lands(tmp_path / "landing", 1)
    source = {"type": "Files", "path": f"file://{tmp_path / 'landing'}/", "format": "parquet"}
    made(server, shell.namespace, location=f"file://{tmp_path / 'lake'}", ingest=[ingest(source=source)])
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


def test_a_status_that_is_watched_prints_a_line_for_each_change(lake: Shell) -> None:
    environment = {
        **os.environ, "PATH": lake.path, "KUBECONFIG": str(lake.server.kubeconfig),
        "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("operator", "spark_app")),
    }  # fmt: skip
    command = ["kubectl", "hudi", "status", "-w", "-n", "living"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        lake.server.kubectl("patch", "ht", "flights", "-n", "living", "--type=merge", "-p", '{"spec":{"suspend":true}}')
        while "Suspended" not in lines[-1]:
            lines.append(process.stdout.readline())
        process.terminate()
    lake.server.kubectl("patch", "ht", "flights", "-n", "living", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    assert [line.split()[0] for line in lines[:2]] == ["TABLE", "flights"]
    assert all(line.startswith("flights ") for line in lines[1:])


def made(server: ApiServer, namespace: str, **changes: Any) -> None:
    body = manifest("flights", **spec(**changes))
    body["metadata"]["namespace"] = namespace
    server.apply(body)


def test_why_of_a_table_that_nobody_looks_at(server: ApiServer, shell: Shell) -> None:
    made(server, shell.namespace, suspend=True)
    text = shell.good("why", "flights", code=3)
    assert text.startswith("flights: something blocks it\n")
    assert "blocks  it is suspended\n" in text
    patch = """→ kubectl patch ht flights -n """ + shell.namespace
    assert patch in text


def test_why_of_a_secret_that_is_missing_says_how_to_make_it(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    made(server, shell.namespace, location="s3://lake/flights", storage={"credentialsSecretRef": {"name": "s3"}})
    with operator_process(server, shell.namespace, tmp_path / "log"):
        eventually(lambda: "Stalled" in shell.hudi("status").stdout, "it is not stalled", START_SECONDS)
    text = shell.good("why", "flights", code=3)
    assert f"there is no Secret 's3' in namespace {shell.namespace}; create it" in text
    assert f"→ kubectl create secret generic s3 -n {shell.namespace} --from-literal=AWS_ACCESS_KEY_ID=…" in text
    assert shell.document("status", "flights")["items"][0]["reason"] == "InvalidSpec"


def test_why_of_an_attempt_that_may_not_be_started(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    lands(tmp_path / "landing", 1)
    quota = {"hard": {"count/jobs.batch": "0"}}
    server.apply({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": shell.namespace}, "spec": quota,
    })  # fmt: skip
    eventually(lambda: server.get("resourcequota", "none", "-n", shell.namespace).get("status"), "no quota")
    source = {"type": "Files", "path": f"file://{tmp_path / 'landing'}/", "format": "parquet"}
    made(server, shell.namespace, location=f"file://{tmp_path / 'lake'}", ingest=[ingest(source=source)])
    with operator_process(server, shell.namespace, tmp_path / "log"):
        eventually(
            lambda: "an attempt cannot be started" in shell.hudi("why", "flights").stdout,
            "it is not told",
            START_SECONDS,
        )
    assert "exceeded quota: none" in shell.good("why", "flights", code=3)


def test_why_of_a_pod_that_cannot_start(server: ApiServer, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    lands(tmp_path / "landing", 1)
    source = {"type": "Files", "path": f"file://{tmp_path / 'landing'}/", "format": "parquet"}
    made(server, shell.namespace, location=f"file://{tmp_path / 'lake'}", ingest=[ingest(source=source)])
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


def test_a_table_that_is_not_there_is_told_with_what_is(server: ApiServer, shell: Shell) -> None:
    made(server, shell.namespace)
    for verb in (["why"], ["timeline"], ["report"], ["logs"], ["plan"], ["approve"], ["status"]):
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
