"""The Local launcher: attempts are processes that a later launcher finds again. Real processes, a
stub of a job."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_operator.api.resources import Identity, Key
from hudi_operator.api.status import RunStatus
from hudi_operator.launchers import local
from hudi_operator.launchers.local import LocalLauncher
from hudi_operator.plan.effects import Launch
from hudi_table.model.job.jobspec import JobSpec

MODULE = "tests.support.stub_job"
SECRET = {"AWS_ACCESS_KEY_ID": "key-1", "AWS_SECRET_ACCESS_KEY": "very-secret-7f3a"}
WAIT_SECONDS_MAX = 60.0
OWNER = Identity(Key("HudiTable", "lake", "flights"), "uid", 1)
OTHER = Identity(Key("HudiTable", "lake", "other"), "other", 1)


def run(name: str = "flights-1", attempt: int = 1) -> RunStatus:
    return RunStatus(name, "Ingest/feed", "Running", 1, attempt, batch="b", started=f"2026-01-01T00:00:0{attempt}Z")


def spec(do: str, name: str = "flights-1") -> JobSpec:
    return JobSpec(name, {}, {"do": do})


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[LocalLauncher]:
    found = LocalLauncher(tmp_path / "attempts", MODULE)
    yield found
    found.stop()


def ended(launcher: LocalLauncher, name: str = "flights-1") -> RunStatus:
    """The run once its process has ended."""
    limit = time.monotonic() + WAIT_SECONDS_MAX
    while launcher.is_running(name):
        assert time.monotonic() < limit
        time.sleep(0.02)
    (found,) = launcher.runs(OWNER)
    return found


def test_a_run_is_told_as_running_and_then_as_its_result_says(launcher: LocalLauncher) -> None:
    assert launcher.launch(OWNER, Launch(run(), spec("succeed")), {})
    assert launcher.runs(OWNER)[0].phase in ("Running", "Succeeded")
    found = ended(launcher)
    assert (found.phase, found.instants, found.batch) == ("Succeeded", ("20260101000000000",), "b")
    assert found.finished is not None


def test_a_failure_keeps_its_name_and_message(launcher: LocalLauncher) -> None:
    launcher.launch(OWNER, Launch(run(), spec("fail")), {})
    found = ended(launcher)
    assert (found.phase, found.reason, found.message) == ("Failed", "InvalidData", "column 'id' is null")


def test_a_job_without_a_result_is_lost_and_its_exit_code_says_why(launcher: LocalLauncher) -> None:
    launcher.launch(OWNER, Launch(run(), spec("die")), {})
    found = ended(launcher)
    assert (found.phase, found.reason) == ("Lost", "CommitStateUnknown")
    assert "something broke" in (found.message or "")


def test_a_name_is_launched_once(launcher: LocalLauncher) -> None:
    assert launcher.launch(OWNER, Launch(run(), spec("sleep")), {})
    assert not launcher.launch(OWNER, Launch(run(), spec("sleep")), {})
    assert len(launcher.runs(OWNER)) == 1


def test_runs_of_others_are_not_told(launcher: LocalLauncher) -> None:
    launcher.launch(OTHER, Launch(run(), spec("succeed")), {})
    assert launcher.runs(OWNER) == ()


def test_runs_are_told_newest_first(launcher: LocalLauncher) -> None:
    for number in (1, 2):
        launcher.launch(OWNER, Launch(run(f"flights-{number}", number), spec("succeed", f"flights-{number}")), {})
    assert [found.name for found in launcher.runs(OWNER)] == ["flights-2", "flights-1"]


def test_a_new_launcher_finds_a_run_that_still_runs(launcher: LocalLauncher, tmp_path: Path) -> None:
    launcher.launch(OWNER, Launch(run(), spec("sleep")), {})
    anew = LocalLauncher(tmp_path / "attempts", MODULE)
    assert anew.is_running("flights-1")
    assert anew.runs(OWNER)[0].phase == "Running"
    assert not anew.launch(OWNER, Launch(run(), spec("sleep")), {})


def test_a_new_launcher_finds_what_became_of_a_run(launcher: LocalLauncher, tmp_path: Path) -> None:
    launcher.launch(OWNER, Launch(run(), spec("succeed")), {})
    ended(launcher)
    assert LocalLauncher(tmp_path / "attempts", MODULE).runs(OWNER)[0].phase == "Succeeded"


def test_a_killed_run_is_lost(launcher: LocalLauncher) -> None:
    launcher.launch(OWNER, Launch(run(), spec("sleep")), {})
    (child,) = launcher._children.values()
    os.kill(child.pid, signal.SIGKILL)
    found = ended(launcher)
    assert found.phase == "Lost"
    assert "code -9" in (found.message or "")


def test_a_folder_without_a_process_is_a_lost_run(launcher: LocalLauncher, tmp_path: Path) -> None:
    """The launcher was killed between making the folder and starting the process."""
    launcher.launch(OWNER, Launch(run(), spec("succeed")), {})
    ended(launcher)
    for name in ("process.json", "result.json", "log.txt"):
        (tmp_path / "attempts" / "flights-1" / name).unlink()
    assert LocalLauncher(tmp_path / "attempts", MODULE).runs(OWNER)[0].phase == "Lost"


def test_stopping_ends_the_jobs_that_run(launcher: LocalLauncher) -> None:
    launcher.launch(OWNER, Launch(run(), spec("sleep")), {})
    launcher.stop()
    assert not launcher.is_running("flights-1")


@pytest.mark.parametrize("whose", ["its own", "another launcher's"])
def test_one_job_can_be_ended_alone(launcher: LocalLauncher, tmp_path: Path, whose: str) -> None:
    launcher.launch(OWNER, Launch(run(), spec("sleep")), {})
    launcher.launch(OTHER, Launch(run("flights-2", 2), spec("sleep", "flights-2")), {})
    ender = launcher if whose == "its own" else LocalLauncher(tmp_path / "attempts", MODULE)
    ender.cancel(OWNER, "flights-1")
    assert ended(launcher, "flights-1").phase == "Lost"
    assert launcher.is_running("flights-2")
    ender.cancel(OWNER, "flights-1")
    ender.cancel(OWNER, "never-started")


def test_progress_is_told_line_by_line_and_once(launcher: LocalLauncher) -> None:
    launcher.launch(OWNER, Launch(run(), spec("succeed")), {})
    ended(launcher)
    assert list(launcher.progress(["flights-1"])) == ["succeed now"]
    assert list(launcher.progress(["flights-1"])) == []


def test_a_secret_reaches_the_job_and_no_file(
    launcher: LocalLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-somebody-else")
    launcher.launch(OWNER, Launch(run(), spec("succeed"), "s3"), SECRET)
    command = Path(f"/proc/{launcher._children['flights-1'].pid}/cmdline")
    assert SECRET["AWS_SECRET_ACCESS_KEY"] not in (command.read_text() if command.exists() else "")
    ended(launcher)
    digest = hashlib.sha256(SECRET["AWS_SECRET_ACCESS_KEY"].encode()).hexdigest()
    assert (tmp_path / "attempts" / "flights-1" / "seen").read_text() == digest
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert SECRET["AWS_SECRET_ACCESS_KEY"] not in path.read_text(), path


def test_the_oldest_attempts_are_forgotten_but_never_one_that_runs(
    launcher: LocalLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "ATTEMPTS_KEPT", 2)
    launcher.launch(OWNER, Launch(run("flights-0"), spec("sleep", "flights-0")), {})
    for number in range(1, 5):
        launcher.launch(OWNER, Launch(run(f"flights-{number}"), spec("succeed", f"flights-{number}")), {})
        while launcher.is_running(f"flights-{number}"):
            time.sleep(0.02)
        os.utime(tmp_path / "attempts" / f"flights-{number}" / "run.json", (number, number))
    os.utime(tmp_path / "attempts" / "flights-0" / "run.json", (0, 0))
    launcher.launch(OWNER, Launch(run("flights-5"), spec("succeed", "flights-5")), {})
    kept = sorted(path.name for path in (tmp_path / "attempts").iterdir())
    assert kept == ["flights-0", "flights-3", "flights-4", "flights-5"]
