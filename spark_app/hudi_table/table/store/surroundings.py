"""What a client finds around it when it is made: variables of the environment, and files that hold
credentials. It looks once, so clients are shared only while those are the same."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

_READ = re.compile(
    r"(aws|google|azure)_.*|(https?|all|no)_proxy|home|service_account|msi_endpoint|identity_(endpoint|header)",
    re.IGNORECASE,
)
_FILES = re.compile(
    r".*(service_account|service_account_path|application_credentials|shared_credentials_file|config_file)",
    re.IGNORECASE,
)
"""Not those of tokens, which are replaced every hour and which clients read again by themselves."""
_USUAL_FILES = ("~/.aws/credentials", "~/.aws/config", "~/.config/gcloud/application_default_credentials.json")
_KEY = secrets.token_bytes(32)


def surroundings(options: Mapping[str, str]) -> bytes:
    """A digest of what a client with these options would find, comparable within this process. No
    value can be told from it."""
    digest = hashlib.blake2b(key=_KEY)
    variables = {name: value for name, value in os.environ.items() if _READ.fullmatch(name)}
    files = [value for name, value in [*variables.items(), *options.items()] if _FILES.fullmatch(name)]
    states = {path: _state(path) for path in (*files, *_USUAL_FILES)}
    digest.update(repr((sorted(variables.items()), sorted(states.items()))).encode(errors="surrogateescape"))
    return digest.digest()


def _state(path: str) -> tuple[int, ...]:
    try:
        found = Path(path).expanduser().stat()
    except (OSError, ValueError, RuntimeError):
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino
