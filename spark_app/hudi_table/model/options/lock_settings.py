"""Which lock of Apache Hudi's a table's writers share, and the heartbeats that they show beside it,
read from Hudi's own options.

Two of Hudi's providers are left out, each with its reason in `_LEFT_OUT`; the one that excludes
threads of one process asks for what our writers do anyhow. Nothing is guessed:
Hudi takes ZooKeeper where no provider is named, we ask for the name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_table.errors import InvalidOptionError
from hudi_table.model.names import name_hash
from hudi_table.model.options import values

PREFIX = "hoodie.write.lock."
PROVIDER = f"{PREFIX}provider"
MODE = "hoodie.write.concurrency.mode"
INTERVAL = "hoodie.client.heartbeat.interval_in_ms"
MISSES = "hoodie.client.heartbeat.tolerable.misses"
NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
IN_PROCESS = "InProcessLockProvider"
IN_PROCESS_WHY = "it excludes nobody outside of its process, and our writers need no lock beside each other"
_RENEW = ("storage.renew.interval.secs", "storage.heartbeat.poll.secs")
"""The name of today, and that of Hudi's first releases with this lock."""
_IDLE = frozenset(
    {
        "conflict.resolution.strategy",
        "heartbeat_interval_ms",
        "max_wait_time_ms_between_retry",
        "num_retries",
        *(f"dynamodb.{name}" for name in ("billing_mode", "read_capacity", "table_creation_timeout", "write_capacity")),
    }
)
"""What says nothing of a lock of ours."""
_MILLIS = 1000.0
_PORT = 2181
_BEATS_MIN = 4
"""Beats within the time that others wait: some may be late, or lost."""
_LOOK = 60.0
"""Seconds between two looks at a lock file that nobody takes for stale."""
_STORAGE, _FILE_SYSTEM = "StorageBasedLockProvider", "FileSystemBasedLockProvider"
_ZOOKEEPER, _DYNAMODB = "ZookeeperBasedLockProvider", "DynamoDBBasedLockProvider"
_ZOOKEEPER_BY_PATH = "ZookeeperBasedImplicitBasePathLockProvider"
_DYNAMODB_BY_PATH = "DynamoDBBasedImplicitPartitionKeyLockProvider"
_TAKEN = (_STORAGE, _FILE_SYSTEM, _ZOOKEEPER, _ZOOKEEPER_BY_PATH, _DYNAMODB, _DYNAMODB_BY_PATH)
_LEFT_OUT = {
    "HiveMetastoreBasedLockProvider": "it has not been shown to exclude anybody here",
    "NoopLockProvider": "it excludes nobody",
}


@dataclass(frozen=True, slots=True)
class StorageLockSettings:
    """`StorageBasedLockProvider`: an object beside the timeline, in seconds valid, and renewed."""

    validity: float = 300.0
    renewal: float = 30.0


@dataclass(frozen=True, slots=True)
class FileLockSettings:
    """`FileSystemBasedLockProvider`: the file `lock` in `folder`, which is stale after so many
    minutes; 0 for never."""

    folder: str
    stale_minutes: int = 0


@dataclass(frozen=True, slots=True)
class ZooKeeperLockSettings:
    """`ZookeeperBasedLockProvider`, and the one that derives `path` from the table's: nodes below
    `path` of the servers `hosts`; timeouts in seconds."""

    hosts: str
    path: str
    session_timeout: float = 60.0
    connection_timeout: float = 15.0


@dataclass(frozen=True, slots=True)
class DynamoLockSettings:
    """`DynamoDBBasedLockProvider`, and the one that derives `key` from the table's path: one item
    of a table of DynamoDB, leased for so many seconds."""

    table: str
    key: str
    region: str | None = None
    endpoint: str | None = None
    lease: float = 60.0


ProviderSettings = StorageLockSettings | FileLockSettings | ZooKeeperLockSettings | DynamoLockSettings


@dataclass(frozen=True, slots=True)
class LockSettings:
    """A provider, and how patient its clients are: `patience` seconds in all, `pause` seconds
    between two looks."""

    provider: ProviderSettings
    patience: float
    pause: float

    @property
    def renewal(self) -> float:
        """Seconds between two renewals: a third of what others wait, or as Hudi's option says."""
        provider = self.provider
        if isinstance(provider, StorageLockSettings):
            return provider.renewal
        if isinstance(provider, FileLockSettings):
            return provider.stale_minutes * 20.0 or _LOOK
        return (provider.lease if isinstance(provider, DynamoLockSettings) else provider.session_timeout) / 3


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """Apache Hudi takes a writer for dead that has missed so many heartbeats, which come every
    `interval` seconds."""

    interval: float = 60.0
    misses: int = 2

    @property
    def tolerance(self) -> float:
        """Seconds without a heartbeat after which lazy cleaning takes a write for failed."""
        return self.interval * self.misses

    @property
    def period(self) -> float:
        """Seconds between two heartbeats of ours."""
        return min(self.interval, self.tolerance / _BEATS_MIN)


