"""Options of remote stores: ours (timeouts, retries), obstore's, and where S3 credentials come
from."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.values import boolean
from hudi_table.table.store.location import endpoint_problem
from hudi_table.table.store.retry import repeats_of_slowed

_OURS = ("timeout", "connect_timeout", "retries", "allow_http")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SECRET = re.compile(r"key|secret|token|password|sas|credential", re.IGNORECASE)
_IN_HEADERS = re.compile(r"access_key_id|token|region|account_name", re.IGNORECASE)
_DOCUMENT = re.compile(r"service_account_key", re.IGNORECASE)
"""An option that holds a JSON document, of several lines perhaps."""
_SECRET_LEAST = 4
_LONGEST = 1_000_000.0
"""Seconds, eleven days; and far more than anybody repeats a request."""
_ENVIRONMENT_CHAIN = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_READ = re.compile(
    r"(aws|google|azure)_.*|(https?|all|no)_proxy|home|service_account|msi_endpoint|identity_(endpoint|header)",
    re.IGNORECASE,
)
_CREDENTIAL_FILES = re.compile(
    r".*(service_account|service_account_path|application_credentials|shared_credentials_file|config_file)",
    re.IGNORECASE,
)
"""Not those of tokens, which are replaced every hour and which clients read again by themselves."""
_USUAL_CREDENTIAL_FILES = (
    "~/.aws/credentials",
    "~/.aws/config",
    "~/.config/gcloud/application_default_credentials.json",
)
_DIGEST_KEY = secrets.token_bytes(32)
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Limits of a client: `timeout` for a silent connection and `connect_timeout` in seconds,
    `retries` of safe requests."""

    timeout: float = 30.0
    connect_timeout: float = 3.0
    retries: int = 3
    allow_http: bool = False

    def without_retries(self) -> ClientSettings:
        """The same limits, but every request is sent once."""
        return replace(self, retries=0)

    def client_options(self, endpoint: str | None) -> dict[str, Any]:
        """obstore's client options. Plain HTTP is allowed when the endpoint is written so."""
        return {
            "timeout": timedelta(seconds=self.timeout * 10),
            "read_timeout": timedelta(seconds=self.timeout),
            "connect_timeout": timedelta(seconds=self.connect_timeout),
            "allow_http": self.allow_http or (endpoint or "").lower().startswith("http://"),
        }

    @property
    def retry_seconds(self) -> float:
        """How long repetitions may be under way until another one begins: a store that is down is
        reported within seconds."""
        return max(10.0, 2 * self.connect_timeout)

    def retry_config(self) -> dict[str, Any]:
        """obstore's retry settings: those of parts of an upload. It counts from the first attempt,
        so there is time for one that stalls, and asks not what failed, so each part is sent as
        often as one that is told to slow down."""
        return {
            "max_retries": repeats_of_slowed(self.retries),
            "retry_timeout": timedelta(seconds=self.timeout + self.retry_seconds),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        }


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """A boolean option. Raises InvalidOptionError for anything but true and false."""
    return boolean(name, options.get(name, str(default)))


def check_values(options: Mapping[str, str], variables: str) -> None:
    """Refuse values that no client takes, by the name of the option or variable alone: a newline at
    the end of a credential, text in a header that is not ASCII, a password in an endpoint. Raises
    InvalidOptionError.

    `variables`: how the names of the variables begin that obstore reads by itself.
    """
    around = [(f"the variable {name}", value) for name, value in os.environ.items() if name.startswith(variables)]
    for what, value in [*around, *((f"the storage option {name}", value) for name, value in options.items())]:
        if _DOCUMENT.search(what):
            continue
        if found := _CONTROL.search(value):
            where = "at its end" if found.start() == len(value.rstrip("\r\n")) else "inside"
            raise InvalidOptionError(f"{what} has the control character U+{ord(found[0]):04X} {where}: remove it")
        if _IN_HEADERS.search(what) and not value.isascii():
            raise InvalidOptionError(
                f"{what} has characters that are not ASCII, which no request can carry: correct it"
            )
        if re.search("endpoint|proxy_url", what, re.IGNORECASE) and value and (problem := endpoint_problem(value)):
            raise InvalidOptionError(f"{what} {problem}")


