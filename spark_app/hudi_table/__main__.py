"""`python -m hudi_table` is `hudictl`, in a process of its own."""

from __future__ import annotations

import sys

from hudi_table.cli.program import NOUNS, VERBS, main
from hudi_table.cli.without_pandas import leave_pandas_out


def run() -> int:
    """What the script `hudictl` calls. A verb that another package adds may do with the process
    what it likes."""
    if sys.argv[1:] and (sys.argv[1] in VERBS or sys.argv[1] in NOUNS):
        leave_pandas_out()
    return main()


if __name__ == "__main__":
    sys.exit(run())
