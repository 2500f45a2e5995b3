"""What the charts' pods would run, as processes of this machine: the operator with its account's
token, and jobs with what their pods say."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_operator.manifests.pods import JOB_SPEC
from tests.support import kubelet
from tests.support.api_server import ROOT, ApiServer

EXIT_SECONDS_MAX = 10.0
PATHS = os.pathsep.join(str(ROOT / name) for name in ("operator", "spark_app"))


def user(deployment: Mapping[str, Any]) -> str:
    """The name under which the API server knows a Deployment's pods."""
    return f"system:serviceaccount:{deployment['metadata']['namespace']}:{_pod(deployment)['serviceAccountName']}"


def arguments(deployment: Mapping[str, Any]) -> list[str]:
    """The operator's arguments, with the variables that Kubernetes would fill in."""
    container = _pod(deployment)["containers"][0]
    found = [str(each) for each in container["args"]]
    for variable in container["env"]:
        value = variable.get("value", deployment["metadata"]["namespace"])
        found = [each.replace(f"$({variable['name']})", value) for each in found]
    assert not any("$(" in each for each in found), found
    return found


@dataclass(frozen=True)
class Running:
    """The operator's process."""

    process: subprocess.Popen[bytes]
    log: Path

    def command_line(self) -> str:
        """Its arguments as anybody on the machine sees them."""
        return Path(f"/proc/{self.process.pid}/cmdline").read_text().replace("\0", " ")

    def metrics(self) -> str:
        """What it tells Prometheus."""
        found = re.search(r"metrics on port (\d+)", self.log.read_text())
        assert found, "it does not say where its metrics are"
        with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/metrics", timeout=10) as answer:
            return str(answer.read().decode())


@contextmanager
def operator(server: ApiServer, deployment: Mapping[str, Any], folder: Path) -> Iterator[Running]:
    """The operator's process under the account of its Deployment. It ends in time when it is asked
    to."""
    namespace, account = deployment["metadata"]["namespace"], _pod(deployment)["serviceAccountName"]
    folder.mkdir(parents=True, exist_ok=True)
    kubeconfig, log = folder / "kubeconfig", folder / "operator.log"
    server.write_kubeconfig(kubeconfig, server.account_token(namespace, account))
    here = ["--kubeconfig", str(kubeconfig), "--probe-host=127.0.0.1", "--probe-port=0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "hudi_operator", *arguments(deployment), *here], stdout=output,
            stderr=subprocess.STDOUT, env={**environment, "PYTHONPATH": _python_path(), "KUBECONFIG": str(kubeconfig)},
        )  # fmt: skip
    try:
        yield Running(process, log)
        assert process.poll() is None, log.read_text()
        process.terminate()
        assert process.wait(EXIT_SECONDS_MAX) == 0, log.read_text()
    except BaseException:
        print(log.read_text())  # pytest shows it beside what went wrong
        raise
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def run_pod(server: ApiServer, pod: dict[str, Any], folder: Path) -> str:
    """Run the job of a pod with the environment that the pod refers to, and report its end. What it
    has printed."""
    folder.mkdir(parents=True, exist_ok=True)
    spec, message = folder / "job-spec.json", folder / "termination-log"
    spec.write_text(pod["metadata"]["annotations"][JOB_SPEC])
    message.write_text("")
    ended = subprocess.run(
        [sys.executable, "-m", "hudi_spark.jobs", str(spec), str(message)], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": _python_path(), **_environment(server, pod)},
    )  # fmt: skip
    said = message.read_text()
    kubelet.end(server, pod, ended.returncode, said, "Error" if ended.returncode else "Completed")
    return f"{ended.stdout}{ended.stderr}{said}"


def _environment(server: ApiServer, pod: Mapping[str, Any]) -> dict[str, str]:
    namespace, found = pod["metadata"]["namespace"], {}
    for variable in pod["spec"]["containers"][0].get("env", ()):
        ref = variable.get("valueFrom", {}).get("secretKeyRef")
        if ref is None:
            continue
        value = server.get("secret", ref["name"], "-n", namespace).get("data", {}).get(ref["key"])
        assert value is not None or ref.get("optional"), f"there is no {ref}"
        if value is not None:
            found[variable["name"]] = base64.b64decode(value).decode()
    return found


def _python_path() -> str:
    return os.pathsep.join(filter(None, (PATHS, os.environ.get("PYTHONPATH"))))


def _pod(deployment: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = deployment["spec"]["template"]["spec"]
    return found
