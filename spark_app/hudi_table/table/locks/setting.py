"""The lock that a table's writers share, from Hudi's options."""

from __future__ import annotations

import os
from collections.abc import Mapping

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.lock_settings import PREFIX, lock_settings
from hudi_table.table.locks.opening import shared_lock
from hudi_table.table.locks.shared import SharedLock
from hudi_table.table.store.ports import Clock, Storage


def lock_of(storage: Storage, clock: Clock, table_name: str, options: Mapping[str, str]) -> SharedLock:
    """The lock. Raises InvalidOptionError, also for options of something else, and
    UnsupportedTableError."""
    strange = sorted(name for name in options if not name.startswith(PREFIX))
    if strange:
        raise InvalidOptionError(f"`lock` has the option {strange[0]!r}: it takes those that begin with {PREFIX!r}")
    settings = lock_settings(options, base_path=storage.base_path, table_name=table_name, environment=os.environ)
    if settings is None:
        raise InvalidOptionError(f"`lock` is empty: give options that begin with {PREFIX!r}")
    return shared_lock(settings, storage, clock)
