"""`make demo-streaming`: two tables follow a PostgreSQL through Debezium and Kafka, and are seconds
behind it.

Database, connector and broker are started for it, on loopback, by what the tests start them with.
Everything that is kept lies in `demo-streaming/` of the current folder, which is made anew.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from examples.streaming.shop import TABLES, Shop
from hudi_table import open_table
from hudi_table.errors import HudiError
from tests.support.connect import following
from tests.support.kafka import running_broker
from tests.support.postgres import running_postgres

EXAMPLE = Path(__file__).resolve().parent
DEMO = Path("demo-streaming")
LOG = DEMO / "operator.log"
MANIFESTS = DEMO / "manifests"
PUBLISHED = "localhost:9092"
"""The broker of the manifests; that of the demo has another port."""
SECONDS, SHOWN_EVERY = 60, 5
LATE_SECONDS = 10
PATIENCE = 60.0
BAR = 50


def say(text: str = "") -> None:
    """A line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(seconds: int = SECONDS) -> None:
    """The whole demo, in which the shop is open for so many seconds."""
    began = time.monotonic()
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir()
    say(f"This takes up to three minutes. All files lie in {DEMO}/.")
    say("PostgreSQL, Kafka and Debezium start …")
    with running_postgres("wal_level=logical") as database, running_broker() as broker:
        shop = Shop(database.uri)
        shop.open()
        with following(broker, database, "public.orders,public.customers"), operator(broker.address) as running:
            say(f"{time.monotonic() - began:4.0f} s  They run. The shop opens; the operator follows its tables.\n")
            shop.trade()
            watch(shop, running, seconds)
            shop.close()
            compare(shop, running)
    for name in TABLES:
        show_freshness(name)
    say(f"Done in {time.monotonic() - began:.0f} s. Try: hudictl history {DEMO / 'lake' / 'orders'}")


@contextlib.contextmanager
def operator(broker: str) -> Iterator[subprocess.Popen[bytes]]:
    """The operator, which keeps a driver at work for each manifest of this folder."""
    MANIFESTS.mkdir()
    for manifest in EXAMPLE.glob("*.yaml"):
        (MANIFESTS / manifest.name).write_text(manifest.read_text().replace(PUBLISHED, broker))
    command = ["local", "--watch", str(MANIFESTS), "--state", str(DEMO / "state")]
    say(f"$ hudictl {shlex.join(command)} &")
    with LOG.open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "hudi_table", *command], stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def watch(shop: Shop, running: subprocess.Popen[bytes], seconds: int) -> None:
    """Say from time to time how far behind the table of orders is."""
    say("   time    changes    orders in the database    in the table    newest change in it")
    began = time.monotonic()
    for moment in range(SHOWN_EVERY, seconds + 1, SHOWN_EVERY):
        time.sleep(max(0.0, began + moment - time.monotonic()))
        if running.poll() is not None:
            sys.exit(f"the operator ended with exit code {running.returncode}: see {LOG}")
        here, now = shop.count("orders"), time.time()
        held = in_table("orders", ["updated_at"])
        newest = "no table yet" if held is None else f"{now - pc.max(held['updated_at']).as_py().timestamp():.1f} s ago"
        there = 0 if held is None else len(held)
        say(f"{moment:5} s {shop.changes:10,} {here:25,} {there:15,} {newest:>22}")


def in_table(name: str, columns: list[str]) -> pa.Table | None:
    """What a table shows, by `id`; None while there is none."""
    try:
        return open_table(str(DEMO / "lake" / name)).scan(columns=columns).to_arrow()
    except (HudiError, FileNotFoundError):
        return None


def compare(shop: Shop, running: subprocess.Popen[bytes]) -> None:
    """Wait until the tables are what the database is; the demo ends if they do not become so."""
    say("\nThe shop closes.")
    until = time.monotonic() + PATIENCE
    for name, columns in TABLES.items():
        wanted = shop.rows(name)
        while True:
            found = in_table(name, columns)
            if found is not None and found.sort_by("id").cast(wanted.schema).equals(wanted):
                break
            if time.monotonic() > until or running.poll() is not None:
                sys.exit(f"the table {name} is not what the database is: see {LOG}")
            time.sleep(0.5)
        say(f"{name}: {len(wanted):,} rows, each as in the database")


def show_freshness(name: str) -> None:
    """How long it took from a row's change until a commit showed it, as bars."""
    late = np.array(lateness(name))
    counts = np.histogram(late, bins=[*range(LATE_SECONDS + 1), np.inf])[0]
    say(f"\n{name}: seconds from a change to the commit that shows it, of rows that are still so")
    for second, count in enumerate(counts):
        said = f"{second:2} to {second + 1:2} s" if second < LATE_SECONDS else "more     "
        say(f"  {said} {'█' * round(BAR * count / counts.max()):{BAR}} {count:,}")
    say(f"  half of them within {np.quantile(late, 0.5):.1f} s, 99 of 100 within {np.quantile(late, 0.99):.1f} s")


def lateness(name: str) -> list[float]:
    """Of each row that changed after the table's first commit, which holds what was there
    before."""
    table = open_table(str(DEMO / "lake" / name))
    shown = {each["instant"]: each["modified"].timestamp() for each in table.timeline().to_pylist()}
    held = table.scan(columns=["updated_at", "_hoodie_commit_time"]).to_arrow()
    first = min(held["_hoodie_commit_time"].to_pylist())
    rows = held.filter(pc.greater(held["_hoodie_commit_time"], first)).to_pylist()
    return [shown[row["_hoodie_commit_time"]] - row["updated_at"].timestamp() for row in rows]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
