"""Callbacks of HudiTables against a real receiver: order, repeats, kills, what is refused, and
where the secrets are not.

Aspects: (1) every commit, once it is taken, in order; (2) failures of receivers and what the status
says; (3) an operator that is killed; (4) what is not sent at all; (5) secrets; (6) who else goes
on.
"""

from __future__ import annotations

import json
import logging
import os
import random
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_operator.runtime.callbacks import courier, pool
from hudi_table import open_table
from hudi_table.api import HudiTable
from hudi_table.callbacks.signatures import HEADER, is_signed
from hudi_table.table.timeline.active import load_timeline
from tests.support.courier_bench import SECRET, CourierBench, hasten, table_in, waits_for
from tests.support.manifests import manifest
from tests.support.receiver import receiver
from tests.support.scale import scaled

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return table_in(tmp_path)


def hook(url: str, **changes: Any) -> dict[str, Any]:
    return {"name": "hook", "url": url, "secretRef": {"name": "hook"}, "since": "earliest", **changes}


def flights(folder: Path, *callbacks: dict[str, Any], name: str = "flights") -> dict[str, Any]:
    return manifest(name, location=f"file://{folder / name}", recordKey=["id"], orderingFields=["ts"], index={"type": "Bucket", "buckets": 1}, callbacks=list(callbacks))  # fmt: skip


def written(table: HudiTable, count: int) -> list[str]:
    """The instants of all writes that there are then."""
    for number in range(count):
        table.upsert(pa.table({"id": ["a"], "ts": pa.array([number], pa.int64())}))
    return [i.time for i in load_timeline(open_table(table.context.base_path).context).commits]


def test_every_commit_is_sent_once_in_order_signed_and_with_its_token(tmp_path: Path, table: HudiTable) -> None:
    made = written(table, 3)
    with receiver() as there, CourierBench(tmp_path / "state") as bench:
        bench.apply(flights(tmp_path, hook(there.url)))
        waits_for(lambda: there.taken == made, "the first commits do not come")
        made = written(table, 25)
        waits_for(lambda: there.taken == made, "later commits do not come")
        waits_for(lambda: bench.callback().get("lastDelivered") == made[-1], "the status does not say so")
        assert bench.callback()["lag"] == "0s"
        assert bench.condition()[:2] == ("True", "Delivered")
        sent = there.sent[0]
        assert is_signed(SECRET["signingKey"], sent.body, sent.headers[HEADER], time.time())
        assert sent.headers["Authorization"] == f"Bearer {SECRET['bearerToken']}"
        assert sent.event["source"].endswith("/flights")


def test_a_callback_begins_behind_its_instant_or_with_what_completes_from_now_on(
    tmp_path: Path, table: HudiTable
) -> None:
    written(table, 2)
    since = load_timeline(open_table(table.context.base_path).context).commits[0].moment
    with receiver() as there, receiver() as from_now, CourierBench(tmp_path / "state") as bench:
        bench.apply(flights(tmp_path, hook(there.url, since=since), hook(from_now.url, name="now") | {"since": None}))
        waits_for(lambda: bench.callback("now").get("position"), "it is not kept where it begins")
        made = written(table, 1)
        waits_for(lambda: from_now.taken == made[-1:], "what completes now does not come")
        waits_for(lambda: there.taken == made[1:], "what completed after the instant does not come")


def test_a_receiver_that_fails_is_tried_again_and_nothing_overtakes(tmp_path: Path, table: HudiTable) -> None:
    made = written(table, 4)
    with receiver(lambda n: 500 if n in (1, 2, 3) else 204) as there, CourierBench(tmp_path / "state") as bench:
        bench.apply(flights(tmp_path, hook(there.url)))
        waits_for(lambda: there.taken == made, "the commits do not come")
        asked = [each.event["data"]["instant"] for each in there.sent]
        assert asked == [made[0], *[made[1]] * 4, *made[2:]]
        waits_for(lambda: bench.condition()[:2] == ("True", "Delivered"), "it is not told that all is well")
        assert "lastError" not in bench.callback()
        signatures = {each.headers[HEADER] for each in there.sent}
        assert len(signatures) >= len(made)


def test_a_receiver_that_goes_on_failing_is_told_by_condition_event_and_status(
    tmp_path: Path, table: HudiTable
) -> None:
    made = written(table, 2)
    broken = [True]
    with receiver(lambda _: 503 if broken[0] else 200) as there, CourierBench(tmp_path / "state") as bench:
        bench.apply(flights(tmp_path, hook(there.url)))
        waits_for(lambda: bench.condition()[:2] == ("False", "ReceiverFails"), "no condition")
        assert bench.condition()[2] == "hook: the receiver answered 503"
        assert bench.callback()["lastError"] == "the receiver answered 503"
        broken[0] = False
        waits_for(lambda: there.taken == made, "it is not tried again")
        waits_for(lambda: "CallbacksResumed" in {each.reason for each in bench.events}, "no event")
        assert [each.reason for each in bench.events if each.reason == "ReceiverFails"] == ["ReceiverFails"]


