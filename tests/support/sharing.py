"""How four processes share the tests (`make test`): each begins with the folder of one engine,
beside Hudi, on an API server, on Spark, on a broker.

So only one session of each engine starts, and one API server for each folder that has one. A file
whose tests share what one of its fixtures has made is one piece, too: it would be made in each
process. The many short tests are spread over whoever is free. What waits for a server or a JVM
leaves its core to the others: so there are two processes more than cores. The scheduler decides by
folder and file, since only names of tests reach it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

ROOT = Path(__file__).resolve().parents[2]
TOGETHER = (
    "tests/interop/",
    "tests/cluster/",
    "tests/hudi_spark/",
    "tests/streams/",
    "tests/streams/test_jdbc_",
    "tests/charts/",
    "tests/hudi_table/index/keystore/",
)
"""Folders that are one piece of work each, since their tests share an engine: begun in this order,
the longest first. Of the longest one the tests of databases, which need no broker, are a piece of
their own: whoever is free first takes them, and nobody waits for the rest at the end."""
PARSED = "tests/tidy/"
"""The folder whose tests share what they have parsed, all sources."""
LONG = (
    "tests/simulation/test_simulation",
    "tests/soak/",
    "tests/model/",
    "tests/hudi_table/test_",
    "tests/hudi_table/index/test_",
    "tests/pages/",
    "tests/endurance/",
)
"""Where single tests take longest. They are begun before the rest: nobody is to wait for one at the
end."""
SHARED = re.compile(r"""scope=["'](module|session)["']""")


@cache
def shares(file: str) -> bool:
    """Whether a file of tests has a fixture that is made once for all of them."""
    path = ROOT / file
    return path.is_file() and SHARED.search(path.read_text()) is not None


def piece_of(nodeid: str) -> str:
    """The piece of work that a test belongs to: its folder, its file, or the test alone."""
    file = nodeid.partition("::")[0]
    folder = max((folder for folder in (*TOGETHER, PARSED) if nodeid.startswith(folder)), key=len, default=None)
    return folder or (file if shares(file) else nodeid)


def turn_of(piece: str) -> tuple[int, int]:
    """When a piece is begun: folders in their order, what takes long, whole files, single tests."""
    if piece in TOGETHER:
        return 0, TOGETHER.index(piece)
    if piece.startswith((PARSED, *LONG)):
        return 1, next((rank for rank, prefix in enumerate(LONG) if piece.startswith(prefix)), 0)
    return (3 if "::" in piece else 2), 0


class Pieces(LoadScopeScheduling):
    """Hands out pieces in their turn."""

    def _split_scope(self, nodeid: str) -> str:
        return piece_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if not any(self.assigned_work.values()):
            for piece in sorted(self.workqueue, key=turn_of):
                self.workqueue.move_to_end(piece)
        super()._assign_work_unit(node)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """As the base class, which counts all that a process has ever done again after each test:
        here a piece that is done is forgotten."""
        super().mark_test_complete(node, item_index, duration)
        piece = piece_of(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][piece].values()):
            del self.assigned_work[node][piece]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Pieces:
    return Pieces(config, log)
