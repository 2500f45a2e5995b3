"""Two HudiTables at one place: both say so, the older goes on, and the younger one's jobs never
start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table.table.store.clock import SystemClock
from tests.hudi_operator.runtime.test_local_runtime import QUICK, Place, conditions


def applied(place: Place, *documents: dict[str, Any]) -> dict[str, Mapping[str, Any]]:
    path = place.folder / "manifest.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    runtime = LocalRuntime([path], place.folder / "state", SystemClock(), place.lines.append, QUICK)
    return {each["metadata"]["name"]: each for each in runtime.run()}


@pytest.mark.parametrize("below", ["", "/inner"])
def test_the_older_goes_on_and_both_say_so(tmp_path: Path, below: str) -> None:
    place = Place(tmp_path)
    first = place.table(ingest=[])
    second = {**place.table(location=f"file://{place.location}{below}"), "metadata": {"name": "other"}}
    (alone,) = applied(place, first).values()
    assert "SharedLocation" not in conditions(alone)
    place.land("1.parquet")
    # Ages are told in seconds.
    stored = place.stored()
    stored.write_text(stored.read_text().replace(alone["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z"))
    found = applied(place, first, second)
    older, younger = conditions(found["flights"]), conditions(found["other"])
    assert "Stalled" not in older
    assert younger["Stalled"][:2] == ("True", "InvalidSpec")
    assert "spec.location: HudiTable default/flights, which is older, lies there, too" in younger["Stalled"][2]
    assert (older["SharedLocation"][0], younger["SharedLocation"][0]) == ("True", "True")
    assert "HudiTable default/other" in older["SharedLocation"][2]
    assert place.attempts() == []


def test_settings_of_pods_are_refused_on_a_machine_before_anything_is_looked_at(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.land("1.parquet")
    (found,) = applied(place, place.table(spark={"driver": {"priorityClassName": "high"}})).values()
    assert conditions(found)["Stalled"][:2] == ("True", "InvalidSpec")
    assert "spec.spark.driver.priorityClassName: is of pods" in conditions(found)["Stalled"][2]
    assert place.attempts() == []


def test_a_variable_reaches_a_job_on_a_machine(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.land("1.parquet")
    env = [{"name": "AWS_REGION", "value": "x"}]
    (found,) = applied(place, place.table(spark={"driver": {"env": env}})).values()
    assert conditions(found)["Ready"][:2] == ("True", "TableReadable")
