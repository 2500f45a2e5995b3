"""Apache Hudi tables on Arrow: open, create, read, write. No JVM.

`import hudi_table` loads nothing heavy; the names below are loaded when they are first used.

Here belongs only what a program asks for by name; the layers are described in
`docs/architecture.md`.

Begin with `api.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hudi_table.version import __version__

if TYPE_CHECKING:
    from hudi_table.api import HudiTable, create_table, downgrade_table, open_table, upgrade_table, write_hudi
    from hudi_table.errors import (
        AccessDeniedError,
        CommitStateUnknownError,
        CorruptTableError,
        DataLossError,
        ExpiredError,
        HudiError,
        InvalidDataError,
        InvalidOptionError,
        InvalidRequestError,
        InvalidSchemaError,
        InvariantError,
        TableNotFoundError,
        UnavailableError,
        UnsupportedTableError,
        WriteAbortedError,
        WriteConflictError,
    )
    from hudi_table.unstructured import read_blobs, vector_search
    from hudi_table.write.functions import register_key_generator, register_merger
    from hudi_table.write.result import CommitResult

__all__ = [
    "AccessDeniedError",
    "CommitResult",
    "CommitStateUnknownError",
    "CorruptTableError",
    "DataLossError",
    "ExpiredError",
    "HudiError",
    "HudiTable",
    "InvalidDataError",
    "InvalidOptionError",
    "InvalidRequestError",
    "InvalidSchemaError",
    "InvariantError",
    "TableNotFoundError",
    "UnavailableError",
    "UnsupportedTableError",
    "WriteAbortedError",
    "WriteConflictError",
    "__version__",
    "create_table",
    "downgrade_table",
    "open_table",
    "read_blobs",
    "register_key_generator",
    "register_merger",
    "upgrade_table",
    "vector_search",
    "write_hudi",
]


if not TYPE_CHECKING:  # or a name that is misspelt would pass for one of any type

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'hudi_table' has no attribute {name!r}")
        if name.endswith("Error"):
            from hudi_table import errors as home
        elif name.startswith("register_"):
            from hudi_table.write import functions as home
        elif name in ("read_blobs", "vector_search"):
            from hudi_table import unstructured as home
        else:
            from hudi_table import api as home
        return getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
