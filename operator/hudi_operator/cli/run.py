"""the operator's process: watches an API server and reconciles, if it leads

`python -m hudi_operator run --image IMAGE` works with the pod's own account, or with a kubeconfig.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from kubernetes.client import ApiClient
from prometheus_client import CollectorRegistry

from hudi_operator import handlers
from hudi_operator.api.fields.pods import PodPolicies
from hudi_operator.cli.logs import log_to_stderr
from hudi_operator.kube.access import configuration
from hudi_operator.kube.lease import Election
from hudi_operator.kube.rest import Rest
from hudi_operator.kube.served import Served
from hudi_operator.launchers.cluster import NAMES, ClusterLauncher
from hudi_operator.manifests.pods import PodSettings
from hudi_operator.manifests.policies import read_policies
from hudi_operator.metrics.counters import Counters, new_registry, request_counter
from hudi_operator.metrics.health import Health
from hudi_operator.metrics.process import ProcessGauges
from hudi_operator.metrics.resources import ResourceGauges
from hudi_operator.metrics.server import ProbeServer
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.callbacks.pool import CourierPool
from hudi_operator.runtime.operator import Operator
from hudi_operator.runtime.queue import SHARE, WorkQueue
from hudi_operator.runtime.reconcile import Reconciler
from hudi_operator.runtime.sets.reconciler import SetReconciler
from hudi_operator.runtime.turns import unlimited
from hudi_operator.runtime.watch_check import Hearing
from hudi_table.callbacks.receivers import Allowed
from hudi_table.errors import HudiError
from hudi_table.table.store.clock import SystemClock

STOP_SECONDS = 8.0
GOOD, LOST, USAGE = 0, 1, 2
_log = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Run until a signal asks to stop, or until this process loses the Lease or its watch. It ends
    with 0, with 1 if it lost one (usage: 2)."""
    try:
        parsed = _parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    log_to_stderr()
    # It tells of every event that it was heard, which says nothing and takes time; what ends a watch we say ourselves.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    for name in ("orchestration", "running"):
        logging.getLogger(f"kopf._core.reactor.{name}").setLevel(logging.CRITICAL)
    policies, allowed = _policies(parsed.job_pods), _allowed(parsed.callback_host)
    if policies is None or allowed is None:
        return USAGE
    clock = SystemClock()
    registry = new_registry()
    rest = Rest(ApiClient(configuration(parsed.kubeconfig)), request_counter(registry))
    identity = parsed.identity or f"{socket.gethostname()}-{os.getpid()}"
    cluster = ApiCluster(rest, clock, identity)
    launcher = ClusterLauncher(rest, _settings(parsed, policies), Served(rest, clock), tuple(parsed.launcher) or NAMES)
    queue = WorkQueue(clock.boot_seconds, share=max(SHARE, parsed.workers))
    meter = Counters(registry, cluster)
    couriers = CourierPool(cluster, clock, allowed, queue.add)
    sets = SetReconciler(cluster, clock, queue.add)
    reconciler = Reconciler(cluster, launcher, clock, meter=meter, policies=policies, couriers=couriers, sets=sets)
    stopping = threading.Event()
    operator = Operator(cluster, reconciler, queue, parsed.workers, meter=meter, ending=stopping)
    queue.group = operator.group
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    watches = handlers.Watches(operator, rest, launcher.watchable, parsed.namespace, parsed.kubeconfig)
    health = Health(
        operator=operator,
        election=Election(rest, clock, parsed.lease_namespace, parsed.lease_name, identity),
        hearing=Hearing(rest, operator, clock, parsed.namespace, (launcher,), watches),
        clock=clock,
    )
    if not _answers(parsed.probe_host, parsed.probe_port, health, registry):
        return LOST
    election = health.election
    if not _elected(health, stopping):
        return GOOD
    lost = threading.Event()
    health.leading = True

    def beside(name: str, work: Callable[[], None]) -> None:
        """In a thread that may be left behind: whatever hangs in it, the process ends in time."""
        threading.Thread(target=_guarded, args=(work, stopping, lost), name=name, daemon=True).start()

    beside("lease", lambda: _keep(election, stopping, lost))
    # Before the watch begins, which would bring the same, one event each, at several times the price.
    _load(health, parsed.namespace)
    beside("watch", lambda: watches.run(stopping))
    beside("hearing", lambda: health.hearing.keep(stopping))
    _know_owners(launcher, parsed.namespace)
    operator.start()
    stopping.wait()
    couriers.stop()
    if operator.stop(STOP_SECONDS) and not lost.is_set():
        election.release()
    logging.shutdown()
    os._exit(LOST if lost.is_set() else GOOD)


def _guarded(work: Callable[[], None], stopping: threading.Event, lost: threading.Event) -> None:
    """Without its watch or its lead the process is of no use: it ends, to be started anew."""
    try:
        work()
    finally:
        if not stopping.is_set():
            lost.set()
            stopping.set()


