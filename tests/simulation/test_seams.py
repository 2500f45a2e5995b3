"""All that a run follows from is in the simulator's hands: the library makes threads, and what they
wait by, in one module."""

from __future__ import annotations

import re

from tests.tidy.sources import production_sources

THREADS = "spark_app/hudi_table/table/store/threads.py"
NOTHING_WAITS = {
    "spark_app/hudi_table/model/bounded.py": "the lock of a cache",
    "spark_app/hudi_table/table/engine/progress.py": "the lock of a function of the caller",
    "spark_app/hudi_table/table/store/retry.py": "who waits for a place among the requests of a real store",
    "spark_app/hudi_table/table/store/opening.py": "the lock of the clients of real stores",
    "spark_app/hudi_table/sources/jdbc/source.py": "who waits for the rows of a real database",
}
MAKES_THREADS = re.compile(
    r"^\s*(import|from) (threading|concurrent\.futures|queue|asyncio|multiprocessing)\b", re.MULTILINE
)
ONLY_TYPES = re.compile(
    r"^from (concurrent\.futures import (Executor|Future|, )+|queue import (Empty|Full|Queue|, )+)$", re.MULTILINE
)


def test_the_library_makes_its_threads_in_one_module() -> None:
    found = {
        source.path
        for source in production_sources()
        if source.path.startswith("spark_app/hudi_table/") and MAKES_THREADS.search(ONLY_TYPES.sub("", source.text))
    }
    assert found == {THREADS, *NOTHING_WAITS}
