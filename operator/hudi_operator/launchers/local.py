"""The Local launcher: an attempt is a process on this machine, with a folder that outlives it.

`<folder>/<attempt>/` holds `run.json` (what the plan said), `spec.json`, `process.json` (which
process), and what the job writes: `result.json`, `progress.jsonl`, `log.txt`. A launcher that
starts anew finds its attempts there, running or not.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import Identity
from hudi_operator.api.schema import to_document
from hudi_operator.api.status import RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.errors import InvalidSpecError
from hudi_operator.launchers.base import REASON_OF_EXIT_CODE, ended
from hudi_operator.manifests.jobs import CREDENTIAL_VARIABLES
from hudi_operator.manifests.refusals import refused_on_machine
from hudi_operator.plan.effects import Launch
from hudi_operator.plan.observed import Problem
from hudi_table.errors import CorruptTableError, UnavailableError
from hudi_table.model.job.jobspec import JobResult

JOB_MODULE = "hudi_spark.jobs"
STOP_SECONDS_MAX = 30.0
ATTEMPTS_KEPT = 100
LOG_LINE_LENGTH_MAX = 400


class LocalLauncher:
    """Jobs as processes. One launcher at a time works on a folder; the local runtime's lock sees to
    that."""

    def __init__(self, folder: Path, module: str = JOB_MODULE) -> None:
        self._folder = folder
        self._module = module
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._read: dict[str, int] = {}

    def launch(self, owner: Identity, wanted: Launch, secret: Mapping[str, str]) -> bool:
        """Start the attempt, or return False if its folder exists. See `Launcher.launch`."""
        run = wanted.run
        folder = self._folder / run.name
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir()
        except FileExistsError:
            return False
        self._forget_oldest()
        _write(folder / "run.json", {"owner": owner.uid, "run": to_document(run)})
        spec = replace(wanted.spec, progress=str(folder / "progress.jsonl"))
        (folder / "spec.json").write_text(spec.to_json(), encoding="utf-8")
        command = [sys.executable, "-m", self._module, str(folder / "spec.json"), str(folder / "result.json")]
        with (folder / "log.txt").open("wb") as log:
            try:
                child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=_environment(secret) | {each.name: each.value or "" for each in wanted.spark.driver.env},
                    start_new_session=True,  # Ctrl-C reaches only us; we stop the job with its JVM
                )
            except OSError as error:
                raise UnavailableError(f"the job process could not be started: {error}", path=str(folder)) from error
        self._children[run.name] = child
        _write(folder / "process.json", {"pid": child.pid, "born": _born(child.pid)})
        return True

    def objection(self, owner: Identity, spec: HudiTableSpec) -> Problem | None:
        """Settings of pods."""
        del owner
        errors = refused_on_machine(spec)
        return Problem(InvalidSpecError.name(), "; ".join(map(str, errors))) if errors else None

    def heard(self, uid: str) -> None:
        """Nothing: its processes are its own."""

    def runs(self, owner: Identity) -> tuple[RunStatus, ...]:
        """The attempts of a resource, newest first."""
        found = []
        for path in self._folder.glob("*/run.json"):
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["owner"] == owner.uid:
                found.append(self._run_as_seen(_run_of(document["run"], path), path.parent))
        return tuple(sorted(found, key=lambda r: (r.started or "", r.attempt), reverse=True))

    def is_running(self, name: str) -> bool:
        """Whether an attempt's process runs, whoever started it."""
        child = self._children.get(name)
        return child.poll() is None if child is not None else _is_running(self._folder / name / "process.json")

    def progress(self, names: Iterable[str]) -> Iterator[str]:
        """What the jobs of these attempts have said since the last call, line by line."""
        for name in names:
            path = self._folder / name / "progress.jsonl"
            if not path.exists():
                continue
            with path.open("rb") as lines:
                lines.seek(self._read.get(name, 0))
                for line in lines:
                    if not line.endswith(b"\n"):
                        break
                    self._read[name] = self._read.get(name, 0) + len(line)
                    with contextlib.suppress(ValueError):
                        yield str(json.loads(line).get("message", ""))

    def cancel(self, owner: Identity, name: str) -> None:
        """Ask a running job to end, with its children, and make it. It may be one that another
        launcher started."""
        del owner
        child = self._children.get(name)
        if child is not None:
            _end(child)
            return
        path = self._folder / name / "process.json"
        if _is_running(path):
            _signal(int(json.loads(path.read_text(encoding="utf-8"))["pid"]), signal.SIGKILL)

    def stop(self) -> None:
        """End every job that this launcher started."""
        for child in self._children.values():
            _end(child)

    def _forget_oldest(self) -> None:
        """Remove the folders of the oldest attempts that have ended; what became of them stands in
        the status."""
        found = sorted(self._folder.glob("*/run.json"), key=lambda path: path.stat().st_mtime)
        for path in found[: max(0, len(found) - ATTEMPTS_KEPT)]:
            if not self.is_running(path.parent.name):
                self._children.pop(path.parent.name, None)
                shutil.rmtree(path.parent)

    def _run_as_seen(self, run: RunStatus, folder: Path) -> RunStatus:
        if self.is_running(run.name):
            return run
        child = self._children.get(run.name)
        result = folder / "result.json"
        if result.exists():
            try:
                return ended(run, JobResult.from_json(result.read_text(encoding="utf-8")), _changed(result))
            except (ValueError, TypeError) as error:
                return replace(run, phase="Failed", reason="Invariant", message=f"{result} is no JobResult: {error}")
        code = child.returncode if child is not None else None
        finished = _changed(folder / "log.txt") if (folder / "log.txt").exists() else None
        said = _last_line(folder / "log.txt")
        return replace(
            run,
            phase="Lost",
            finished=finished,
            reason=REASON_OF_EXIT_CODE.get(code) if code is not None else None,
            message=f"the job ended with code {code} and no result: {said}" if code is not None else None,
        )


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    _signal(child.pid, signal.SIGTERM)
    try:
        child.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        _signal(child.pid, signal.SIGKILL)
        child.wait()


def _environment(secret: Mapping[str, str]) -> dict[str, str]:
    """Ours, but with the credentials of a Secret it has no others, and it finds the packages where
    we found them."""
    hidden = CREDENTIAL_VARIABLES if secret else ()
    found = {name: value for name, value in os.environ.items() if name not in hidden}
    found["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    # Spark's own workers would take whatever python3 is first in the path.
    found.setdefault("PYSPARK_PYTHON", sys.executable)
    return found | dict(secret)


def _write(path: Path, document: object) -> None:
    """Replace a file in one step: a reader sees the old or the new one."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(document, indent=2), encoding="utf-8")
    part.replace(path)


def _run_of(document: object, path: Path) -> RunStatus:
    run, errors = parse(RunStatus, document, "run")
    if run is None:
        raise CorruptTableError(f"{path} is no run: {errors[0]}; remove its folder", path=str(path))
    return run


def _is_running(path: Path) -> bool:
    """Whether the process that a file names is still that process: numbers are used again."""
    if not path.exists():
        return False
    document = json.loads(path.read_text(encoding="utf-8"))
    born = _born(int(document["pid"]))
    return born is not None and born == document["born"]


def _born(pid: int) -> str | None:
    """Start time of a process in the system's own ticks, `?` where the system does not tell, None
    if there is none."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return "?"
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return "?"
    return None if fields[0] == "Z" else fields[19]


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def _changed(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _last_line(path: Path) -> str:
    if not path.exists():
        return "no log"
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:LOG_LINE_LENGTH_MAX] if lines else "an empty log"