def _answers(host: str, port: int, health: Health, registry: CollectorRegistry) -> bool:
    """Begin to answer probes before this process is the leader: a probe must see whether it waits
    for the Lease or hangs."""
    resources = ResourceGauges(health.operator.cluster, health.clock)
    registry.register(resources)
    registry.register(ProcessGauges(health, resources))
    try:
        server = ProbeServer(host, port, health, registry)
    except OSError as error:
        _log.error("port %d cannot be had: %s; give another one by --probe-port, or 0 for any", port, error.strerror)
        return False
    server.start()
    _log.info("probes and metrics on port %d", server.server_address[1])
    return True


def _load(health: Health, namespaces: Sequence[str]) -> None:
    """List what is there. Where that fails, the watch brings it, or the namespace is missing."""
    refused = health.operator.load(namespaces)
    for namespace, error in refused.items():
        _log.warning("the resources of %s cannot be listed: %s", namespace or "all namespaces", error)
    health.hearing.listed = not refused


def _know_owners(launcher: ClusterLauncher, namespaces: Sequence[str]) -> None:
    """Find out who has attempts, once. Without that everyone's are asked for at every reconcile,
    which costs time and nothing else."""
    try:
        launcher.know_owners(namespaces)
    except HudiError as error:
        _log.warning("who has attempts cannot be listed: %s", error)


def _elected(health: Health, stopping: threading.Event) -> bool:
    """Wait until this process is the leader; False if a signal came before."""
    election = health.election
    while not stopping.is_set():
        if not health.hearing.permitted:
            health.hearing.ask()
        if election.attempt():
            _log.info("%s leads", election.identity)
            return True
        stopping.wait(election.pause_seconds)
    return False


def _keep(election: Election, stopping: threading.Event, lost: threading.Event) -> None:
    """Renew the Lease. Once it is lost, a call that hangs must not go on while another process is
    the leader."""
    while not stopping.wait(election.pause_seconds):
        if not election.attempt():
            _log.error("the Lease is lost: another process may be the leader")
            lost.set()
            threading.Timer(election.duration / 6, os._exit, (LOST,)).start()
            return


def _settings(parsed: argparse.Namespace, policies: PodPolicies) -> PodSettings:
    return PodSettings(
        parsed.image,
        parsed.image_pull_policy,
        tuple(parsed.image_pull_secret),
        parsed.job_service_account,
        parsed.driver_service_account,
        policies=policies,
    )


def _policies(path: str) -> PodPolicies | None:
    """What the file says of the jobs' pods; None, and a line about it, if it cannot be used."""
    try:
        return read_policies(Path(path).read_text(encoding="utf-8")) if path else unlimited()
    except (OSError, HudiError) as error:
        _log.error("--job-pods %s: %s", path, error)
        return None


def _allowed(hosts: Sequence[str]) -> Allowed | None:
    """The hosts that callbacks may name; None, and a line about it, if one is none."""
    try:
        return Allowed.of(hosts)
    except HudiError as error:
        _log.error("--callback-host: %s", error)
        return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hudi_operator run",
        description="Watches HudiTables, HudiTableSets and TableServices of an API server and runs their jobs.",
        allow_abbrev=False,
    )
    parser.add_argument("--image", required=True, help="image of the jobs, by digest")
    parser.add_argument("--image-pull-policy", default="IfNotPresent", choices=("Always", "IfNotPresent", "Never"))
    parser.add_argument("--image-pull-secret", action="append", default=[], metavar="NAME")
    parser.add_argument("--job-service-account", default="default", metavar="NAME", help="account of the jobs' pods")
    parser.add_argument(
        "--driver-service-account",
        default="hudi-driver",
        metavar="NAME",
        help="account of drivers that start executors",
    )
    parser.add_argument(
        "--job-pods",
        default="",
        metavar="FILE",
        help="JSON: settings of the jobs' pods, of all namespaces and of some, and how many attempts may be at work",
    )
    parser.add_argument(
        "--launcher", action="append", default=[], choices=NAMES,
        help="what may run jobs, if it is served; repeat for more; Job always may; else all"
    )  # fmt: skip
    parser.add_argument(
        "--callback-host", action="append", default=[], metavar="HOST",
        help="host, *.host, address or network that callbacks of tables may be sent to; repeat for more; else none"
    )  # fmt: skip
    parser.add_argument(
        "--namespace", action="append", default=[], metavar="NAME", help="watch this one; repeat for more; else all"
    )
    parser.add_argument(
        "--identity",
        default="",
        metavar="NAME",
        help="name of this process in the Lease; a process that replaces a dead one takes the same name and need not wait until the Lease runs "
        "out (default: the host's name and the process's number, in a pod the pod's name and 1)",
    )
    parser.add_argument("--lease-namespace", default="default", metavar="NAME", help="namespace of the Lease")
    parser.add_argument(
        "--lease-name", default="hudi-operator", metavar="NAME", help="its name: of those that share it, one works"
    )
    parser.add_argument("--workers", type=int, default=4, help="tables that are reconciled at once (4)")
    parser.add_argument(
        "--probe-port", type=int, default=8080, metavar="PORT", help="of /healthz, /readyz and /metrics (8080; 0: any)"
    )
    parser.add_argument("--probe-host", default="", metavar="ADDRESS", help="address that they are bound to (all)")
    parser.add_argument("--kubeconfig", default=os.environ.get("KUBECONFIG"), help="file; else the pod's own account")
    return parser
