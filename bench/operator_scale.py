"""The operator beside thousands of resources: how soon after a restart all are observed, and what
it takes while nothing happens.

`make bench-operator` runs etcd and an API server on loopback, and the operator's process as a chart
runs it. Each HudiTable is a real table of its own on local disk, each TableService keeps one of
them on a schedule that is not due. A resource counts as observed when the operator has looked at
it: read its table, listed its attempts and compared its status. It is scraped meanwhile as a
Prometheus does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from prometheus_client.parser import text_string_to_metric_families

from bench.process import ROOT, compiled
from bench.report import machine_facts
from hudi_operator.api.names import API_VERSION
from hudi_table.api import create_table
from tests.support.api_server import ApiServer, api_server, definitions

RESULTS = ROOT / "docs" / "results"
NAMESPACE = "default"
OBSERVED_SECONDS_MAX, MEMORY_BYTES_MAX, CORES_AT_REST_MAX = 30.0, 256 << 20, 0.1
QUIET_SECONDS_MAX = 900.0
CREATE_THREADS = 8
SCRAPE_SECONDS = 15.0
"""How often a Prometheus asks for all metrics."""
RECONCILES, DUE = "hudi_operator_reconcile_seconds", "hudi_operator_queue_depth"


@dataclass(frozen=True)
class Figures:
    """What was measured: seconds, bytes, processor seconds per second."""

    tables: int
    services: int
    first_seconds: float
    observed_seconds: float
    observed_cpu_seconds: float
    memory_bytes: int
    cores_at_rest: float
    rest_seconds: float


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder = Path(scratch)
        template = folder / "template"
        rows = pa.table({"id": ["a", "b"], "ts": pa.array([1, 2], pa.int64())})
        create_table(template, rows.schema, record_key="id", ordering_fields="ts", version=6).write(rows)
        with api_server(folder / "k8s") as server:
            server.apply(*definitions())
            assert (
                server.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "--all").returncode == 0
            )
            _say(f"making {options.count} HudiTables and as many TableServices")
            with ThreadPoolExecutor(CREATE_THREADS) as pool:
                list(pool.map(lambda n: _create(server, folder, template, n), range(options.count)))
            figures = _measured(server, folder, options.count, options.rest)
    _report(figures)


def _measured(server: ApiServer, folder: Path, count: int, rest_seconds: float) -> Figures:
    with _operator(server, folder / "first.log") as (port, _):
        first = _all_observed(port, 2 * count, time.monotonic())
        _say(f"first start: all observed, and their statuses written, after {first:.1f} s")
    began = time.monotonic()
    with _operator(server, folder / "second.log") as (port, process):
        observed = _all_observed(port, 2 * count, began)
        spent, since = _cpu_seconds(process.pid), time.monotonic()
        _say(
            f"restart: all observed after {observed:.1f} s, {spent:.1f} of the processor; at rest for {rest_seconds:.0f} s"
        )
        time.sleep(rest_seconds)
        cores = (_cpu_seconds(process.pid) - spent) / (time.monotonic() - since)
        return Figures(count, count, first, observed, spent, _memory_bytes(process.pid), cores, rest_seconds)


def _create(server: ApiServer, folder: Path, template: Path, number: int) -> None:
    """A table as a hard-linked copy of one that was written, its HudiTable, and a TableService."""
    name = f"t{number}"
    shutil.copytree(template, folder / "lake" / name, copy_function=os.link)
    table = {
        "location": f"file://{folder / 'lake' / name}",
        "recordKey": ["id"],
        "orderingFields": ["ts"],
    }
    service = {"tableRef": {"name": name}, "type": "Cleaning", "schedule": "0 3 1 1 *"}
    for kind, plural, spec in (("HudiTable", "huditables", table), ("TableService", "tableservices", service)):
        body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        status, said = server.call("POST", f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/{plural}", body)
        if status != 201:
            raise SystemExit(f"{kind} {name} was refused: {said}")


@contextmanager
def _operator(server: ApiServer, log: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The operator's process, and the port of its probes; ended as Kubernetes ends it."""
    pods = log.with_suffix(".json")
    pods.write_text(json.dumps({"pods": {"volumes": [{"claim": "lake", "path": str(log.parent)}]}}))
    command = [sys.executable, "-m", "hudi_operator", "run", "--image", "registry.example/none", "--namespace", NAMESPACE,
               "--kubeconfig", str(server.kubeconfig), "--probe-host", "127.0.0.1", "--probe-port", "0",
               "--job-pods", str(pods)]  # fmt: skip
    paths = os.pathsep.join(str(ROOT / name) for name in ("operator", "spark_app"))
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**compiled(), "PYTHONPATH": paths}
        )
    ended = threading.Event()
    try:
        port = _port(log, process)
        threading.Thread(target=_scrapes, args=(port, ended), daemon=True).start()
        yield port, process
    finally:
        ended.set()
        process.terminate()
        process.wait()


