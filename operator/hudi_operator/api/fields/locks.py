"""The lock that all writers of a table take, other engines' too."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.schema import Rule, prop
from hudi_table.model.options.lock_settings import PREFIX, PROVIDER

FOLDER = f"{PREFIX}filesystem.path"


class LockProvider(StrEnum):
    """Apache Hudi's lock providers that are taken here."""

    STORAGE = "Storage"
    FILE_SYSTEM = "FileSystem"
    ZOOKEEPER = "ZooKeeper"
    DYNAMODB = "DynamoDB"
    ZOOKEEPER_BY_PATH = "ZooKeeperImplicitBasePath"
    DYNAMODB_BY_PATH = "DynamoDBImplicitPartitionKey"

    @property
    def hudi_name(self) -> str:
        """Hudi's class, without its package."""
        for service, name in (("ZooKeeper", "Zookeeper"), ("DynamoDB", "DynamoDB")):
            if self.startswith(service):
                return f"{name}Based{self.removeprefix(service)}LockProvider"
        return f"{self.value}BasedLockProvider"


def _needs(provider: LockProvider, *keys: str) -> Rule:
    names = [PREFIX + key for key in keys]
    return Rule(
        f"self.provider != '{provider}' || ({' && '.join(f'{name!r} in self.options' for name in names)})",
        f"a lock of {provider} needs the options {' and '.join(names)}",
        "options",
        lambda lock: lock.provider is not provider or set(names) <= set(lock.options),
    )


@dataclass(frozen=True, slots=True)
class LockSpec:
    """A lock of Apache Hudi's: every commit, plan and recovery holds it, and so do Hudi's writers
    with optimistic concurrency control."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"self.options.all(k, k.startsWith('{PREFIX}') && k != '{PROVIDER}')",
            f"options of a lock begin with {PREFIX}, and its provider is a field of its own",
            "options",
            lambda lock: all(key.startswith(PREFIX) and key != PROVIDER for key in lock.options),
        ),
        _needs(LockProvider.ZOOKEEPER, "zookeeper.url", "zookeeper.base_path"),
        _needs(LockProvider.DYNAMODB, "dynamodb.table"),
        _needs(LockProvider.ZOOKEEPER_BY_PATH, "zookeeper.url"),
        _needs(LockProvider.DYNAMODB_BY_PATH, "dynamodb.table"),
    )

    provider: LockProvider = prop(
        "which one; DynamoDB is asked with the credentials of the store. The two Implicit ones are of Hudi 1.x: their "
        "lock goes by the table's path"
    )
    options: dict[str, str] = prop(
        "Hudi's options of it, hoodie.write.lock.*, as its other writers have them; an unknown one is refused by name",
        dict,
        max_items=32,
        item_max_length=1024,
    )

    @property
    def hudi_options(self) -> dict[str, str]:
        """As Hudi's options say it."""
        return {PROVIDER: self.provider.hudi_name, **self.options}