def without_secrets(text: str, options: Iterable[tuple[str, str]]) -> str:
    """A text of others without the values of options that are secret by their name."""
    for name, value in options:
        if len(value) >= _SECRET_LEAST and _SECRET.search(name):
            text = text.replace(value, "…")
    return text


def client_settings(options: Mapping[str, str]) -> tuple[ClientSettings, dict[str, str]]:
    """(our settings, the options left for the store). Raises InvalidOptionError."""
    default = ClientSettings()
    settings = ClientSettings(
        timeout=_number(options, "timeout", default.timeout, least=0.1),
        connect_timeout=_number(options, "connect_timeout", default.connect_timeout, least=0.1),
        retries=int(_number(options, "retries", default.retries, least=0)),
        allow_http=flag(options, "allow_http", default=default.allow_http),
    )
    return settings, {key: value for key, value in options.items() if key not in _OURS}


def s3_config(options: Mapping[str, str]) -> tuple[dict[str, Any], Any]:
    """(configuration of the S3 store, what makes its credential provider or None).

    Names may be written with a prefix, e.g. `aws_region`, as other libraries spell them;
    `endpoint_url` is `endpoint`.
    """
    config: dict[str, Any] = {}
    for key, value in options.items():
        name = key.removeprefix("aws_")
        config["endpoint" if name == "endpoint_url" else name] = value
    endpoint = config.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        config["endpoint"] = endpoint
        # The client would go by the variable of this name, whatever the option says.
        config["aws_endpoint_url_s3"] = endpoint
        config.setdefault("region", os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1")
    else:
        _refuse_empty_endpoint(config)
    if ("access_key_id" in config) != ("secret_access_key" in config):
        raise InvalidOptionError("access_key_id and secret_access_key belong together: give both, or neither")
    return config, None if _has_credentials(config) else _profile_provider()


def surroundings(options: Mapping[str, str]) -> bytes:
    """A digest of the variables, and of the states of files with credentials, that a client with
    these options finds when it is made: it looks once. Comparable within this process; no value can
    be told from it."""
    digest = hashlib.blake2b(key=_DIGEST_KEY)
    variables = {name: value for name, value in os.environ.items() if _READ.fullmatch(name)}
    files = [value for name, value in [*variables.items(), *options.items()] if _CREDENTIAL_FILES.fullmatch(name)]
    states = {path: _state(path) for path in (*files, *_USUAL_CREDENTIAL_FILES)}
    digest.update(repr((sorted(variables.items()), sorted(states.items()))).encode(errors="surrogateescape"))
    return digest.digest()


def _state(path: str) -> tuple[int, ...]:
    try:
        found = Path(path).expanduser().stat()
    except (OSError, ValueError, RuntimeError):
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _refuse_empty_endpoint(config: Mapping[str, Any]) -> None:
    """The client takes one and panics at its first request."""
    if "endpoint" in config:
        raise InvalidOptionError("the storage option endpoint is empty: give a URL, or leave it out")
    for name in _ENDPOINTS:
        if os.environ.get(name) == "":
            raise InvalidOptionError(f"the variable {name} is empty: give a URL, or unset it")


def _has_credentials(config: Mapping[str, Any]) -> bool:
    has_some = any(name in config for name in ("access_key_id", "skip_signature", "web_identity_token_file"))
    return has_some or any(os.environ.get(name) for name in _ENVIRONMENT_CHAIN)


def _profile_provider() -> Any:
    """boto3's credential chain, where it is installed and a profile is set: obstore itself reads no
    profiles."""
    shared = Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials").expanduser()
    if not (os.environ.get("AWS_PROFILE") or shared.is_file()):
        return None
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        raise InvalidOptionError(
            "the AWS profile can only be read with boto3: pip install 'hudi-table[aws]' brings it, or set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY",
        ) from error
    return Boto3CredentialProvider


def _number(options: Mapping[str, str], name: str, default: float, *, least: float) -> float:
    text = options.get(name, str(default))
    try:
        value = float(text)
    except ValueError:
        value = least - 1
    if not least <= value <= _LONGEST:
        raise InvalidOptionError(
            f"the storage option {name} is {text[:40]!r}: it must be a number from {least} to {_LONGEST:.0f}"
        )
    return value