def names_lock(key: str) -> bool:
    """Whether an option says something of the lock that writers share, or of the heartbeats that
    they show beside it."""
    return key.startswith(PREFIX) or key in (MODE, INTERVAL, MISSES)


def is_in_process(provider: str) -> bool:
    """Whether this provider excludes threads of one process alone."""
    return provider.strip().rpartition(".")[2] == IN_PROCESS


def asks_for_control(options: Mapping[str, str]) -> bool:
    """Whether optimistic concurrency control is asked for beside others than threads of one
    process."""
    mode = options.get(MODE, "").strip().upper()
    return mode == "OPTIMISTIC_CONCURRENCY_CONTROL" and not is_in_process(options.get(PROVIDER, ""))


def is_non_blocking(options: Mapping[str, str]) -> bool:
    """Whether writers are to append to one file group beside each other."""
    return options.get(MODE, "").strip().upper() == NON_BLOCKING


def check_provider(provider: str) -> None:
    """Raise InvalidOptionError for one that we do not have, with the reason."""
    short = provider.strip().rpartition(".")[2]
    if short and short not in _TAKEN and short != IN_PROCESS:
        known = "StorageBased-, FileSystemBased-, ZookeeperBased[ImplicitBasePath]- or DynamoDBBased[ImplicitPartitionKey]LockProvider"
        raise InvalidOptionError(
            f"option {PROVIDER!r}: {values.shown(PROVIDER, provider)} is a lock that we do not take, for "
            f"{_LEFT_OUT.get(short, 'it is not known here')}: use {known}, or let one engine write at a time"
        )


def lock_settings(
    options: Mapping[str, str],
    *,
    base_path: str,
    table_name: str,
    environment: Mapping[str, str],
    known: bool = False,
) -> LockSettings | None:
    """The lock that the options ask for; None if no option begins with `hoodie.write.lock.`, or
    they ask for one of threads alone. `known`: a lock is there already, and options that name no
    provider are of it.

    Raises InvalidOptionError, also for a provider that we do not have.
    """
    given = _Given(options)
    provider = given.text("provider")
    if not given.any() or (provider is None and known) or is_in_process(provider or ""):
        return None
    if provider is None:
        raise InvalidOptionError(
            f"option {given.first!r} is of a lock, and {PROVIDER!r} is not among the options: name the provider that the other "
            "writers have"
        )
    check_provider(provider)
    wait = given.seconds("wait_time_ms", 60_000, least=1)
    tries = given.whole("client.num_retries", 50) + 1
    between = given.seconds("client.wait_time_ms_between_retry", 5_000)
    return LockSettings(
        _provider(provider, given, wait, base_path, table_name, environment),
        patience=tries * wait + (tries - 1) * between,
        pause=given.seconds("wait_time_ms_between_retry", 1_000, least=1),
    )


def _provider(
    name: str, given: _Given, wait: float, base_path: str, table_name: str, environment: Mapping[str, str]
) -> ProviderSettings:
    short = name.rpartition(".")[2]
    if short == _STORAGE:
        return _storage(given)
    if short == _FILE_SYSTEM:
        folder = given.text("filesystem.path") or f"{base_path.rstrip('/')}/.hoodie"
        return FileLockSettings(folder, given.whole("filesystem.expire", 0))
    if short == _ZOOKEEPER:
        return _zookeeper(given, given.needed("zookeeper.base_path"), given.text("zookeeper.lock_key") or table_name)
    if short == _ZOOKEEPER_BY_PATH:
        given.refuse_derived("zookeeper.base_path", "zookeeper.lock_key")
        return _zookeeper(given, f"/tmp/{path_name(base_path)}", "lock_key")  # noqa: S108 - a node of ZooKeeper
    if short == _DYNAMODB_BY_PATH:
        given.refuse_derived("dynamodb.partition_key")
        return _dynamodb(given, path_name(base_path), wait, environment)
    return _dynamodb(given, given.text("dynamodb.partition_key") or table_name, wait, environment)


