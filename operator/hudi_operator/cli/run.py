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

from kubernetes.client import ApiClient

from hudi_operator import handlers
from hudi_operator.kube.access import configuration
from hudi_operator.kube.lease import Election
from hudi_operator.kube.rest import Rest
from hudi_operator.kube.served import Served
from hudi_operator.launchers.cluster import NAMES, ClusterLauncher
from hudi_operator.manifests.pods import PodSettings
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.operator import Operator
from hudi_operator.runtime.queue import WorkQueue
from hudi_operator.runtime.reconcile import Reconciler
from hudi_table.table.clock import SystemClock

LEASE = "hudi-operator"
STOP_SECONDS = 8.0
GOOD, LOST, USAGE = 0, 1, 2
_log = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Run until a signal asks to stop, or the lead or the watch is lost. Ends the process with 0, or 1 if one was lost (usage: 2)."""
    try:
        parsed = _parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    clock = SystemClock()
    rest = Rest(ApiClient(configuration(parsed.kubeconfig)))
    identity = f"{socket.gethostname()}-{os.getpid()}"
    cluster = ApiCluster(rest, clock, identity)
    launcher = ClusterLauncher(rest, _settings(parsed), Served(rest, clock), tuple(parsed.launcher) or NAMES)
    queue = WorkQueue(clock.boot_seconds)
    operator = Operator(cluster, Reconciler(cluster, launcher, clock), queue, parsed.workers)
    queue.group = operator.group
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    election = Election(rest, clock, parsed.lease_namespace, LEASE, identity)
    if not _elected(election, stopping):
        return GOOD
    lost = threading.Event()
    operator.start()
    # In threads that may be left behind: whatever hangs in them, the process ends in time.
    for name, work in (
        ("lease", lambda: _keep(election, stopping, lost)),
        ("watch", lambda: handlers.watch(operator, launcher.watchable, parsed.namespace, stopping, parsed.kubeconfig)),
    ):
        threading.Thread(target=_guarded, args=(work, stopping, lost), name=name, daemon=True).start()
    stopping.wait()
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


def _elected(election: Election, stopping: threading.Event) -> bool:
    """Wait for the lead; False if a signal came before."""
    while not stopping.is_set():
        if election.attempt():
            _log.info("%s leads", election.identity)
            return True
        stopping.wait(election.pause_seconds)
    return False


def _keep(election: Election, stopping: threading.Event, lost: threading.Event) -> None:
    """Renew the lead. Once it is lost, what hangs in a call must not go on when another one leads."""
    while not stopping.wait(election.pause_seconds):
        if not election.attempt():
            _log.error("the lead is lost")
            lost.set()
            threading.Timer(election.duration / 6, os._exit, (LOST,)).start()
            return


def _settings(parsed: argparse.Namespace) -> PodSettings:
    return PodSettings(
        parsed.image,
        parsed.image_pull_policy,
        tuple(parsed.image_pull_secret),
        parsed.job_service_account,
        parsed.driver_service_account,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hudi_operator run",
        description="Watches HudiTables and TableServices of an API server and runs their jobs.",
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
        "--launcher", action="append", default=[], choices=NAMES,
        help="what may run jobs, if it is served; repeat for more; Job always may; else all"
    )  # fmt: skip
    parser.add_argument(
        "--namespace", action="append", default=[], metavar="NAME", help="watch this one; repeat for more; else all"
    )
    parser.add_argument("--lease-namespace", default="default", metavar="NAME", help="where the Lease of the lead lies")
    parser.add_argument("--workers", type=int, default=4, help="tables that are looked at at once (4)")
    parser.add_argument("--kubeconfig", default=os.environ.get("KUBECONFIG"), help="file; else the pod's own account")
    return parser