def test_a_receiver_that_keeps_silent_holds_nobody_else_up(
    tmp_path: Path, table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = written(table, 3)
    with receiver(lambda _: -20) as silent, receiver() as there, CourierBench(tmp_path / "state") as bench:
        bench.apply(flights(tmp_path, hook(silent.url, name="silent"), hook(there.url)))
        waits_for(lambda: there.taken == made, "the other receiver waits", seconds=90)


def test_a_host_that_is_not_listed_is_never_asked_and_the_condition_names_the_value(
    tmp_path: Path, table: HudiTable
) -> None:
    written(table, 1)
    with receiver() as there, CourierBench(tmp_path / "state", allowed=["hooks.example.com"]) as bench:
        bench.apply(flights(tmp_path, hook(there.url)))
        waits_for(lambda: bench.condition()[:2] == ("False", "HostNotAllowed"), "no condition")
        assert bench.condition()[2] == (
            "hook: host 127.0.0.1 is not allowed; list it in callbacks.allowedHosts of the operator's chart, or correct url"
        )
        assert there.sent == []


@pytest.mark.parametrize("held", [{}, {"hook": {"bearerToken": "x"}}, {"hook": {"signingKey": " "}}])
def test_without_a_key_nothing_is_sent(tmp_path: Path, table: HudiTable, held: dict[str, Any]) -> None:
    written(table, 1)
    with receiver() as there, CourierBench(tmp_path / "state", secrets=held) as bench:
        bench.apply(flights(tmp_path, hook(there.url)))
        waits_for(lambda: bench.condition()[:2] == ("False", "SigningKeyMissing"), "no condition")
        assert "Secret 'hook' is not there, or has no signingKey" in bench.condition()[2]
        assert there.sent == []


def test_a_callback_that_is_taken_out_and_a_table_that_is_deleted_end_it(tmp_path: Path, table: HudiTable) -> None:
    made = written(table, 1)
    with receiver() as there, CourierBench(tmp_path / "state") as bench:
        bench.apply(flights(tmp_path, hook(there.url)))
        waits_for(lambda: there.taken == made, "it does not begin")
        bench.apply(flights(tmp_path))
        waits_for(lambda: not bench.status().get("callbacks") and bench.condition() == ("", "", ""), "its status stays")
        made = written(table, 1)
        time.sleep(1)
        assert len(there.taken) == len(made) - 1
        bench.apply(flights(tmp_path, hook(there.url)))
        waits_for(lambda: there.taken[-len(made) :] == made, "a new one does not begin anew")
        bench.remove()
        waits_for(lambda: not bench.pool._couriers, "a courier is left")


def test_no_secret_is_in_status_events_logs_or_what_is_sent(
    tmp_path: Path, table: HudiTable, caplog: pytest.LogCaptureFixture
) -> None:
    written(table, 2)
    caplog.set_level(logging.DEBUG)
    with receiver(lambda n: 500 if n == 0 else 204) as there, CourierBench(tmp_path / "state") as bench:
        bench.apply(flights(tmp_path, hook(there.url)))
        waits_for(lambda: bench.condition()[:2] == ("True", "Delivered"), "the commits do not come")
        bodies = b"".join(each.body for each in there.sent)
    texts = [caplog.text, repr(bench.events), json.dumps(bench.status()), bodies.decode()]
    texts += [path.read_text(errors="replace") for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert not [value for value in SECRET.values() for text in texts if value in text]


def test_a_panic_in_one_turn_does_not_end_the_thread_of_all_callbacks(
    tmp_path: Path, table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        """As what Rust raises."""

    turns, real = [Panic()], courier.Courier.turn

    def turn(self: courier.Courier) -> float:
        if turns:
            raise turns.pop()
        return real(self)

    monkeypatch.setattr(courier.Courier, "turn", turn)
    monkeypatch.setattr(pool, "BACKOFF_MAX_SECONDS", 0.1)
    made = written(table, 2)
    with receiver() as there, CourierBench(tmp_path / "state", threads=1) as bench:
        bench.apply(flights(tmp_path, hook(there.url)))
        waits_for(lambda: there.taken == made, "nothing comes behind the panic", seconds=90)


@pytest.mark.parametrize("seed", range(scaled(1, at_least=1)))
def test_an_operator_that_is_killed_again_and_again_forgets_no_commit(
    tmp_path: Path, table: HudiTable, seed: int
) -> None:
    chance = random.Random(seed)
    path = tmp_path / "manifest.json"
    with receiver(lambda n: 500 if n % 7 == 3 else 204) as there:
        path.write_text(json.dumps(flights(tmp_path, hook(there.url))))
        command = [sys.executable, "-m", "tests.support.courier_bench", str(tmp_path / "state"), str(path)]
        paths = os.pathsep.join(str(ROOT / name) for name in ("operator", "spark_app", "."))
        for round_ in range(4):
            made = written(table, 3)
            process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths})
            try:
                if round_ < 3:
                    waits_for(lambda: len(there.taken) > 2 * round_, "nothing comes", seconds=120)  # noqa: B023 - called in this round
                    time.sleep(chance.random() / 2)
                else:
                    waits_for(lambda: there.taken[-1:] == made[-1:], "the last does not come", seconds=120)  # noqa: B023
            finally:
                process.kill()
                process.wait()
    assert list(dict.fromkeys(there.taken)) == made
    # What comes again are the last ones, in order: none comes that was not told of before or is next.
    places = [made.index(each) for each in there.taken]
    assert all(after <= before + 1 for before, after in pairwise(places))
