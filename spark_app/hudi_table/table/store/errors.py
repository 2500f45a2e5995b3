"""From what obstore reports to what the caller must do.

obstore gives few classes; the rest stands in the text: the HTTP status, the store's error code, and
whether the connection was ever made (`kind: Connect`). Measured on obstore 0.12.1: an exclusive
create that S3 answers with 409 `ConditionalRequestConflict` (not done, try again) also comes as
AlreadyExistsError, as does any other 409, a missing bucket as a missing object, a lease as a
condition that does not hold, and a listing's 403 as GenericError.

Panics of its Rust code end here too. pyo3 raises one as `PanicException`, a BaseException that no
`except Exception` takes and that no module offers for import: it is known by its name. Its text may
quote what was given, a credential perhaps, so it is not repeated, not even as the cause.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from typing import TypeVar

from hudi_table.errors import (
    AccessDeniedError,
    CorruptTableError,
    HudiError,
    InvalidRequestError,
    InvariantError,
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)

T = TypeVar("T")
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9]+)</Code>")
_NEVER_CONNECTED = re.compile(r"kind: Connect\b")
"""Not `kind: ConnectionReset`, which ends a connection that carried a request."""
_SIGNED = re.compile(r"\?[^\s\"')]*=[^\s\"')]*")
"""The query of a URL, where stores take signatures."""
_SLOW_DOWN = frozenset({"SlowDown", "SlowDownRead", "RequestLimitExceeded", "TooManyRequests", "ServerBusy"})
"""The store says that it has not even tried. Any other 503 may be a proxy's, which has passed the
request on, or MinIO's SlowDownWrite, by which it means that some of its disks have written."""
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})
_CONFLICTS = frozenset({"", "ConditionalRequestConflict", "OperationAborted", "ConcurrentModification"})
"""With 409: another create of the same object is running, nothing was done. Any other 409 means a
state of the bucket or of the object that no repetition changes."""
_SESSION_ENDED = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})
_NEXT_STEPS = {
    "BlobImmutableDueToPolicy": "a policy keeps the object as it is: lift it, or keep the table in a container without one",
    "ContainerBeingDeleted": "the container is being deleted: create it when that is done, or correct the location",
    "LeaseIdMissing": "another program holds a lease on the object: end it",
}
_NO_CREDENTIALS = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
"""Where a cloud's machines ask for credentials: the last place that is looked at."""
_GIVE = {
    "s3": "give access_key_id and secret_access_key, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a service account that "
    "has a role",
    "gs": "give service_account (a key file), set GOOGLE_SERVICE_ACCOUNT or GOOGLE_APPLICATION_CREDENTIALS to one, or run with a service "
    "account of the cloud",
}
_GIVE_AZURE = "give account_name and account_key, set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or run with a managed identity"
_UNUSABLE_NAME = frozenset({errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL})


class ConflictingCreateError(UnavailableError):
    """Another exclusive create of the same object was running: nothing was done, try again at
    once."""

    internal = True


class SlowDownError(UnavailableError):
    """The store is asked too much: nothing was done. For whoever has asked it is one that is not
    available."""

    internal = True


class ObjectChangedError(UnavailableError):
    """An object that was to be replaced is not as it was seen: nothing was done."""

    internal = True


def translate(error: Exception, *, path: str, where: str, scheme: str, writes: bool) -> HudiError:
    """The error to raise for one of obstore's. `where` names bucket and endpoint, `scheme` the kind
    of store (s3, gs, az, …); `writes`: it was a mutating request."""
    text = str(error)
    status = int(match[1]) if (match := _STATUS.search(text)) else None
    code = _code(text)
    kind = type(error).__name__
    if code in _NO_BUCKET:
        return InvalidRequestError(f"{where} does not exist: create it, or correct the location", path=path)
    if code == "BlobAlreadyExists":
        # Azure's answer to a create of what is there, with 409.
        return ObjectExistsError(f"{path!r} exists already in {where}", path=path)
    if status == 409 and writes and code in _CONFLICTS:
        return ConflictingCreateError(f"{where} was just being asked to create {path!r} by another writer", path=path)
    if (kind == "AlreadyExistsError" or status == 412) and status != 409 and not _is_of_a_lease(code):
        return ObjectExistsError(f"{path!r} exists already in {where}", path=path)
    if any(place in text for place in _NO_CREDENTIALS):
        return AccessDeniedError(f"no credentials for {where}: {_GIVE.get(scheme, _GIVE_AZURE)}")
    if code in _SESSION_ENDED:
        return AccessDeniedError(
            f"{where} takes the session token no more ({code}): get new credentials and open the table again", path=path
        )
    if status in (401, 403) or kind in ("PermissionDeniedError", "UnauthenticatedError"):
        return _denied(code, path, where, scheme)
    if isinstance(error, FileNotFoundError) or kind == "NotFoundError":
        if writes:
            return OutcomeUnknownError(f"{where} lost the upload of {path!r}: read it back", path=path)
        return ObjectNotFoundError(f"no object {path!r} in {where}", path=path)
    if kind == "InvalidPathError":
        return CorruptTableError(f"{where} holds an object that no table can have: {_first_line(text)}", path=path)
    return _unanswered(text, status, code, path=path, where=where, scheme=scheme, writes=writes)


