"""Every error that `hudi_table` raises, named by what the caller must do.

    HudiError
    ├── InvalidRequestError        fix the call or the spec                     exit 64
    │   ├── InvalidOptionError     an option is unknown or has a bad value
    │   ├── InvalidSchemaError     a column or type does not fit the table
    │   ├── InvalidDataError       rows that cannot be written (null key, …)
    │   ├── TableNotFoundError     nothing at the location, or not a table
    │   └── ExpiredError           the past that is asked for was cleaned or archived
    ├── UnsupportedTableError      a feature or version we do not handle         exit 69
    ├── WriteConflictError         plan again on the new timeline                exit 75
    │   └── WriteAbortedError      another process aborted this attempt
    ├── UnavailableError           same call again, later                        exit 75
    ├── AccessDeniedError          fix the credentials                           exit 77
    ├── CommitStateUnknownError    read the timeline first, never repeat blindly exit 76
    ├── DataLossError              decide whether the source's lost rows may be left out  exit 74
    ├── CorruptTableError          stop, keep the files, look                    exit 65
    └── InvariantError             a bug in this library                         exit 70

The class name without `Error` is the stable name: it is the reason of a condition, the `errorClass`
of a JobResult and the heading of the page that `hudictl explain NAME` prints. A subclass exists
only where somebody reacts differently. Storage has three signals of its own (`ObjectNotFoundError`,
`ObjectExistsError`, `OutcomeUnknownError`); they never leave the library: see
`table/timeline/relisting.py` for the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_USER = re.compile(
    r"(?<=://)(?:[^\s/:@]*:[^\s@]*@(?:[^\s/@]*@)*|(?<!abfs://)(?<!abfss://)(?:[^\s/@]*@)+)", re.IGNORECASE
)
"""User and password in a URL, which may stand in any value that a message quotes. Keys of S3 may
have a slash; Azure writes `container@account`, where others have a user."""


def without_users(text: str, instead: str = "…") -> str:
    """A text as people may see it: users and passwords of its URLs are left out."""
    return _USER.sub(f"{instead}@", text)


class HudiError(Exception):
    """Root of the tree. `message` names the offending value and the next step; users and
    passwords in URLs are left out of it."""

    exit_code = 1
    retryable = False
    internal = False
    """Of a subclass that only this library tells apart: for a caller it has the name of the class
    that it is one of."""

    def __init__(
        self,
        message: str,
        *,
        base_path: str | None = None,
        instant: str | None = None,
        path: str | None = None,
    ) -> None:
        message = without_users(message)
        super().__init__(message)
        self.message = message
        self.base_path = base_path
        self.instant = instant
        self.path = path

    @classmethod
    def name(cls) -> str:
        """The stable name, e.g. ``WriteConflict``."""
        public = next(each for each in cls.__mro__ if not vars(each).get("internal", False))
        return public.__name__.removesuffix("Error")

    def __str__(self) -> str:
        where = [
            f"{label} {value}"
            for label, value in (("table", self.base_path), ("instant", self.instant), ("path", self.path))
            if value and value not in self.message
        ]
        return f"{self.message} [{', '.join(where)}]" if where else self.message


class InvalidRequestError(HudiError):
    """The call or the spec is wrong; nothing was written."""

    exit_code = 64


class InvalidOptionError(InvalidRequestError):
    """An option is unknown, or its value cannot be used."""


class InvalidSchemaError(InvalidRequestError):
    """A column is missing, or its type does not fit the table or the format."""


class InvalidDataError(InvalidRequestError):
    """Rows that cannot be written: null keys, keys of the wrong partition, and the like."""


class UnsettledDataError(InvalidDataError):
    """Rows lack something that others may bring which come soon: those at `places`, where they are
    told."""

    internal = True
    retryable = True

    def __init__(self, message: str, places: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.places = places


class TableNotFoundError(InvalidRequestError):
    """There is no Hudi table at the location."""


class ExpiredError(InvalidRequestError):
    """What the table held at the moment asked for was cleaned or archived; a later moment can be
    read."""


class UnsupportedTableError(HudiError):
    """The table uses a version or feature that this release does not handle."""

    exit_code = 69


class WriteConflictError(HudiError):
    """Another writer changed the same file groups; nothing of this write is visible."""

    exit_code = 75
    retryable = True


class WriteAbortedError(WriteConflictError):
    """Another process took this attempt for dead and aborted it; nothing of it is visible."""


class UnavailableError(HudiError):
    """The store did not answer, or is overloaded; the same call may succeed later."""

    exit_code = 75
    retryable = True


class AccessDeniedError(HudiError):
    """The store refused the credentials."""

    exit_code = 77


class CommitStateUnknownError(HudiError):
    """The commit may or may not have happened: read the timeline before trying again."""

    exit_code = 76
    retryable = True


class DataLossError(HudiError):
    """A source no longer has rows that the table has not taken in."""

    exit_code = 74


class CorruptTableError(HudiError):
    """Bytes of the table contradict the format; nothing was changed."""

    exit_code = 65


class InvariantError(HudiError):
    """A promise inside this library does not hold: a bug."""

    exit_code = 70


class ObjectNotFoundError(HudiError):
    """Storage signal: no object at the path."""


class ObjectExistsError(HudiError):
    """Storage signal: put-if-absent found an object, or put-if-match another version."""


class OutcomeUnknownError(HudiError):
    """Storage signal: the request may have been applied; read back before deciding."""

    retryable = True
