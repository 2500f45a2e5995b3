"""Exit codes of the command line, and which error gives which."""

from __future__ import annotations

from hudi_table.errors import CommitStateUnknownError, HudiError, InvalidOptionError, WriteConflictError

GOOD = 0
FAILED = 1
USAGE = 2
FINDINGS = 3
CONFLICT = 4
PLAN_NOT_EMPTY = 5
TIMED_OUT = 6

EPILOG = (
    "Exit codes: 0 good, 1 failed, 2 usage, 3 findings, 4 conflict or lock, 5 plan not empty, 6 nothing came in time."
)


def code_of(error: HudiError) -> int:
    """The exit code of an error. A job process uses `error.exit_code` instead, which tells the
    classes apart."""
    if isinstance(error, (WriteConflictError, CommitStateUnknownError)):
        return CONFLICT
    return USAGE if isinstance(error, InvalidOptionError) else FAILED
