"""Point lookups as a worker of its own: all columns of the rows of some keys, by a scan whose
filter names the keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.settings import KEY
from hudi_table import open_table
from hudi_table.table.store.ports import Storage

KEYS = "keys.json"
OPENED = "opened.json"


class Lookups:
    """The contender. The base files that it opened are told in a file beside the keys."""

    def lookup(self, rows: Path, base: Path) -> None:
        """The rows of the keys in `KEYS`, each of which has one."""
        keys = json.loads((rows / KEYS).read_text())
        table = open_table(str(base))
        opened = Opened(table.context.storage)
        table.context.storage = opened
        found = table.scan(filter=key_filter(keys)).to_arrow()
        assert sorted(found[KEY].to_pylist()) == sorted(keys), f"{len(found)} rows of {len(keys)} keys"
        (rows / OPENED).write_text(json.dumps(len(opened.paths)))


class Opened:
    """A storage that remembers which base files were opened for reading, only their footers or
    more."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self.paths: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open_read(self, path: str) -> Any:
        """The file."""
        if path.endswith(".parquet"):
            self.paths.add(path)
        return self._inner.open_read(path)


def key_filter(keys: list[str]) -> str:
    """`KEY in (…)`."""
    return f"{KEY} in ({', '.join(repr(key) for key in keys)})"
