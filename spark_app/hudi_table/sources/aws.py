"""Clients of AWS's services beside the store, and what their errors mean.

Facts (boto3 1.43 tried): a session keeps what it has read of AWS's services, so that a client of a
new one takes twenty times as long; clients may be used by several threads, and are made by one at a
time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hudi_table.errors import AccessDeniedError, InvalidRequestError, UnavailableError
from hudi_table.table.store import threads
from hudi_table.table.store.at_once import REQUESTS_AT_ONCE
from hudi_table.table.store.options import check_values

CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_DENIED = ("AccessDenied", "InvalidClientTokenId", "UnrecognizedClient", "SignatureDoesNotMatch", "ExpiredToken", "MissingAuthenticationToken", "InvalidSignature", "KMSAccessDenied")  # fmt: skip
_ONE_AT_A_TIME = threads.lock()


def client(service: str, region: str | None, endpoint: str | None, credentials: Mapping[str, str]) -> Any:
    """A client. `credentials`: AWS's three variables; where they are not among them, boto3's own
    chain finds some. Raises InvalidOptionError for a value that is none."""
    from botocore.config import Config  # type: ignore[import-untyped]

    known = {name.lower(): credentials[name] for name in CREDENTIALS if credentials.get(name)}
    check_values(known, "AWS_")
    # A key that the environment holds does not complete one that was given.
    given = known if "aws_access_key_id" in known else {}
    config = Config(
        retries={"total_max_attempts": 3, "mode": "standard"},
        connect_timeout=5,
        read_timeout=30,
        max_pool_connections=REQUESTS_AT_ONCE,
    )
    with _ONE_AT_A_TIME:
        return _session().client(service, region_name=region, endpoint_url=endpoint, config=config, **given)


@functools.cache
def _session() -> Any:
    import boto3  # type: ignore[import-untyped]

    return boto3.session.Session()


@contextmanager
def meaning(
    place: str, field: str, missing: str, rights: str, known: Mapping[str, Callable[[], Exception]]
) -> Iterator[None]:
    """What goes wrong within, in our errors. `place`: what is asked, in words; `field`: where it is
    named; `missing`: what needs boto3; `rights`: what the credentials have to allow; `known`: what
    codes of the service's own mean."""
    try:
        from botocore.exceptions import (  # type: ignore[import-untyped]
            BotoCoreError,
            ClientError,
            NoCredentialsError,
            NoRegionError,
            PartialCredentialsError,
        )
    except ImportError as error:
        raise InvalidRequestError(f"{missing} need boto3: pip install 'hudi-table[aws]' brings it") from error
    try:
        yield
    except ClientError as error:
        raise _of_code(error, place, rights, known) from error
    except NoCredentialsError as error:
        raise AccessDeniedError(f"no credentials for {place}: set them as for S3") from error
    except (NoRegionError, PartialCredentialsError, ValueError) as error:
        raise InvalidRequestError(f"{place} cannot be asked: {error}; correct {field}, or the credentials") from error
    except BotoCoreError as error:
        raise UnavailableError(f"{place} did not answer: {error}; try again later") from error


def _of_code(error: Any, place: str, rights: str, known: Mapping[str, Callable[[], Exception]]) -> Exception:
    code, status = str(error.response["Error"]["Code"]), error.response["ResponseMetadata"]["HTTPStatusCode"]
    code = code.removeprefix("AWS.SimpleQueueService.")
    if code in known:
        return known[code]()
    if any(code.startswith(one) for one in _DENIED):
        return AccessDeniedError(f"{place} refused the credentials ({code}): they need {rights}")
    if status >= 500 or "Throttl" in code or code in ("OverLimit", "LimitExceededException", "ProvisionedThroughputExceededException"):  # fmt: skip
        return UnavailableError(f"{place} answered {code}; try again later")
    return InvalidRequestError(f"{place} refused the request with {code}")