def is_of_the_condition(error: Exception) -> bool:
    """Whether a conditional write was refused because the object is another one, or is gone; not
    because its bucket is missing or somebody holds a lease."""
    code = _code(str(error))
    return code not in _NO_BUCKET and not _is_of_a_lease(code)


def _code(text: str) -> str:
    return match[1] if (match := _CODE.search(text)) else ""


def _is_of_a_lease(code: str) -> bool:
    return code.startswith("Lease")


def unpanicked(call: Callable[[], T], instead: Callable[[], HudiError]) -> T:
    """What `call` returns. Raises what it raises, and `instead` in the place of a panic."""
    try:
        return call()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
    raise instead()


def panicked(*, path: str, where: str) -> HudiError:
    """The error to raise for a panic inside the client: no request should end so."""
    return InvariantError(
        f"the client of {where} panicked while it was asked for {path or '/'!r}: check the credentials and the endpoint, and "
        "report it",
        path=path,
    )


def is_range_of_nothing(error: Exception) -> bool:
    """Whether the store says that an object is empty: none of its ranges exists (416), or it sent
    the whole instead."""
    text = str(error)
    return "status code: 416" in text or "non-partial response" in text


def _denied(code: str, path: str, where: str, scheme: str) -> HudiError:
    reason = f" ({code})" if code else ""
    check = "the access key, its secret and what it may do" if scheme == "s3" else "them and what they may do"
    return AccessDeniedError(f"{where} refused the credentials for {path or '/'!r}{reason}: check {check}", path=path)


def _unanswered(
    text: str, status: int | None, code: str, *, path: str, where: str, scheme: str, writes: bool
) -> HudiError:
    if "redirect" in text and status is None:
        advice = "set the bucket's own region" if scheme == "s3" else "correct the location or the endpoint"
        return InvalidRequestError(f"{where} answered with a redirect: {advice}", path=path)
    if status is not None and 400 <= status < 500 and status not in (408, 429) and code != "RequestTimeout":
        refused = f"{where} refused the request for {path!r} with {status} {code}".rstrip()
        return InvalidRequestError(f"{refused}: {_NEXT_STEPS[code]}" if code in _NEXT_STEPS else refused, path=path)
    if _NEVER_CONNECTED.search(text):
        return UnavailableError(
            f"{where} cannot be reached: {_cause(text)}; check the endpoint and the network", path=path
        )
    reason = f"answered {status} {code}".rstrip() if status else f"did not answer: {_cause(text)}"
    if status == 429 or (status == 503 and code in _SLOW_DOWN):
        return SlowDownError(f"{where} {reason}; try again later", path=path)
    if writes:
        return OutcomeUnknownError(f"{where} {reason}; whether {path!r} was written is not known", path=path)
    return UnavailableError(f"{where} {reason}; try again later", path=path)


def _cause(text: str) -> str:
    """The innermost message of the debug text, e.g. "Connection refused"."""
    found = re.findall(r'(?:message|error): "([^"]+)"', text)
    return _first_line(str(found[-1])) if found else _first_line(text).rpartition(" - ")[2]


def _first_line(text: str) -> str:
    return _SIGNED.sub("?…", text.partition("\n")[0])


def local_error(error: OSError, *, path: str, base: str, writes: bool) -> HudiError:
    """The error to raise for one of the operating system's."""
    reason = error.strerror or str(error)
    if isinstance(error, FileExistsError) and writes:
        return ObjectExistsError(f"{path!r} exists already below {base}", path=path)
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError) and not writes:
        return ObjectNotFoundError(f"no file {path!r} below {base}", path=path)
    if isinstance(error, NotADirectoryError | FileExistsError | IsADirectoryError) or error.errno in _UNUSABLE_NAME:
        return InvalidRequestError(f"{path[:200]!r} cannot be written below {base}: {reason}", path=path[:200])
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return AccessDeniedError(
            f"{base} does not let us at {path or '/'!r}: {reason}; check owner and mode", path=path
        )
    return UnavailableError(f"{path or '/'!r} below {base}: {reason}", path=path)
