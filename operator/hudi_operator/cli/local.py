"""applies manifests on this machine: the operator's reconcile loop with no cluster

`hudictl local FILE…` reconciles until nothing is left to do and prints the resources as `kubectl
get` would.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_operator.runtime.local.printing import render, value_at
from hudi_table.cli.output import shown
from hudi_table.errors import HudiError
from hudi_table.table.store.clock import SystemClock

STATE = ".hudi-local"
GOOD, FAILED, USAGE = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    """Run the verb: resources to stdout, everything else to stderr. Returns 0 if all are ready,
    else 1 (usage: 2)."""
    try:
        parsed = _parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    clock = SystemClock()
    start = clock.boot_seconds()

    def say(line: str) -> None:
        sys.stderr.write(f"[{clock.boot_seconds() - start:6.1f}s] {shown(line)}\n")
        sys.stderr.flush()

    runtime = LocalRuntime(parsed.files, parsed.state, clock, say, watch=parsed.watch)
    try:
        documents = runtime.run()
    except HudiError as error:
        sys.stderr.write(f"error: {error.name()}: {shown(str(error))}\nhudictl explain {error.name()} says more\n")
        return FAILED
    sys.stdout.write(render(parsed.output, documents, clock.now()) + "\n")
    return _verdict(documents)


def _verdict(documents: Sequence[Mapping[str, Any]]) -> int:
    code = GOOD
    for document in documents:
        ready = value_at(document, '.status.conditions[?(@.type=="Ready")]') or {}
        if ready.get("status") != "True":
            name = document["metadata"]["name"]
            sys.stderr.write(f"{document['kind']} {name} is not ready: {ready.get('reason')}: {ready.get('message')}\n")
            code = FAILED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hudictl local",
        description="Reconciles the resources of manifests on this machine until nothing is left to do, and prints them.",
        epilog="Exit codes: 0 every resource is ready, 1 some is not, 2 usage. Stop with Ctrl-C; running again goes on.",
        allow_abbrev=False,
    )
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="manifest, or a folder of them")
    parser.add_argument("--state", type=Path, default=Path(STATE), help=f"folder of the state ({STATE})")
    parser.add_argument(
        "--watch", action="store_true", help="go on when everything is done: new files are taken as they come"
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "wide", "json", "yaml"), default="table", help="form of the resources"
    )
    return parser
