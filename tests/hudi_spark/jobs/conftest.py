"""What tests of jobs share: the session as it was before a job, and a folder of which a queue
tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_spark.jobs.session import FIXED
from hudi_table.sources.files import notified
from tests.hudi_spark.jobs.test_ingest_notified import Landing
from tests.hudi_spark.jobs.test_ingest_notified import _environment as of_store
from tests.support.s3 import running_s3


@pytest.fixture
def session_as_it_was(spark: SparkSession) -> Iterator[None]:
    """A job sets properties of the session that it finds; other tests have their own."""
    before = {key: spark.conf.get(key) for key in FIXED}
    yield
    for key, value in before.items():
        spark.conf.set(key, value or "")


@pytest.fixture
def told_landing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Landing]:
    """A folder of files of which a queue tells."""
    for name, value in of_store().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(notified, "WAIT_SECONDS", 0)
    with running_s3() as store:
        found = Landing(store, tmp_path / "lake")
        found.subscribe()
        yield found
