"""Errors of the control plane that the table library does not know, named like those of
`hudi_table.errors`.

HudiError ├── DeadlineExceededError     a run took longer than its activeDeadline, and was stopped
exit 75 ├── InvalidRequestError │   └── InvalidSpecError      the manifest breaks a rule; the
condition lists every field     exit 64 └── UnsupportedTableError
    └── LauncherNotServedError  what is to run the jobs is not there                         exit 69
"""

from __future__ import annotations

from hudi_table.errors import HudiError, InvalidRequestError, UnsupportedTableError


class InvalidSpecError(InvalidRequestError):
    """The manifest breaks a rule of its schema or contradicts the table that exists."""


class LauncherNotServedError(UnsupportedTableError):
    """The manifest asks for a launcher that this cluster, or this operator, does not have."""


class JobLostError(HudiError):
    """A job ended without a result and without a commit: killed, out of memory, or its machine is
    gone."""

    exit_code = 75
    retryable = True


class DeadlineExceededError(HudiError):
    """A run took longer than its activeDeadline, and was stopped."""

    exit_code = 75
