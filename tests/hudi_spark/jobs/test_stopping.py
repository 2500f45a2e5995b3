"""Being asked to end: by a signal to the process itself, and no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from hudi_spark.jobs.stopping import Stopping

FORKS = """
import multiprocessing
import time

from hudi_spark.jobs.stopping import Stopping

if __name__ == "__main__":
    with Stopping() as stopping:
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        child.start()
        child.terminate()
        child.join(20)
        stopping.wait(1)
        print(child.exitcode, stopping.told())
"""


def test_a_signal_is_heard_while_it_lasts_and_means_what_it_meant_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Stopping() as stopping:
        assert not stopping.told()
        os.kill(os.getpid(), signal.SIGTERM)
        began = time.monotonic()
        stopping.wait(20)
        assert stopping.told()
        assert time.monotonic() - began < 10
    assert signal.getsignal(signal.SIGTERM) == before
    assert signal.set_wakeup_fd(-1) == -1
    assert "stopping" not in [each.name for each in threading.enumerate()]


def test_the_end_of_a_process_that_a_source_has_forked_is_not_that_of_the_driver() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=60,
    )
    assert done.stdout.split() == ["-15", "False"], done.stderr


@pytest.mark.parametrize("told", [False, True])
def test_who_is_no_main_thread_hears_what_it_is_told(*, told: bool) -> None:
    found: list[bool] = []

    def work() -> None:
        with Stopping() as stopping:
            if told:
                stopping.tell()
            found.append(stopping.told())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [told]
