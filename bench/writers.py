"""Writers beside each other: one, two, four and eight processes upsert rows of a bucket of their
own into one table, on an S3 server where each request takes 30 ms.

`python -m bench.writers` is one of them. What is lost is counted: no two touch a row, so none
should end with a conflict.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench.far_store import running_far_store
from bench.process import ROOT, compiled
from bench.store import rows
from bench.tables import met_text, table_lines
from hudi_table import create_table, open_table
from hudi_table.errors import WriteConflictError
from tests.support.s3 import S3Server

WRITERS = (1, 2, 4, 8)
BUCKETS = 8
ROWS, UPDATED = 16_000, 500
DELAY = 0.03
WRITE_SECONDS = 45.0
BEGIN = "begin"
"""What every writer waits for, so that none has begun while another starts."""
FASTER_MIN, LOST_MAX = 4.0, 0.1


@dataclass(frozen=True, slots=True)
class Written:
    """What writers did together in `seconds`: commits, attempts that ended with a conflict, and the
    fewest commits of one of them."""

    seconds: float
    commits: int
    lost: int
    fewest: int

    @property
    def lost_share(self) -> float:
        """Of all attempts."""
        return self.lost / max(1, self.lost + self.commits)


def measured_writers(
    folder: Path, seconds: float, say: Callable[[str], None], writers: Sequence[int] = WRITERS
) -> dict[int, Written]:
    """Each number of writers on a table of its own. Raises AssertionError if a row that was
    acknowledged is not there."""
    found = {}
    with running_far_store(folder) as store:
        for count in writers:
            uri = _table(store.near)
            store.wait(DELAY)
            found[count] = _write(store.far, uri, count, seconds)
            store.wait(0.0)
            store.taken()
            say(f"{count} writers: {found[count]}")
    return found


def _table(server: S3Server) -> str:
    uri = server.new_uri()
    bucket = {"type": "Bucket", "buckets": BUCKETS}
    load = _rows()
    table = create_table(
        uri, load.schema, record_key="id", ordering_fields="ts", type="MergeOnRead", index=bucket,
        storage_options=server.options, version=6,
    )  # fmt: skip
    table.write(load, operation="bulk_insert")
    return uri


def _rows() -> pa.Table:
    return rows(ROWS, 0, 1).drop_columns(["p"])


def _write(server: S3Server, uri: str, count: int, seconds: float) -> Written:
    asked = json.dumps({"uri": uri, "options": server.options, "seconds": seconds})
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.writers", str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True,
            env=compiled() | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark_app")))},
        )
        for number in range(count)
    ]  # fmt: skip
    try:
        for process in processes:
            _tell(process, asked)
        for process in processes:
            _answer(process)
        for process in processes:
            _tell(process, BEGIN)
        answers = [_answer(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
            with process:  # closes its pipes
                process.wait()
    held = open_table(uri, storage_options=server.options).scan(columns=["id", "ts"]).to_arrow()
    for answer in answers:
        newest = held.filter(pc.is_in(held["id"], pa.array(answer["keys"])))
        assert set(newest["ts"].to_pylist()) == {answer["version"]}, "an acknowledged write is not there"
    commits = [answer["commits"] for answer in answers]
    return Written(seconds, sum(commits), sum(answer["lost"] for answer in answers), min(commits))


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    print(line, file=process.stdin, flush=True)


def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"a writer ended with exit code {process.wait()}")
    return json.loads(line)


def main() -> None:
    """One writer: it says what it will write, and once all are told to begin it upserts these rows
    of its bucket for some seconds."""
    number, asked = int(sys.argv[1]), json.loads(sys.stdin.readline())
    table = open_table(asked["uri"], storage_options=asked["options"])
    held = table.scan(columns=["id", "_hoodie_file_name"]).to_arrow()
    mine = held.filter(pc.starts_with(held["_hoodie_file_name"], f"{number:08}"))["id"].slice(0, UPDATED)
    load = _rows()
    update = load.filter(pc.is_in(load["id"], mine.combine_chunks()))
    commits = lost = version = 0
    print(json.dumps({"rows": len(update)}), flush=True)
    assert sys.stdin.readline().strip() == BEGIN
    until = time.monotonic() + asked["seconds"]
    while time.monotonic() < until:
        batch = update.set_column(1, "ts", pa.array([commits + lost + 1] * len(update)))
        try:
            table.upsert(batch)
        except WriteConflictError:
            lost += 1
        else:
            commits, version = commits + 1, commits + lost + 1
    print(json.dumps({"commits": commits, "lost": lost, "version": version, "keys": mine.to_pylist()}))


def writers_record(found: Mapping[int, Written]) -> dict[str, Any]:
    """Everything that was measured, and the targets."""
    one, most = found[min(found)], max(found)
    faster = found[most].commits / one.commits
    return {
        "writers": {
            str(count): asdict(each) | {"lost_share": round(each.lost_share, 3)} for count, each in found.items()
        },
        "targets": [
            {
                "what": f"commits of {most} writers beside those of one",
                "wanted": f"at least {FASTER_MIN:g} ×",
                "found": f"{faster:.1f} ×",
                "met": faster >= FASTER_MIN,
            },
            {
                "what": f"attempts of {most} writers that end with a conflict",
                "wanted": f"at most {LOST_MAX:.0%}",
                "found": f"{found[most].lost_share:.0%}",
                "met": found[most].lost_share <= LOST_MAX,
            },
        ],
    }


def writers_lines(held: Mapping[str, Any], machine: list[str]) -> list[str]:
    """The section as Markdown."""
    seconds = next(iter(held["writers"].values()))["seconds"]
    text = (
        f"Processes that each upsert {UPDATED} rows of a bucket of their own into one merge-on-read table, again and again for {seconds:g} seconds, on an S3 "
        f"server (versitygw) behind a proxy where each request takes {DELAY * 1000:.0f} ms. What was acknowledged is there afterwards."
    )
    body = [
        (
            count,
            str(v["commits"]),
            f"{v['commits'] / v['seconds']:.2f}",
            str(v["fewest"]),
            str(v["lost"]),
            f"{v['lost_share']:.1%}",
        )
        for count, v in held["writers"].items()
    ]
    head = ("writers", "commits", "a second", "fewest of one", "conflicts", "of all attempts")
    targets = [(t["what"], t["wanted"], t["found"], met_text(t)) for t in held["targets"]]
    goals = table_lines(("target", "wanted", "found", "met"), targets)
    return ["## Writers beside each other", "", *machine, "", text, "", *table_lines(head, body), "", *goals, ""]


if __name__ == "__main__":
    main()
