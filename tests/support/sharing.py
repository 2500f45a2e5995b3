"""How three processes share the tests (`make test`): each begins with the folder of one engine, beside Hudi, on Spark, on an API server, on a broker.

So only one session of each engine starts, and one API server for each folder that has one; the many short tests are spread over whoever is free. What
waits for a server or a JVM leaves its core to the others: so there is one process more than cores. The scheduler
decides by folder, since only names of tests reach it.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TOGETHER = (
    "tests/hudi_spark/",
    "tests/interop/",
    "tests/cluster/",
    "tests/charts/",
    "tests/hudi_table/index/keystore/",
    "tests/streams/",
)
LONG = (
    "tests/simulation/test_simulation",
    "tests/model/",
    "tests/hudi_table/test_",
    "tests/hudi_table/index/test_",
    "tests/pages/",
    "tests/endurance/",
)
"""Where single tests take longest. They are begun before the rest: nobody is to wait for one at the end."""


class FoldersTogether(LoadScopeScheduling):
    """All tests of one of `TOGETHER` are one piece of work, handed out first for its size; every other test is one of its own."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid)

    def schedule(self) -> None:
        """As the base class, which hands out the first pieces; what is left waits in the order of what takes long."""
        begins = self.collection is None
        super().schedule()
        if begins:
            for scope in [each for each in self.workqueue if not each.startswith((*TOGETHER, *LONG))]:
                self.workqueue.move_to_end(scope)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FoldersTogether:
    return FoldersTogether(config, log)
