"""`open_storage`: the one way to a store, by URI.

| location | store |
|---|---|
| `/path`, `path`, `file:///path` | local disk |
| `memory://name/prefix` | objects in this process: the same name is the same store |
| `s3://bucket/prefix` (`s3a`, `s3n`) | S3 and what speaks its protocol |
| `gs://bucket/prefix`, `az://container/prefix`, `abfss://container@account.dfs.core.windows.net/prefix` | passed on to obstore |
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.table.store.errors import unpanicked
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.store.location import local_path, parse_location, shown
from hudi_table.table.store.options import (
    ClientSettings,
    check_values,
    client_settings,
    flag,
    s3_config,
    surroundings,
    without_secrets,
)
from hudi_table.table.store.paths import check_folder
from hudi_table.table.store.ports import Storage, plain
from hudi_table.table.store.remote import ObjectStorage
from hudi_table.table.store.retry import Pace

_Clients = tuple[Any, Any, Pace]
_MEMORY: dict[str, Any] = {}
_MEMORY_LOCK = threading.Lock()
_CLIENTS: OrderedDict[Hashable, _Clients] = OrderedDict()
_CLIENTS_MAX = 32
_CLIENTS_LOCK = threading.Lock()
_S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
_OTHER_SCHEMES = frozenset({"gs", "az", "azure", "adl", "abfs", "abfss"})


@dataclass(frozen=True, slots=True)
class Reopen:
    """Opens the same storage again, in another process too. Picklable; its repr holds no option
    value."""

    uri: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    process: int | None = None

    def __call__(self) -> Storage:
        """The storage. A `memory://` store lives in one process: elsewhere InvalidRequestError."""
        if self.process is not None and self.process != os.getpid():
            raise InvalidRequestError(
                f"{self.uri} lives in the memory of process {self.process}: use a path or an object store to share a "
                "table between processes",
            )
        return open_storage(self.uri, dict(self.options))


def open_storage(uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """The storage at a location (see the table above); no request is made yet.

    Options, all strings. S3: `endpoint`, `region`, `access_key_id`, `secret_access_key`,
    `session_token` (absent: the environment's `AWS_*`, then the usual AWS chain) and every other
    setting of obstore's S3 store, also spelled `aws_…`. All remote stores: `timeout`,
    `connect_timeout` (seconds), `retries`, `allow_http`. Local disk: `fsync` (`true`; `false` gives
    up what power loss would take). Raises InvalidRequestError and InvalidOptionError.
    """
    lower_options = {str(key).lower(): str(value) for key, value in (options or {}).items()}
    scheme, authority, path = parse_location(str(uri))
    if scheme == "file":
        return _open_local(path, lower_options)
    prefix = check_folder(path.strip("/"), base_path=f"{scheme}://{authority}")
    if scheme == "memory":
        if lower_options:
            raise InvalidOptionError(f"a memory:// store takes no options, but got {', '.join(sorted(lower_options))}")
        return _open_memory(authority, prefix)
    if scheme in _S3_SCHEMES:
        return _open_s3(uri, authority, prefix, lower_options)
    if scheme in _OTHER_SCHEMES:
        return _open_other(uri, prefix, lower_options)
    raise InvalidRequestError(
        f"{shown(uri)!r}: no store is known for the scheme {scheme!r}; use a path, file://, memory://, s3://, gs:// or az://",
    )


def refuse_nested(place: Storage, source: Storage) -> None:
    """Raise InvalidRequestError if one of them lies inside the other, links followed, or both are
    the same. Places of one name at two endpoints are two."""
    one, other = (plain(each) for each in (place, source))
    inside = _folder(one), _folder(other)
    if _endpoint(one) == _endpoint(other) and (inside[0].startswith(inside[1]) or inside[1].startswith(inside[0])):
        raise InvalidRequestError(
            f"{place.base_path} and {source.base_path} lie one inside the other: name a place beside it",
            base_path=place.base_path,
        )


def _folder(storage: Storage) -> str:
    base = storage.base_path
    return f"{base if '://' in base else os.path.realpath(base)}/"


def _endpoint(storage: Storage) -> set[str]:
    options = getattr(storage.reopen(), "options", ())
    return {value.rstrip("/") for key, value in options if "endpoint" in key}


def _open_local(path: str, lower_options: dict[str, str]) -> Storage:
    unknown = sorted(set(lower_options) - {"fsync"})
    if unknown:
        raise InvalidOptionError(f"local disk has no option {', '.join(unknown)}: it takes only 'fsync'")
    base = local_path(path)
    return LocalStorage(
        base, fsync=flag(lower_options, "fsync", default=True), reopen=Reopen(base, tuple(lower_options.items()))
    )


def _open_memory(name: str, prefix: str) -> Storage:
    from obstore.store import MemoryStore

    with _MEMORY_LOCK:
        store = _MEMORY.setdefault(name, MemoryStore())
    uri = f"memory://{name}/{prefix}".rstrip("/")
    return ObjectStorage(store, store, Pace(), uri=uri, prefix=prefix, where=uri, reopen=Reopen(uri, (), os.getpid()))


def _open_s3(uri: str, bucket: str, prefix: str, lower_options: dict[str, str]) -> Storage:
    from obstore.store import S3Store

    check_values(lower_options, "AWS_")
    settings, rest = client_settings(lower_options)
    config, provider = s3_config(rest)
    endpoint = config.get("endpoint")

    def build(one: ClientSettings) -> Any:
        options: dict[str, Any] = {
            "config": config,
            "client_options": one.client_options(endpoint),
            "retry_config": one.retry_config(),
            "credential_provider": None if provider is None else provider(),
        }
        return S3Store(bucket, **options)

    where = f"bucket {bucket!r} at {endpoint or 'AWS'}"
    base = f"s3://{bucket}/{prefix}".rstrip("/")
    known = ("s3", bucket, frozenset(config.items()), surroundings(config))
    reopen = Reopen(uri, tuple(lower_options.items()))
    return _remote(build, settings, known, base=base, prefix=prefix, where=where, reopen=reopen)


def _open_other(uri: str, prefix: str, lower_options: dict[str, str]) -> Storage:
    from obstore.store import from_url

    check_values(lower_options, "GOOGLE_" if uri.lower().startswith("gs:") else "AZURE_")
    settings, config = client_settings(lower_options)
    root = uri[: len(uri.rstrip("/")) - len(prefix)] if prefix else uri

    def build(one: ClientSettings) -> Any:
        return from_url(
            root,
            config=config or None,  # type: ignore[call-overload]
            client_options=one.client_options(config.get("endpoint")),
            retry_config=one.retry_config(),
        )

    base = uri.rstrip("/")
    known = (root, frozenset(config.items()), surroundings(config))
    reopen = Reopen(uri, tuple(lower_options.items()))
    return _remote(build, settings, known, base=base, prefix=prefix, where=root, reopen=reopen)


def _remote(
    build: Callable[[ClientSettings], Any],
    settings: ClientSettings,
    known: Hashable,
    *,
    base: str,
    prefix: str,
    where: str,
    reopen: Reopen,
) -> Storage:
    """Two clients of one store, of which the second repeats nothing, and their pace.

    Tables of one store that are opened with the same options in the same surroundings, `known`,
    share them and their connections: a client costs milliseconds of processor time, and each new
    connection a handshake.
    """
    from obstore.exceptions import BaseError

    def clients() -> _Clients:
        return _shared((os.getpid(), settings, known), build, settings)

    try:
        store, once, pace = unpanicked(
            clients, lambda: InvalidOptionError(f"no client can be made of the options for {base}: check each of them")
        )
    except (BaseError, ValueError, TypeError, OverflowError) as error:
        # Its text may quote a value, and so would the text of a cause.
        reason = without_secrets(str(error).partition("\n")[0], reopen.options)
        raise InvalidOptionError(f"the options for {base} cannot be used: {reason}") from None
    return ObjectStorage(store, once, pace, uri=base, prefix=prefix, where=where, reopen=reopen)


def _shared(key: Hashable, build: Callable[[ClientSettings], Any], settings: ClientSettings) -> _Clients:
    """The clients of `key`, those of this process: what a fork inherits has lost its threads."""
    with _CLIENTS_LOCK:
        found = _CLIENTS.get(key)
        if found is None:
            found = _CLIENTS[key] = _pair(build, settings)
            if len(_CLIENTS) > _CLIENTS_MAX:
                _CLIENTS.popitem(last=False)
        _CLIENTS.move_to_end(key)
        return found


def _pair(build: Callable[[ClientSettings], Any], settings: ClientSettings) -> _Clients:
    return build(settings), build(settings.without_retries()), Pace(settings.retries, settings.retry_seconds)