def _scrapes(port: int, ended: threading.Event) -> None:
    while not ended.wait(SCRAPE_SECONDS):
        with suppress(OSError):
            _metrics(port)


def _port(log: Path, process: subprocess.Popen[bytes]) -> int:
    while process.poll() is None:
        for line in log.read_text().splitlines():
            if "probes and metrics on port" in line:
                return int(line.rpartition(" ")[2])
        time.sleep(0.05)
    raise SystemExit(f"the operator ended:\n{log.read_text()}")


def _all_observed(port: int, count: int, since: float) -> float:
    """Seconds until every resource has been reconciled and none is due."""
    while time.monotonic() - since < QUIET_SECONDS_MAX:
        reconciles, due = _reconciles(port)
        if reconciles >= count and not due:
            return time.monotonic() - since
        time.sleep(0.25)
    raise SystemExit(f"not at rest after {QUIET_SECONDS_MAX:.0f} s: {reconciles:.0f} reconciles, {due:.0f} due")


def _reconciles(port: int) -> tuple[float, float]:
    """Asked for by name: all metrics of so many resources take longer than what is measured."""
    found = _metrics(port, f"{RECONCILES}_count", DUE)
    families = {family.name: family.samples for family in text_string_to_metric_families(found)}
    return sum(sample.value for sample in families.get(RECONCILES, ())), families[DUE][0].value


def _metrics(port: int, *names: str) -> str:
    query = urllib.parse.urlencode([("name[]", name) for name in names])
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics?{query}", timeout=30) as answer:
        return str(answer.read().decode())


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_bytes(pid: int) -> int:
    """The most that it has ever held."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def _report(figures: Figures) -> None:
    lines = [
        "# The operator beside thousands of resources",
        "",
        f"Written by `make bench-operator`: {figures.tables:,} HudiTables and {figures.services:,} TableServices.",
        "",
        "| figure | aimed at | measured | |",
        "|---|---|---|---|",
    ]
    for name, aim, text, good in (
        ("restart until all are observed", f"≤ {OBSERVED_SECONDS_MAX:.0f} s", f"{figures.observed_seconds:.1f} s",
         figures.observed_seconds <= OBSERVED_SECONDS_MAX),
        ("memory, at the most", f"≤ {MEMORY_BYTES_MAX >> 20} MiB", f"{figures.memory_bytes >> 20} MiB",
         figures.memory_bytes <= MEMORY_BYTES_MAX),
        (f"processor at rest, over {figures.rest_seconds:.0f} s", f"≤ {CORES_AT_REST_MAX} cores", f"{figures.cores_at_rest:.3f} cores",
         figures.cores_at_rest <= CORES_AT_REST_MAX),
    ):  # fmt: skip
        lines.append(f"| {name} | {aim} | {text} | {'met' if good else 'missed'} |")
    summary = (
        f"The restart took {figures.observed_cpu_seconds:.1f} s of a processor. "
        f"The first start, which also writes every status, took {figures.first_seconds:.1f} s. "
        f"All metrics were asked for every {SCRAPE_SECONDS:.0f} s."
    )
    lines += ["", summary, ""]
    text = "\n".join(lines)
    (RESULTS / "bench-operator.md").write_text(text)
    record = {"machine": machine_facts(), **asdict(figures)}
    (RESULTS / "bench-operator.json").write_text(json.dumps(record, indent=2) + "\n")
    print(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.operator_scale", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000, help="HudiTables, and as many TableServices (2000)")
    parser.add_argument("--rest", type=float, default=120.0, help="seconds of rest that are measured (120)")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
