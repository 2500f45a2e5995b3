"""Two to eight writers, a service runner and two readers, each a process, on one table, with clocks
two hours apart; some are killed, some stopped.

Requests to the server go by a proxy that loses answers, keeps and doubles requests and refuses
some. A third kind of place is a small disk which is full from time to time.

Whatever happens to them: every acknowledged row is there, nothing comes twice, no write that failed
is visible, nobody meets an error but a conflict or a store that rests, and in the end no pending
instant is left. `make test` runs one kind of table for some seconds; `make test-full` runs each
kind, on local disk and behind an S3 server, in four passes of more than five hundred acknowledged
writes, or eight of half as many, each pass with kills and stops, a table version and a number of
writers of its own (HUDI_SOAK_PASS): two thousand of a kind in all. A pass that does not get there
in time fails and says how far it came; so does one in which no write is acknowledged for longer
than the dead are waited for.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import UnavailableError, WriteConflictError
from hudi_table.metadata.validate import differences
from hudi_table.model.service.findings import Severity
from hudi_table.model.table.config import TableType
from hudi_table.table.timeline.active import load_timeline
from tests.mirror.proxy import FaultyStore, Noise, before
from tests.soak.history import History
from tests.soak.worker import ENGINE, SCHEMA, SERVICE_OPTIONS, Role, can_cluster, live
from tests.support.scale import scaled
from tests.support.small_volume import filled, volume
from tests.support.versitygw import running_versitygw

ACKNOWLEDGED_LEAST = 25
SECONDS_MAX, REST_SECONDS = 560.0, 120.0
"""How long a pass may write, and how much less behind a server, where nobody can make files older:
that waits for the quarantine."""
SUSPECT_SECONDS, QUARANTINE_SECONDS = 30, 60
"""The floors of both settings: so that what is stopped past them is stopped for a minute and not
for an hour."""
LONG_STOP_SECONDS = QUARANTINE_SECONDS + 15.0
DISTURBED_EVERY = 10
"""Kills and stops go by acknowledged writes: on a busy machine kills by the clock would leave
nobody the time to write."""
STOPS_LONG_FROM = 10 * ACKNOWLEDGED_LEAST
ENDS_SECONDS_MAX = 30.0
PASSES_MAX = 12
FAULT_ONE_IN, LATE_SECONDS_MAX = 60, 3.0
VOLUME_MEGABYTES, FREE_BYTES_MAX, FULL_SECONDS_MAX = 512, 64 << 10, 3.0
PASS = int(os.environ.get("HUDI_SOAK_PASS", "0"))
WRITERS = (3, 2, 5, 8)[PASS % 4]
VERSION = (6, 9)[PASS // 2 % 2]
CLOCKS = {"keeper": 2.0, "reader0": 0.0, "reader1": 2.0} | {
    f"writer{n}": (0.0, 2.0, 1.0)[n % 3] for n in range(WRITERS)
}
RECOVERY_SECONDS_MAX = SUSPECT_SECONDS + 10.0
"""From a death to the next acknowledged write of anybody, as long as all who live go on."""
BUCKET = {"type": "Bucket", "buckets": 2}
INDEXES: dict[str, Any] = {"bucket": BUCKET, "simple": "Simple", "record-index": "RecordIndex"}
PROCESSES = multiprocessing.get_context("forkserver")
"""A process that has imported everything, pandas too, which pyarrow asks for, is copied for each
life: imports took two thirds of all time."""
PROCESSES.set_forkserver_preload(["tests.soak.worker", "obstore.store", "pandas"])


@dataclass
class Cast:
    """The processes, and what is done to them."""

    roles: dict[str, Role]
    chance: random.Random
    running: dict[str, ForkServerProcess] = field(default_factory=dict)
    stopped: dict[str, float] = field(default_factory=dict)
    volume: Path | None = None
    full: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    full_until: float = 0.0
    lives: int = 0
    did: dict[str, int] = field(default_factory=lambda: {"killed": 0, "stopped": 0, "stopped long": 0, "full": 0})

    def start(self, name: str) -> None:
        self.lives += 1
        role = replace(self.roles[name], name=f"{name}.{self.lives}", seed=self.chance.randrange(2**31))
        process = PROCESSES.Process(target=live, args=[role], name=role.name, daemon=True)
        process.start()
        self.running[name] = process

    def disturb(self, *, long: bool) -> None:
        """Kill somebody, or stop somebody for a moment or past every time-out. The first is always
        killed."""
        free = [name for name in self.running if name not in self.stopped]
        name = self.chance.choice(free)
        what = self.chance.random()
        if what < 0.4 or not self.did["killed"]:
            self.running[name].kill()
            self.running[name].join()
            self.start(name)
            self.did["killed"] += 1
        elif self.volume and what < 0.8 and not self.full_until:
            self.full.enter_context(filled(self.volume, self.chance.randrange(FREE_BYTES_MAX)))
            self.full_until = time.monotonic() + self.chance.uniform(0.2, FULL_SECONDS_MAX)
            self.did["full"] += 1
        elif long and what < 0.6 and not self.stopped:
            self._stop(name, LONG_STOP_SECONDS, "stopped long")
        else:
            self._stop(name, self.chance.uniform(0.2, 3.0), "stopped")

    def _stop(self, name: str, seconds: float, what: str) -> None:
        self._signal(name, signal.SIGSTOP)
        self.stopped[name] = time.monotonic() + seconds
        self.did[what] += 1

    def _signal(self, name: str, number: signal.Signals) -> None:
        pid = self.running[name].pid
        assert pid is not None
        os.kill(pid, number)

    def wake(self, *, everybody: bool = False) -> None:
        """Let those go on whose time is over, and give a full disk its room back."""
        if self.full_until and (everybody or time.monotonic() >= self.full_until):
            self.full.close()
            self.full_until = 0.0
        for name, until in list(self.stopped.items()):
            if everybody or time.monotonic() >= until:
                self._signal(name, signal.SIGCONT)
                del self.stopped[name]

    def died(self) -> list[str]:
        """Those that ended by themselves."""
        return [name for name, process in self.running.items() if name not in self.stopped and not process.is_alive()]

    def end(self) -> None:
        """Nobody is left; who does not end by itself is killed, as anybody may be."""
        self.wake(everybody=True)
        end = time.monotonic() + ENDS_SECONDS_MAX
        for process in self.running.values():
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table lies, by a proxy or on a volume that can be full."""

    uri: str
    storage: Mapping[str, str] = field(default_factory=dict)
    proxy: FaultyStore | None = None
    volume: Path | None = None


