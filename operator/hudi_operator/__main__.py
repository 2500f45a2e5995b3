"""`python -m hudi_operator local FILE…`: the operator's verbs without `hudictl`."""

from __future__ import annotations

import sys

from hudi_operator.cli import local

VERBS = {"local": local.main}
INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Run a verb and return its exit code."""
    if not arguments or arguments[0] not in VERBS:
        sys.stderr.write(f"usage: python -m hudi_operator {{{','.join(VERBS)}}} …\n")
        return 2
    try:
        return VERBS[arguments[0]](arguments[1:])
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
