"""How much memory a driver may have, by its container and by its JobSpec, and how much it has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_spark.jobs.memory import Fill, fill_of, limit_of, resident_bytes
from hudi_table.model.job.jobspec import MEMORY_BYTES, JobResult

MIB = 1 << 20


def machine(root: Path, groups: str) -> Path:
    """A system whose process is in these control groups."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    return root


def group(root: Path, path: str, name: str, text: str) -> None:
    file = root / "sys/fs/cgroup" / path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_version_2_says_the_limit_of_a_container_and_of_a_group_outside_of_one(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/\n")
    group(root, "", "memory.max", "1073741824\n")
    assert limit_of({}, root) == 1 << 30
    (root / "proc/self/cgroup").write_text("0::/system.slice/job.service\n")
    group(root, "system.slice/job.service", "memory.max", "268435456\n")
    assert limit_of({}, root) == 256 * MIB
    group(root, "system.slice/job.service", "memory.max", "max\n")
    assert limit_of({}, root) is None


def test_version_1_says_the_same_though_the_path_is_that_of_the_machine(tmp_path: Path) -> None:
    root = machine(tmp_path, "5:cpu,cpuacct:/kubepods/x\n4:memory:/kubepods/x\n0::/kubepods/x\n")
    group(root, "memory", "memory.limit_in_bytes", "536870912\n")
    assert limit_of({}, root) == 512 * MIB
    group(root, "memory", "memory.limit_in_bytes", "9223372036854771712\n")
    assert limit_of({}, root) is None


def test_what_the_job_is_told_counts_where_it_is_lower_or_nothing_else_is_said(tmp_path: Path) -> None:
    assert limit_of({}, tmp_path) is None
    assert limit_of({MEMORY_BYTES: 64 * MIB}, tmp_path) == 64 * MIB
    root = machine(tmp_path, "0::/\n")
    group(root, "", "memory.max", str(128 * MIB))
    assert limit_of({MEMORY_BYTES: 64 * MIB}, root) == 64 * MIB
    assert limit_of({MEMORY_BYTES: 256 * MIB}, root) == 128 * MIB


def test_a_process_is_measured_with_its_children() -> None:
    before = resident_bytes(os.getpid())
    assert before > 10 * MIB
    holds = "data = bytearray(b'x') * (80 << 20); print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert resident_bytes(os.getpid()) > before + 60 * MIB
        child.communicate(b"\n")


def test_nothing_is_measured_where_the_system_does_not_tell(tmp_path: Path) -> None:
    assert resident_bytes(os.getpid(), tmp_path) == 0
    assert fill_of(None) is None


@pytest.mark.parametrize(("resident", "full"), [(849, False), (850, False), (851, True)])
def test_a_driver_is_full_beyond_85_in_a_hundred(resident: int, *, full: bool) -> None:
    assert Fill(resident * MIB, 1000 * MIB).is_full is full
    told = Fill(resident * MIB, 1000 * MIB).told(JobResult("a", "Succeeded", message="done", figures={"commits": 1.0}))
    assert told.message == f"done; ended for a successor to go on, since {resident} of 1,000 MiB of memory are taken"
    assert told.figures == {"commits": 1.0, "residentBytes": float(resident * MIB), "memoryBytes": 1000.0 * MIB}