@pytest.fixture(
    params=[
        "disk",
        pytest.param("full", marks=pytest.mark.at_scale(2)),
        pytest.param("s3", marks=[pytest.mark.at_scale(2), pytest.mark.s3]),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with contextlib.ExitStack() as stack:
        if request.param == "disk":
            yield Place(str(tmp_path / "table"))
        elif request.param == "full":
            folder = tmp_path / "volume"
            if not stack.enter_context(volume(folder, VOLUME_MEGABYTES)):
                pytest.skip("making a volume takes root")
            yield Place(str(folder / "table"), volume=folder)
        else:
            proxy = stack.enter_context(before(stack.enter_context(running_versitygw(tmp_path / "store"))))
            yield Place(proxy.far.new_uri(), proxy.far.options, proxy)


@pytest.mark.parametrize(
    "index", [pytest.param(name, marks=[] if name == "simple" else pytest.mark.at_scale(2)) for name in INDEXES]
)
@pytest.mark.parametrize("kind", [pytest.param("CopyOnWrite", marks=pytest.mark.at_scale(2)), "MergeOnRead"])
def test_what_is_acknowledged_beside_others_stays_and_nothing_else_comes(
    kind: str, index: str, place: Place, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    uri, storage = place.uri, place.storage
    _create(uri, storage, kind, index)
    folder = tmp_path / "journals"
    folder.mkdir()
    base = Role("", "", uri, str(folder), 0, kind == "MergeOnRead", storage=storage, room=not place.volume)
    kinds = {name: "writer" if name.startswith("writer") else name.rstrip("01") for name in CLOCKS}
    roles = {name: replace(base, kind=kinds[name], ahead_hours=ahead) for name, ahead in CLOCKS.items()}
    chance = random.Random(f"{kind} {index} {uri[:2]} {os.environ.get('HUDI_SOAK_PASS', '')}")
    cast = Cast(roles, chance, volume=place.volume)
    if place.proxy:
        place.proxy.arm(Noise(FAULT_ONE_IN, LATE_SECONDS_MAX, chance.randrange(2**31)))
    history = History(folder)
    wanted = scaled(ACKNOWLEDGED_LEAST)
    try:
        longest = _live(cast, history, wanted, SECONDS_MAX - (REST_SECONDS if storage else 0))
    finally:
        (folder / "stop").touch()
        cast.end()
        noise = place.proxy.arm(None).times if place.proxy else 0
    history.look()
    print(dict(history.counts), cast.did, flush=True)
    assert not history.faults
    assert len(history.done) >= wanted
    assert cast.did["killed"]
    figure(len(history.done), "acknowledged writes")
    figure(history.counts["failed WriteConflict"], "writes that met a conflict")
    figure(cast.did["killed"], "processes killed")
    figure(cast.did["stopped long"], "processes stopped past every time-out")
    if place.proxy:
        assert noise
        figure(noise, "requests that met a fault of the network")
    if place.volume:
        assert cast.did["full"]
        figure(cast.did["full"], "times at which the disk was full")
    figure(round(longest), "seconds at the most without an acknowledged write")

    table = _at_rest(uri, storage)
    rows = table.scan(columns=["id", "by", "_hoodie_commit_time"]).to_arrow()
    assert history.against(rows, history.promised()) == []
    assert history.shared_rows(rows) == []
    assert [str(finding) for finding in table.doctor(keys=True) if finding.severity is Severity.ERROR] == []
    if index == "record-index":
        assert differences(table.context) == []


def _create(uri: str, storage: Mapping[str, str], kind, index: str) -> None:
    times = {
        "hoodie.lakeops.txn.suspect.seconds": str(SUSPECT_SECONDS),
        "hoodie.lakeops.txn.quarantine.seconds": str(QUARANTINE_SECONDS),
    }
    with_lookup = index == "record-index"
    table = create_table(
        uri, SCHEMA, record_key="id", partition_by="city", type=kind, storage_options=storage, options=times,
        index="GlobalSimple" if with_lookup else INDEXES[index], version=VERSION,
    )  # fmt: skip
    if with_lookup:
        table.build_metadata(["record_index"])
        table.use_index("RecordIndex")


def _live(cast: Cast, history: History, wanted: int, seconds: float) -> float:
    """Until enough was acknowledged: the seconds that one wait for a write took at the most. It
    fails at the first process that dies of itself."""
    for name in cast.roles:
        cast.start(name)
    end = time.monotonic() + seconds
    quiet_until, quiet_for = time.monotonic(), 5
    longest, acknowledged, since = 0.0, 0, 0.0
    while len(history.done) < wanted:
        time.sleep(0.1)
        cast.wake()
        history.look()
        assert not history.faults, json.dumps(history.faults)
        assert not cast.died()
        assert time.monotonic() < end, f"{len(history.done)} of {wanted} writes: {dict(history.counts)}, {cast.did}"
        if len(history.done) > acknowledged:
            longest = max(longest, time.monotonic() - since) if acknowledged else 0.0
            acknowledged, since = len(history.done), time.monotonic()
        assert not acknowledged or time.monotonic() - since < RECOVERY_SECONDS_MAX, (dict(history.counts), cast.did)
        if time.monotonic() >= quiet_until and len(history.done) >= quiet_for:
            cast.disturb(long=wanted > STOPS_LONG_FROM)
            quiet_until = time.monotonic() + cast.chance.uniform(0.5, 2)
            quiet_for = len(history.done) + cast.chance.randrange(DISTURBED_EVERY)
    return longest


def _at_rest(uri: str, storage: Mapping[str, str]) -> HudiTable:
    """The table once everything that waits is carried out or taken back, by nothing but its own
    calls."""
    table = open_table(uri, storage_options=storage)
    if storage:
        time.sleep(SUSPECT_SECONDS + 5)
    for number in range(PASSES_MAX):
        if not storage:
            _age(Path(uri), 2 * (SUSPECT_SECONDS + QUARANTINE_SECONDS))
        _finish(table)
        if not (pending := load_timeline(table.context).pending):
            return table
        if storage and number:
            time.sleep(QUARANTINE_SECONDS / 2)
    raise AssertionError(f"still pending: {pending}")


def _finish(table: HudiTable) -> None:
    """Whoever writes takes back what is dead; whoever keeps carries out what is planned."""
    with contextlib.suppress(WriteConflictError, UnavailableError):
        table.delete(pa.table({"id": ["nobody"], "city": ["all"], "by": [""]}, schema=SCHEMA), engine=ENGINE)
    if can_cluster(table):
        table.cluster(SERVICE_OPTIONS, engine=ENGINE)
    if table.context.config.type is TableType.MERGE_ON_READ:
        table.compact_logs(SERVICE_OPTIONS, engine=ENGINE)
        table.compact(SERVICE_OPTIONS, engine=ENGINE)
    table.clean(SERVICE_OPTIONS, engine=ENGINE)


def _age(folder: Path, seconds: float) -> None:
    """As if that much time had passed."""
    for path in (folder / ".hoodie").rglob("*"):
        if path.is_file():
            was = path.stat()
            os.utime(path, (was.st_atime - seconds, was.st_mtime - seconds))
