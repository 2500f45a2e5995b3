"""An earlier state of the library beside the present one, in one process: so that two versions of
our code work on one table at once.

`tests/data/earlier/hudi_table.tar.xz` has its source, without what no simulated process calls. It
is imported under a name of its own; errors, the port of stores and the maker of threads are those
of the present library, since what a store raises and waits by has to be known to both.
"""

from __future__ import annotations

import contextlib
import hashlib
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
KEPT = Path(__file__).parents[2] / ".cache" / "earlier"
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
    sys.path.append(str(_unpacked()))
    sys.modules.update({f"{NAME}.{name}": module for name, module in _SHARED.items()})

    def module(name: str) -> Any:
        return importlib.import_module(f"{NAME}.{name}")

    return Code(
        module("api").HudiTable,
        module("metadata.port").open_context,
        module("table.engine.local_engine").LocalEngine,
        module("table.timeline.active"),
    )


def _unpacked() -> Path:
    """The folder of its package. It stays, so that what Python compiles is found by the next
    process."""
    folder = KEPT / hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()[:16]
    if folder.exists():
        return folder
    KEPT.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=KEPT))
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(made, filter="data")
    (made / "hudi_table").rename(made / NAME)
    for source in (made / NAME).rglob("*.py"):
        source.write_text(_OURS.sub(NAME, source.read_text()))
    with contextlib.suppress(OSError):  # another process was quicker
        made.rename(folder)
    shutil.rmtree(made, ignore_errors=True)
    return folder


def code_of(name: str) -> Code:
    """By the name that a script gives it."""
    return earlier() if name == EARLIER else _PRESENT