def path_name(base_path: str) -> str:
    """What Hudi's two implicit providers name a table's lock by: `HashID` of its base path, 64
    bits, as 16 hexadecimal digits (measured on 1.1.1 and 1.2.0).

    Hudi takes the path as its writer was given it, but for `s3a`, which is `s3`. Ours has no slash
    at its end, and on local disk no scheme.
    """
    path = re.sub("^s3a://", "s3://", re.sub("^file://", "", base_path), flags=re.IGNORECASE)
    return f"{name_hash(path.rstrip('/') if '://' in path else os.path.abspath(path)):016X}"


def _dynamodb(given: _Given, key: str, wait: float, environment: Mapping[str, str]) -> DynamoLockSettings:
    return DynamoLockSettings(
        given.needed("dynamodb.table"),
        key,
        region=given.text("dynamodb.region") or environment.get("AWS_REGION") or "us-east-1",
        endpoint=given.text("dynamodb.endpoint_url"),
        lease=wait,
    )


def _storage(given: _Given) -> StorageLockSettings:
    validity = given.whole("storage.validity.timeout.secs", 300, least=10)
    renewals = {name: given.whole(name, 30, least=1) for name in _RENEW if given.text(name) is not None}
    if len(set(renewals.values())) > 1:
        raise InvalidOptionError(f"options {' and '.join(PREFIX + name for name in _RENEW)} are one, and differ")
    renewal = next(iter(renewals.values()), 30)
    if validity < 10 * renewal:
        raise InvalidOptionError(
            f"option {PREFIX + 'storage.validity.timeout.secs'!r}: {validity} is less than ten times the {renewal} of "
            f"{PREFIX + _RENEW[0]!r}, and Apache Hudi refuses that"
        )
    return StorageLockSettings(float(validity), float(renewal))


def _zookeeper(given: _Given, base: str, key: str) -> ZooKeeperLockSettings:
    hosts = given.needed("zookeeper.url")
    port = given.text("zookeeper.port")
    if port is not None:
        plain = given.whole("zookeeper.port", _PORT, least=1)
        servers = hosts.partition("/")[0].split(",")
        ports = {int(match[1]) if (match := re.search(r":(\d+)$", one)) else _PORT for one in servers}
        if ports != {plain}:
            raise InvalidOptionError(
                f"option {PREFIX + 'zookeeper.port'!r}: Apache Hudi does not read it, so its clients would go to other ports "
                f"than {plain}: write host:{plain} into {PREFIX + 'zookeeper.url'!r}"
            )
    if not base.startswith("/"):
        raise InvalidOptionError(f"option {PREFIX + 'zookeeper.base_path'!r}: {base!r} does not begin with a slash")
    return ZooKeeperLockSettings(
        hosts,
        f"{base}/{key}",
        session_timeout=given.seconds("zookeeper.session_timeout_ms", 60_000, least=1),
        connection_timeout=given.seconds("zookeeper.connection_timeout_ms", 15_000, least=1),
    )


def heartbeat_settings(options: Mapping[str, str]) -> HeartbeatSettings | None:
    """What the options say; None if they say nothing. Raises InvalidOptionError."""
    given = {key: text for key in (INTERVAL, MISSES) if (text := options.get(key, "").strip())}
    if not given:
        return None
    default = HeartbeatSettings()
    interval = values.whole(INTERVAL, given.get(INTERVAL, str(int(default.interval * _MILLIS))), 1)
    return HeartbeatSettings(interval / _MILLIS, values.whole(MISSES, given.get(MISSES, str(default.misses)), 1))


class _Given:
    """Options of locks by their names without the prefix; one that is empty, or does nothing, is
    not given."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {
            key.removeprefix(PREFIX): value.strip()
            for key, value in options.items()
            if key.startswith(PREFIX) and value.strip() and key.removeprefix(PREFIX) not in _IDLE
        }

    def any(self) -> bool:
        return bool(self._options)

    @property
    def first(self) -> str:
        return PREFIX + min(self._options)

    def text(self, name: str) -> str | None:
        return self._options.get(name)

    def needed(self, name: str) -> str:
        found = self.text(name)
        if found is None:
            raise InvalidOptionError(f"option {PREFIX + name!r} is missing: this provider cannot do without it")
        return found

    def refuse_derived(self, *names: str) -> None:
        """Hudi reads none of them with this provider: whoever gives one means another lock."""
        for name in names:
            if self.text(name) is not None:
                raise InvalidOptionError(
                    f"option {PREFIX + name!r}: this provider derives it from the table's path, and Apache Hudi does not read it: leave it out"
                )

    def whole(self, name: str, default: int, least: int = 0) -> int:
        return values.whole(PREFIX + name, self._options.get(name, str(default)), least)

    def seconds(self, name: str, default: int, least: int = 0) -> float:
        return self.whole(name, default, least) / _MILLIS
