"""Where the sources of a bootstrapped table lie: its bootstrap base path, opened with the table's
own store options."""

from __future__ import annotations

import re

from hudi_table.errors import CorruptTableError
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.version_properties import BOOTSTRAP_BASE
from hudi_table.table.store.opening import Reopen, open_storage
from hudi_table.table.store.ports import Storage

BASE_PATH = BOOTSTRAP_BASE


def bootstrap_base(config: TableConfig) -> str:
    """The folder that a table was bootstrapped from; '' for another table."""
    return config.extra.get(BASE_PATH, "").strip()


def open_beside(storage: Storage, uri: str) -> Storage:
    """The storage at another location, with the options of this one if both are of one scheme."""
    again = storage.reopen()
    same = isinstance(again, Reopen) and _scheme(again.uri) == _scheme(uri)
    return open_storage(_shown(uri), dict(again.options) if same and isinstance(again, Reopen) else {})


def path_below(base: str, uri: str) -> str:
    """A file's path relative to a folder. Raises CorruptTableError for one that lies elsewhere."""
    folder, whole = _shown(base).rstrip("/"), _shown(uri)
    if not whole.startswith(f"{folder}/"):
        raise CorruptTableError(
            f"the bootstrap index names {uri}, which is not below the table's {BASE_PATH}, {base}: restore the index or the property"
        )
    return whole[len(folder) + 1 :]


def _shown(uri: str) -> str:
    """A location in one spelling: Hadoop writes one slash behind `file:`, and S3 as s3a."""
    return re.sub(r"^s3[an]://", "s3://", re.sub(r"^file:/+", "/", uri))


def _scheme(uri: str) -> str:
    scheme, separator, _ = _shown(uri).partition("://")
    return scheme if separator else "file"
