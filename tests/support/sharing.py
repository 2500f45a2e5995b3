"""How two processes share the tests (`make test`): one begins with the tests beside Hudi, the other with those on Spark.

So only one session of each engine starts, and one API server for each folder that has one; the many short tests are spread over whoever is free. The scheduler
decides by folder, since only names of tests reach it.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/hudi_spark/", "tests/interop/", "tests/cluster/", "tests/charts/")


class FoldersTogether(LoadScopeScheduling):
    """All tests of one of `TOGETHER` are one piece of work, handed out first for its size; every other test is one of its own."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FoldersTogether:
    return FoldersTogether(config, log)
