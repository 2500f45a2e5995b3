"""`kubectl hudi` as the real kubectl finds it, against a real API server with a real operator. The
test plays the kubelet.

What each verb prints of given documents is in tests/hudi_operator/cli; here it is what the verbs
do, and what they meet.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.api_server import ApiServer
from tests.support.kubelet import eventually
from tests.support.living import pods_run
from tests.support.manifests import ingest, manifest, spec
from tests.support.operator_process import operator as operator_process
from tests.support.shell import ROOT, Shell, lands

START_SECONDS = 120.0
"""An operator starts, leads, and a job of its runs to its end; on a busy machine that takes a
while."""
CANARY = "canary-7f3a91bc"


@pytest.fixture(scope="module")
def lake(server: ApiServer, plugin_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A namespace with an operator, a kubelet, and a table of two commits whose files are many and
    small."""
    folder = tmp_path_factory.mktemp("lake")
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "living"}})
    done = server.kubectl("wait", "--for=create", "--timeout=30s", "serviceaccount/default", "-n", "living")
    assert done.returncode == 0, done.stderr
    shell = Shell(server, "living", plugin_path)
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
        )
        for number in (1, 2):
            lands(folder / "landing", number)
            body = manifest("flights", **document)
            body["metadata"] |= {"namespace": "living", "annotations": {"touched": str(number)}}
            server.apply(body)
            eventually(lambda number=number: has(shell, number), f"batch {number} is not taken", START_SECONDS)  # type: ignore[misc]
        yield shell


def has(shell: Shell, number: int) -> bool:
    status = shell.server.get("ht", "flights", "-n", "living").get("status", {})
    ended = all(run["phase"] != "Running" for run in status.get("runs", ()))
    return bool(ended and (status.get("data") or {}).get("records") == 10 * number)


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
        "TABLE  HEALTH  LAST COMMIT  WAITING  RECORDS  SIZE  DEBT  AT WORK  TO APPROVE\n"
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
    assert "the active timeline has 3 writes" in done.stderr
    stored = lake.document("timeline", "flights", "--storage")["items"]
    assert [each["inserted"] for each in stored if each["action"] == "commit"] == [10, 10, 0]
    told = {each["instant"] for each in lake.document("timeline", "flights")["items"]}
    assert {each["instant"] for each in stored if each["inserted"]} <= told


def test_a_table_that_nobody_has_reconciled_has_no_instants(server: ApiServer, plugin_path: str) -> None:
    body = manifest("waiting", **spec(location="file:///nowhere/waiting"))
    body["metadata"] |= {"namespace": "nobody"}
    server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nobody"}}, body)
    done = Shell(server, "nobody", plugin_path).hudi("timeline", "waiting")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no instant to show" in done.stderr
    assert "the active timeline has 0 writes: --storage reads all of it at file:///nowhere/waiting" in done.stderr


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
    assert re.search(r"^flights-savepoint-\w+: Succeeded: savepoint \d{17}", done.stderr, re.MULTILINE)
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
        (["run", "flights", "Resize"], "type Resize runs by a plan that was approved"),
        (["run", "flights", "Upgrade", "--to", "9"], "kubectl hudi plan flights Upgrade -n living --to 9"),
        (["plan", "flights", "Upgrade"], "Upgrade needs --to, and nothing else takes it"),
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


def test_a_report_tells_everything(lake: Shell) -> None:
    text = lake.good("report", "flights")
    heads = [line for line in text.splitlines() if line.isupper() and line.isalpha()]
    assert heads == ["WHY", "CONDITIONS", "TIMELINE", "RUNS", "INGEST", "UPKEEP", "SERVICES", "EVENTS", "SPEC"]
    page = lake.document("report", "flights")
    assert page["cluster"]["version"].startswith("v1.")
    assert page["cluster"]["leader"]
    assert {each["reason"] for each in page["events"]} >= {"Started", "Succeeded"}
    assert page["spec"]["recordKey"] == ["id"]


def test_a_report_of_a_table_that_is_refused_for_a_secret_in_it_does_not_repeat_it(lake: Shell) -> None:
    body = manifest("leaks", **spec(spark={"conf": {"spark.hadoop.fs.s3a.secret.key": CANARY}}))
    body["metadata"]["namespace"] = "living"
    lake.server.apply(body)
    try:
        eventually(lambda: "Stalled" in lake.hudi("status", "leaks").stdout, "it is not refused", START_SECONDS)
        text, page = lake.good("report", "leaks"), lake.document("report", "leaks")
    finally:
        lake.server.kubectl("delete", "ht", "leaks", "-n", "living")
    assert "spark.hadoop.fs.s3a.secret.key: '***'" in text
    assert CANARY not in text + json.dumps(page)


def test_the_log_of_a_pod_that_is_gone_is_what_the_status_keeps(lake: Shell) -> None:
    run = lake.server.get("ht", "flights", "-n", "living")["status"]["runs"][-1]["name"]
    lake.server.kubectl("delete", "job", run, "-n", "living", "--wait=true", "--cascade=foreground")
    done = lake.hudi("logs", "flights", "--run", run)
    assert (done.returncode, done.stdout) == (1, "")
    assert "its pod is gone, and its log with it; the status keeps: Succeeded: " in done.stderr
    assert "there is no attempt 'x' of flights; there are flights-" in lake.hudi("logs", "flights", "--run", "x").stderr


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
