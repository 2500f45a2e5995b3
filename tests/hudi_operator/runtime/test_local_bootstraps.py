"""A bootstrap as a manifest asks for it: real jobs of the local runtime on real files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_spark.jobs.ingests.bootstrap import run_bootstrap
from hudi_spark.jobs.progress import Progress
from hudi_table.api import open_table
from hudi_table.errors import UnavailableError
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.services.bootstrapping import run
from hudi_table.table.store.clock import SystemClock
from tests.hudi_operator.runtime.test_local_runtime import QUICK
from tests.support.bootstrapped import as_written, changed, contents, folder, rows_of, with_changes
from tests.support.manifests import manifest


@dataclass
class Place:
    """Twelve rows in files, and a manifest that makes a table of them."""

    base: Path
    lines: list[str]

    def apply(self, bootstrap: Mapping[str, Any] | None = None, **changes: Any) -> Mapping[str, Any]:
        source = {"type": "Files", "path": f"file://{self.base}/landing/", "format": "parquet"}
        spec = {
            "location": f"file://{self.base}/t",
            "recordKey": ["id"],
            "partitionBy": [{"field": "day"}],
            "paths": {"hiveStyle": True},
            "files": {"targetSize": "64Mi"},
            "ingest": [{"name": "feed", "source": source}],
            "bootstrap": {"path": f"file://{self.base}/in", **(bootstrap or {})},
        }
        if changes.pop("without", False):
            del spec["bootstrap"]
        path = self.base / "manifest.yaml"
        path.write_text(yaml.safe_dump(manifest(**(spec | changes))))
        return LocalRuntime([path], self.base / "state", SystemClock(), self.lines.append, QUICK).run()[0]

    def works(self, found: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(run["work"], run["phase"]) for run in reversed(found["status"]["runs"])]


def condition(found: Mapping[str, Any], kind: str) -> tuple[str, str, str]:
    (one,) = (each for each in found["status"]["conditions"] if each["type"] == kind)
    return one["status"], one["reason"], one["message"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder(tmp_path)
    (tmp_path / "landing").mkdir()
    return Place(tmp_path, [])


def test_the_files_become_the_table_before_an_ingest_writes_to_it(place: Place) -> None:
    before = contents(place.base / "in")
    pq.write_table(changed(3), place.base / "landing" / "0.parquet")
    found = place.apply()
    assert place.works(found) == [("Bootstrap", "Succeeded"), ("Ingest/feed", "Succeeded")], place.lines
    assert condition(found, "Bootstrapped")[:2] == ("True", "TableMade")
    assert found["status"]["runs"][1]["figures"]["skeletons"] == 4
    assert rows_of(open_table(place.base / "t")) == as_written(3) | with_changes(3)
    assert contents(place.base / "in") == before
    again = place.apply()
    assert (place.works(again), condition(again, "Ready")[0]) == (place.works(found), "True")


def test_partitions_may_be_copied_and_a_copy_is_of_any_version(place: Place) -> None:
    found = place.apply({"mode": "FullRecord", "pattern": "day=2024-01-01"})
    figures = found["status"]["runs"][0]["figures"]
    assert (figures["recordsInserted"], figures["skeletons"], figures["filesCopied"]) == (12, 2, 2), place.lines
    other = {"location": f"file://{place.base}/copy", "tableVersion": 9, "index": {"type": "Bucket", "buckets": 2}}
    place.base = place.base / "other"
    place.base.mkdir()
    folder(place.base)
    (place.base / "landing").mkdir()
    found = place.apply({"mode": "FullRecord"}, **other)
    assert condition(found, "Bootstrapped")[:2] == ("True", "TableMade"), place.lines
    table = open_table(place.base.parent / "copy")
    assert (table.context.config.version, rows_of(table)) == (9, as_written())


def test_an_attempt_that_was_cut_short_is_completed_by_the_next(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*_: object) -> None:
        raise UnavailableError("no store")

    table = {
        "name": "flights", "location": f"file://{place.base}/t", "recordKey": ["id"], "partitionBy": [{"field": "day"}],
        "paths": {"hiveStyle": True}, "type": "CopyOnWrite",
    }  # fmt: skip
    work = {"type": "Bootstrap", "path": f"file://{place.base}/in", "mode": "MetadataOnly"}
    cut_short = JobSpec(attempt="a", table=table, work=work, engine="Local")
    with monkeypatch.context() as patch, Progress("") as progress:
        patch.setattr(run, "_publish", cut)
        with pytest.raises(UnavailableError):
            run_bootstrap(cut_short, progress)
    assert not (place.base / "t" / ".hoodie" / "hoodie.properties").exists()
    assert list((place.base / "t").rglob("*.parquet"))
    found = place.apply()
    assert place.works(found) == [("Bootstrap", "Succeeded")], place.lines
    assert rows_of(open_table(place.base / "t")) == as_written()


def test_what_the_job_refuses_stands_in_the_condition_and_a_corrected_manifest_goes_on(place: Place) -> None:
    found = place.apply(paths={"hiveStyle": False})
    status, reason, message = condition(found, "Stalled")
    assert (status, reason) == ("True", "InvalidRequest"), place.lines
    assert "set paths.hiveStyle: true" in message
    found = place.apply({"path": f"file://{place.base}/landing"})
    assert "no Parquet file lies at" in condition(found, "Stalled")[2]
    assert condition(found, "Bootstrapped")[:2] == ("False", "NotYet")
    assert not (place.base / "t" / ".hoodie" / "hoodie.properties").exists()
    found = place.apply()
    assert rows_of(open_table(place.base / "t")) == as_written(), place.lines


def test_a_table_that_was_there_stays_as_it_is(place: Place) -> None:
    pq.write_table(changed(3), place.base / "landing" / "0.parquet")
    other: dict[str, Any] = {"location": f"file://{place.base}/plain"}
    place.apply(**other, without=True)
    found = place.apply(**other)
    assert condition(found, "Bootstrapped")[:2] == ("False", "TableWasThere"), place.lines
    assert place.works(found) == [("Ingest/feed", "Succeeded")]
    assert rows_of(open_table(place.base / "plain")) == with_changes(3)
    assert any("TableWasThere" in line for line in place.lines)
