"""One contender in a process of its own, kept warm: `python -m bench.worker NAME [--bloom]
[--table-version 9]`.

JSON lines: {"step": a method of the contender, "rows": folder, "base": folder, "version": of the
table, if it is another one} on stdin, {"seconds": wall} on stdout once per line, after a first line
when the session stands. A failure ends the process; its traceback is on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def contender(name: str, bloom: bool, version: int = 6) -> Any:
    """The contender of that name; what it needs is imported here and not before. `version`: of its
    tables, in the races that are run on two."""
    if name == "floor":
        from bench.floor import Floor

        return Floor()
    if name in ("local", "spark"):
        from bench.ours import Local, Spark

        return (Local if name == "local" else Spark)(bloom=bloom, version=version)
    if name == "spark-1":
        from bench.ours import Spark

        return Spark(bloom=bloom, tasks=1)
    if name in ("local-logs", "spark-logs", "hudi-rs"):
        from bench.logs_ours import HudiRs, LocalLogs, SparkLogs

        if name == "hudi-rs":
            return HudiRs()
        return (LocalLogs if name == "local-logs" else SparkLogs)(version)
    if name in ("local-services", "spark-services"):
        from bench.services_ours import LocalServices, SparkServices

        return LocalServices() if name == "local-services" else SparkServices()
    if name.startswith("hudi-services-"):
        from bench.services_hudi import HudiServices

        return HudiServices(name.removeprefix("hudi-services-"))
    if name.startswith("hudi-store-"):
        from bench.store_hudi import HudiStore

        return HudiStore(name.removeprefix("hudi-store-"))
    if name.startswith("hudi-logs-"):
        from bench.logs_hudi import HudiLogs

        return HudiLogs(name.removeprefix("hudi-logs-"), version)
    if "-streams" in name:
        return _follower(name)
    if name.startswith("hudi-index-"):
        from bench.indexes_hudi import HudiIndexed

        return HudiIndexed(name.removeprefix("hudi-index-"))
    if name.startswith(("local-index-", "delta-index-")):
        from bench.indexes_ours import DeltaIndexed, LocalIndexed

        kind = name.partition("-index-")[2]
        return LocalIndexed(kind) if name.startswith("local") else DeltaIndexed(kind)
    if name.startswith("reads-"):
        from bench.reads_steps import READERS

        return READERS[name]()
    if name == "lookup":
        from bench.lookup_steps import Lookups

        return Lookups()
    if name == "planning":
        from bench.planning_steps import Planning

        return Planning()
    from bench.peers import HUDI_OF, Delta, Hudi

    return Delta() if name == "delta" else Hudi(bloom=bloom, version=HUDI_OF[version], table_version=version)


def _follower(name: str) -> Any:
    if name.startswith("hudi-streams-"):
        from bench.streams_hudi import HudiStreams

        return HudiStreams(name.removeprefix("hudi-streams-"))
    from bench.streams_ours import LocalStreams, SparkStreams

    return LocalStreams() if name == "local-streams" else SparkStreams()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", help="a contender; see `contender`")
    parser.add_argument("--bloom", action="store_true")
    parser.add_argument("--table-version", type=int, default=6)
    arguments = parser.parse_args()
    # Java and Python both print to descriptor 1: keep the answers apart from their chatter.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    start = time.perf_counter()
    running = {arguments.table_version: contender(arguments.name, arguments.bloom, arguments.table_version)}
    print(json.dumps({"seconds": time.perf_counter() - start}), file=answers)
    for line in sys.stdin:
        command = json.loads(line)
        version = command["version"] or arguments.table_version
        if version not in running:
            running[version] = contender(arguments.name, arguments.bloom, version)
        start = time.perf_counter()
        getattr(running[version], command["step"])(Path(command["rows"]), Path(command["base"]))
        print(json.dumps({"seconds": time.perf_counter() - start}), file=answers)


if __name__ == "__main__":
    main()
