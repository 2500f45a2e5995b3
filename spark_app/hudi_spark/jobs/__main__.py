"""The rim of a job process: JobSpec in, JobResult out, an exit code by error class when there can
be no result.

What does the work is loaded when it is known which work it is: a table service needs a third of the
modules of an ingest.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from hudi_spark.jobs.progress import Progress
from hudi_table.cli.without_pandas import leave_pandas_out
from hudi_table.errors import HudiError, InvalidRequestError, InvariantError
from hudi_table.model.job.jobspec import MEASURE_INDEX, JobResult, JobSpec
from hudi_table.model.service.services import ServiceType

USAGE = 64
TERMINATION_BYTES_MAX = 4096
"""Of a container's termination message; the kubelet cuts what is longer."""
COLLECTED_FROM = 50_000
"""New objects at which the collector looks for cycles. A client of Kafka hands out 20,000 messages
at a time, which are in none: looked at for every 700, Python's own number, each took 0.1 to 0.2 µs
more, a tenth (tried)."""
WORK = {
    "Ingest": "hudi_spark.jobs.ingest:run_ingest",
    "Bootstrap": "hudi_spark.jobs.ingests.bootstrap:run_bootstrap",
    "Purge": "hudi_spark.jobs.purge:run_purge",
    **dict.fromkeys((kind.value for kind in ServiceType), "hudi_spark.jobs.service:run_service"),
}
"""Type of work → the module and the function that do it."""
SOURCES_OF_OTHERS = frozenset({"Custom"})
"""Types of sources whose code another package brings."""


def run(arguments: list[str]) -> NoReturn:
    """What a process of ours alone does: `main`, and its end."""
    gc.set_threshold(COLLECTED_FROM)
    code = main(arguments, alone=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a JVM gateway's threads must not delay or change the end


def main(arguments: list[str], *, alone: bool = False) -> int:
    """Run a job and return its exit code: 0 when it succeeded or had nothing to do. `alone`: in a
    process of its own, which goes without pandas where it can."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m hudi_spark.jobs SPEC.json RESULT.json\n")
        return USAGE
    spec, attempt = None, ""
    try:
        spec = _read(Path(arguments[0]))
        attempt = spec.attempt
        if alone and _goes_without_pandas(spec):
            leave_pandas_out()
        result, code = _run(spec, Path(arguments[1])), 0
    except HudiError as error:
        traceback.print_exc()
        result = JobResult(attempt, "Failed", error_class=error.name(), message=str(error))
        code = error.exit_code
    except Exception as error:  # noqa: BLE001 - the rim: whatever else went wrong is a bug, and said to be one
        traceback.print_exc()
        result = JobResult(
            attempt, "Failed", error_class=InvariantError.name(), message=f"{type(error).__name__}: {error}"
        )
        code = InvariantError.exit_code
    path = Path(arguments[1])
    in_place = path.exists()
    _write(path, result, in_place=in_place)
    _end_spark()
    # The work is done and told: whatever befalls the measuring, even the end of the process, takes nothing of it back.
    index = _index(spec) if spec is not None and code == 0 else {}
    if index:
        _write(path, replace(result, index=index), in_place=in_place)
    return code


def _index(spec: JobSpec) -> dict[str, Any]:
    """What is measured of the index, where that is asked; nothing where it fails, for a later job
    measures again."""
    if not spec.work.get(MEASURE_INDEX):
        return {}
    try:
        # Only a job that is asked loads what measures.
        from hudi_spark.jobs.index import measure_index

        return measure_index(spec)
    except Exception:  # noqa: BLE001 - the rim: the job has done its work
        traceback.print_exc()
        return {}


def _read(path: Path) -> JobSpec:
    try:
        return JobSpec.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError) as error:
        raise InvalidRequestError(f"{path} cannot be read as a JobSpec: {error}", path=str(path)) from error


def _goes_without_pandas(spec: JobSpec) -> bool:
    """Whether nothing but ours runs in this process: no Spark, and no source or transform of
    another package, which may hand Arrow what pandas holds."""
    of_others = (spec.work.get("source") or {}).get("type") in SOURCES_OF_OTHERS
    of_others |= any("function" in step for step in spec.work.get("transform") or ())
    return spec.engine == "Local" and not of_others


def _run(spec: JobSpec, path: Path) -> JobResult:
    kind = str(spec.work.get("type"))
    if kind not in WORK:
        raise InvalidRequestError(f"work of type {kind!r} is not done by this release; it does {', '.join(WORK)}")

    def leave(result: JobResult) -> None:
        _write(path, result, in_place=path.exists())
        _end_spark()
        os._exit(0)

    module, _, name = WORK[kind].partition(":")
    does: Callable[[JobSpec, Progress], JobResult] = getattr(import_module(module), name)
    with Progress(spec.progress, leave) as progress:
        return does(spec, progress)


def _end_spark() -> None:
    """Once the result is reported, the job ends what it has started elsewhere. Only a job that had
    a Spark loads its modules."""
    if "hudi_spark.jobs.session" in sys.modules:
        sys.modules["hudi_spark.jobs.session"].end_executors()


def _write(path: Path, result: JobResult, *, in_place: bool) -> None:
    """The result appears whole: whoever finds it reads all of it. A file that is written `in_place`
    is what Kubernetes reads when the container has ended, up to a bound; it can be written and not
    replaced, so what it says already is written over in one go."""
    if in_place:
        data = result.within(TERMINATION_BYTES_MAX).to_json().encode()
        with path.open("r+b", buffering=0) as file:
            file.write(data.ljust(path.stat().st_size))
        return
    part = path.with_name(f"{path.name}.part")
    part.write_text(result.to_json(), encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    run(sys.argv[1:])
