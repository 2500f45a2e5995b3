"""An earlier state of the library beside the present one, in one process: so that two versions of
our code work on one table at once.

`tests/data/earlier/hudi_table.tar.xz` has its source, without what no simulated process calls. It
is imported under a name of its own; errors, the port of stores and the maker of threads are those
of the present library, since what a store raises and waits by has to be known to both.
"""

from __future__ import annotations

import atexit
import importlib
import re
import shutil
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hudi_table import errors
from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store import ports, threads
from hudi_table.table.timeline import active

ARCHIVE = Path(__file__).parents[1] / "data" / "earlier" / "hudi_table.tar.xz"
NAME = "earlier_hudi_table"
_SHARED = {"errors": errors, "table.store.ports": ports, "table.store.threads": threads}
_OURS = re.compile(r"\bhudi_table(?=\.| import)")


@dataclass(frozen=True)
class Code:
    """What a simulated process calls of one version. `active`: the module that lists timelines."""

    table: Any
    open_context: Any
    engine: Any
    active: Any


PRESENT, EARLIER = "present", "earlier"
_PRESENT = Code(HudiTable, open_context, LocalEngine, active)


@cache
def earlier() -> Code:
    """The earlier version, imported once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="earlier-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    (folder / "hudi_table").rename(folder / NAME)
    for source in (folder / NAME).rglob("*.py"):
        source.write_text(_OURS.sub(NAME, source.read_text()))
    sys.path.append(str(folder))
    sys.modules.update({f"{NAME}.{name}": module for name, module in _SHARED.items()})

    def module(name: str) -> Any:
        return importlib.import_module(f"{NAME}.{name}")

    return Code(
        module("api").HudiTable,
        module("metadata.port").open_context,
        module("table.engine.local_engine").LocalEngine,
        module("table.timeline.active"),
    )


def code_of(name: str) -> Code:
    """By the name that a script gives it."""
    return earlier() if name == EARLIER else _PRESENT
