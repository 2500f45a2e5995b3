"""`python -m hudi_operator run`: the operator's process; `local FILE…`: the same loop with no
cluster."""

from __future__ import annotations

import sys
from importlib import import_module

VERBS = ("local", "run")
INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Run a verb and return its exit code."""
    if not arguments or arguments[0] not in VERBS:
        sys.stderr.write(f"usage: python -m hudi_operator {{{','.join(VERBS)}}} …\n")
        return 2
    # One at a time: the local runtime needs neither kopf nor a client of Kubernetes.
    verb = import_module(f"hudi_operator.cli.{arguments[0]}")
    try:
        return int(verb.main(arguments[1:]))
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
