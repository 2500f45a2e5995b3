"""`make demo`: two HudiTables from landing files, twice, with a stream of what changes; then
status, timeline and queries.

Everything lies in `demo/` of the current folder, which is made anew.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent
DEMO = Path("demo")
STATE = DEMO / "state"
TABLE = DEMO / "lake" / "flights"
MERGE_ON_READ = DEMO / "lake" / "flights-mor"
LANDING = DEMO / "landing" / "flights"
STREAM_STARTS_MAX = 3
FLIGHTS, CANCELLED, OUTDATED = 336_776, 236, 9_999
QUERY = """
select date_format(time_hour, 'yyyy-MM') month, count(*) flights, round(avg(arr_delay), 1) arr_delay,
       max(arr_delay) latest, count_if(dep_time is null) never_departed
from flights group by 1 order by 1
"""
BY_CARRIER = (
    "select carrier, count(*) flights, max(arr_delay) latest from this_table group by 1 order by 2 desc limit 3"
)


def run(*command: str) -> None:
    """Show a command and run it; the demo ends where one fails."""
    sys.stdout.write(f"\n$ {shlex.join(command)}\n")
    sys.stdout.flush()
    programs = {"hudictl": [sys.executable, "-m", "hudi_table"], "python": [sys.executable]}
    code = subprocess.run([*programs[command[0]], *command[1:]], check=False).returncode
    if code:
        sys.exit(f"that ended with exit code {code}; nothing was cleaned up, look into {DEMO}/")


def title(text: str) -> None:
    """A line between the parts."""
    sys.stdout.write(f"\n── {text} {'─' * (76 - len(text))}\n")
    sys.stdout.flush()


def query() -> None:
    """The table through `spark.read.format("hudi")`, with no Hudi jar."""
    import hudi_spark
    from hudi_spark.sql import local_session

    spark = local_session()
    hudi_spark.register(spark)
    spark.read.format("hudi").load(str(TABLE)).createOrReplaceTempView("flights")
    spark.sql(QUERY).show(20)
    count, latest = spark.sql("select count(*), max(arr_delay) from flights").first() or (0, 0)
    spark.stop()
    if (count, latest < OUTDATED) != (FLIGHTS - CANCELLED, True):
        raise SystemExit(
            f"there are {count} flights with delays up to {latest}; {FLIGHTS - CANCELLED} below {OUTDATED} were expected"
        )
    sys.stdout.write(f"{count:,} flights = {FLIGHTS:,} - {CANCELLED} cancelled; no outdated report has won\n")


def follow() -> tuple[subprocess.Popen[str], threading.Thread]:
    """Start the stream, wait until it waits, and show what it says from then on."""
    command = ("python", os.path.relpath(EXAMPLE / "stream.py"), str(MERGE_ON_READ))
    for _ in range(STREAM_STARTS_MAX):
        sys.stdout.write(f"\n$ {shlex.join(command)} &\n")
        sys.stdout.flush()
        with (DEMO / "stream.log").open("a") as log:  # what Spark says, at every start
            stream = subprocess.Popen([sys.executable, *command[1:]], stdout=subprocess.PIPE, stderr=log, text=True)
        assert stream.stdout is not None
        lines = iter(stream.stdout)
        waiting = next((line for line in lines if "waiting" in line), "")
        sys.stdout.write(waiting)
        sys.stdout.flush()
        if waiting:
            break
        # Spark gives its Python ten seconds to start, which may not do on a busy machine.
        sys.stdout.write(f"Spark did not come up in time (exit code {stream.wait()}, see {DEMO}/stream.log)\n")
    else:
        sys.exit("the stream did not start; close other programs, or run make demo again")

    def show() -> None:
        for each in lines:
            sys.stdout.write(each)
            sys.stdout.flush()

    told = threading.Thread(target=show)
    told.start()
    return stream, told


def main() -> None:
    """The whole demo."""
    start = time.monotonic()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers would take whatever python3 comes first
    shutil.rmtree(DEMO, ignore_errors=True)
    generate = os.path.relpath(EXAMPLE / "generate.py")
    apply = ("hudictl", "local", os.path.relpath(EXAMPLE), "--state", str(STATE))
    sys.stdout.write(f"This takes some minutes, seven and a half on two busy cores. All files lie in {DEMO}/.\n")
    title("Ten months of flights lie in the landing folder")
    run("python", generate, "first", str(LANDING))
    run(*apply)
    title("A stream waits for changes of the merge-on-read table")
    stream, told = follow()
    title("Two more months, corrections and cancellations arrive")
    run("python", generate, "later", str(LANDING))
    run(*apply, "-o", "wide")
    if stream.wait():
        sys.exit(f"the stream ended with exit code {stream.returncode}: see {DEMO}/stream.log")
    told.join()
    title("What the table says of itself")
    run("hudictl", "info", str(TABLE))
    run("hudictl", "timeline", str(TABLE))
    run("hudictl", "query", str(MERGE_ON_READ), BY_CARRIER)
    title('spark.read.format("hudi"), no jar')
    sys.stdout.write(QUERY)
    sys.stdout.flush()
    with (DEMO / "query.log").open("w") as log:  # what Spark says while it starts
        code = subprocess.run([sys.executable, __file__, "query"], stderr=log, check=False).returncode
    if code:
        last = "\n".join((DEMO / "query.log").read_text().splitlines()[-8:])
        sys.exit(f"{last}\nthe query ended with exit code {code}: see {DEMO}/query.log")
    sys.stdout.write(f"Done in {time.monotonic() - start:.0f} s. The table is {TABLE}: try hudictl files {TABLE}\n")


if __name__ == "__main__":
    query() if sys.argv[1:] == ["query"] else main()
