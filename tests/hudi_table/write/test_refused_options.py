"""No surface takes an option that is refused: every key, under every name, with a value that it
does not take."""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import uuid
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import hudi_spark
from hudi_table.api import HudiTable, create_table, write_hudi
from hudi_table.cli import exits
from hudi_table.cli.program import main
from hudi_table.cli.service_verbs import SERVICE_VERBS, ServiceVerb
from hudi_table.errors import HudiError, InvalidOptionError
from hudi_table.model.options.known import Fate, IgnoredOptionWarning, check_options, ignored_options, known_options
from hudi_table.model.service.services import ServiceRequest, ServiceType
from tests.support.options import all_advice, refused, taken
from tests.support.scale import scaled
from tests.support.written import SCHEMA, contents, new_table, rows

REFUSED = refused()
ROWS = rows(("a", "x", 1))
Options = Mapping[str, str]
WRITES: dict[str, Callable[[HudiTable, Options], object]] = {
    "write_hudi": lambda t, o: write_hudi(t, ROWS, options=o),
    "upsert": lambda t, o: t.upsert(ROWS, options=o),
    "insert": lambda t, o: t.insert(ROWS, options=o),
    "delete": lambda t, o: t.delete(ROWS, options=o),
    "bulk_insert": lambda t, o: t.write(ROWS, operation="bulk_insert", options=o),
    "insert_overwrite": lambda t, o: t.write(ROWS, operation="insert_overwrite", options=o),
    "insert_overwrite_table": lambda t, o: t.write(ROWS, operation="insert_overwrite_table", options=o),
    "delete_partition": lambda t, o: t.write(None, operation="delete_partition", partitions=["x"], options=o),
    "spark": lambda t, o: hudi_spark.write(object(), t, options=o),  # type: ignore[arg-type]
    "spark without rows": lambda t, o: hudi_spark.write(None, t, "delete_partition", partitions=["x"], options=o),
}
SERVICE_CALLS: dict[str, Callable[[HudiTable, Options], object]] = {
    "schedule_compaction": lambda t, o: t.schedule_compaction(o),
    "run_compaction": lambda t, o: t.run_compaction("20260101000000000", options=o),
    "compact": lambda t, o: t.compact(o),
    "compact_logs": lambda t, o: t.compact_logs(o),
    "schedule_clustering": lambda t, o: t.schedule_clustering(o),
    "preview_clustering": lambda t, o: t.preview_clustering(o),
    "run_clustering": lambda t, o: t.run_clustering("20260101000000000", options=o),
    "cluster": lambda t, o: t.cluster(o),
    "resize_buckets": lambda t, o: t.resize_buckets(5, options=o),
    "plan_clean": lambda t, o: t.plan_clean(o),
    "schedule_clean": lambda t, o: t.schedule_clean(o),
    "clean": lambda t, o: t.clean(o),
    "archive": lambda t, o: t.archive(o),
    "archive dry": lambda t, o: t.archive(o, dry_run=True),
    "build_metadata": lambda t, o: t.build_metadata(options=o),
    "expired_partitions": lambda t, o: t.expired_partitions(o),
    "drop_expired_partitions": lambda t, o: t.drop_expired_partitions(o),
}
DRY, DONE = (), ("--yes",)
VERBS = {
    "compact": (("--schedule",), ()), "cluster": (DRY, DONE), "resize": (("3",), ("3", "--yes")), "clean": (DRY, DONE), "archive": (DRY, DONE),
    "metadata": (("--build",), ("--build", "--yes")), "ttl": (DRY, DONE),
}  # fmt: skip


def service(kind: ServiceType, step: str) -> Callable[[HudiTable, Options], object]:
    return lambda table, options: getattr(table.services.of_type(kind, ServiceRequest(options, force=True)), step)()


JOBS = {f"{kind} {step}": service(kind, step) for kind in ServiceType for step in ("plan", "run")}
SURFACES = WRITES | SERVICE_CALLS | JOBS


@pytest.fixture(scope="module")
def table() -> HudiTable:
    made = new_table(type="MergeOnRead", index={"type": "Bucket", "buckets": 2})
    made.insert(ROWS)
    return made


@pytest.mark.parametrize("surface", SURFACES)
def test_every_refused_option_is_refused_by_name(surface: str, table: HudiTable) -> None:
    for key, value in REFUSED.items():
        with pytest.raises(InvalidOptionError) as caught:
            SURFACES[surface](table, {key: value})
        assert f"option {key!r}" in caught.value.message
    assert contents(table) == [("a", "x", 1)]


def test_no_table_is_created_by_them() -> None:
    place = f"memory://{uuid.uuid4().hex}/t"
    for key, value in REFUSED.items():
        with pytest.raises(InvalidOptionError) as caught:
            create_table(place, SCHEMA, record_key="id", options={key: value})
        assert f"option {key!r}" in caught.value.message
    assert create_table(place, SCHEMA, record_key="id")


@pytest.mark.parametrize("more", [DRY, DONE], ids=["plan", "do"])
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_of_hudictl_takes_them(
    verb: str, more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verbs share one gate: one plans and one acts with every key, each of the others with a
    few."""
    made = new_table(str(tmp_path / "t"), type="MergeOnRead", index={"type": "Bucket", "buckets": 2})
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    step = 1 if verb == ("compact" if more else "clean") else max(1, 40 // scaled(4))
    arguments = [verb, str(tmp_path / "t"), *VERBS[verb][bool(more)]]
    for key, value in list(REFUSED.items())[::step]:
        assert main([*arguments, "--option", f"{key}={value}"]) == exits.USAGE
        said = capsys.readouterr()
        assert f"option {key!r}" in said.err
        assert not said.out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert contents(made) == []


def test_those_are_the_verbs_that_take_options() -> None:
    assert set(VERBS) == {name for name, verb in SERVICE_VERBS.items() if takes_options(verb)}


def takes_options(verb: ServiceVerb) -> bool:
    parser = argparse.ArgumentParser()
    verb.arguments(parser)
    return "--option" in parser.format_help()


def test_what_they_take_is_taken() -> None:
    for key, value in taken():
        check_options({key: value})
        check_options({key: value.upper()})


def test_a_write_with_all_that_refused_options_take_is_a_write() -> None:
    options = {option.key: option.default for option in known_options().values() if option.fate is Fate.REFUSED}
    made = new_table(options=options)
    made.upsert(ROWS, options=options)
    assert contents(made) == [("a", "x", 1)]


def test_advice_is_told_once_by_name_and_changes_nothing() -> None:
    made = new_table()
    with pytest.warns(
        IgnoredOptionWarning, match=r"option 'hoodie\.embed\.timeline\.server' does nothing here: it belongs"
    ):
        made.upsert(ROWS, options={"hoodie.embed.timeline.server": "false"})
    assert contents(made) == [("a", "x", 1)]
    assert (
        ignored_options({"hoodie.embed.timeline.server": "true", "hoodie.metrics.on": "true"})[0][0]
        == "hoodie.metrics.on"
    )


def test_all_advice_is_told_by_name_by_creations_writes_and_services(table: HudiTable) -> None:
    advice = all_advice()
    calls: tuple[Callable[[Options], object], ...] = (
        lambda o: create_table(f"memory://{uuid.uuid4().hex}/t", SCHEMA, record_key="id", options=o),
        lambda o: table.upsert(ROWS, options=o),
        lambda o: table.clean(o),
    )
    for call in calls:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", IgnoredOptionWarning)
            call(advice)
        texts = {str(warning.message) for warning in told}
        assert {re.match("option '(.*?)' does nothing here", text)[1] for text in texts} == advice.keys()  # type: ignore[index] # it matches
    assert contents(table) == [("a", "x", 1)]


def test_a_call_that_passes_several_gates_says_it_once(tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    new_table(base)
    command = [sys.executable, "-m", "hudi_table", "clean", base, "--option", "hoodie.clean.parallelism=5"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.count("option 'hoodie.clean.parallelism' does nothing here") == 1


STRANGE = ("²", "1_000", "٣", "0x10", "1e400", "nan", "yes", "\x00", "--1", "9" * 40)


@pytest.mark.parametrize("surface", ["upsert", "archive", "Cleaning plan"])
def test_every_value_is_of_the_kind_of_its_option(surface: str, table: HudiTable) -> None:
    for option in known_options().values():
        if option.fate not in (Fate.ACTS, Fate.ADVICE) or option.values in ("text", "regex"):
            continue
        for value in STRANGE[: -1 if option.values.startswith("number") else None]:
            with pytest.raises(InvalidOptionError) as caught:
                SURFACES[surface](table, {option.key: value})
            assert option.key in caught.value.message


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.datasource.hive_sync.jdbcurl",
        "hoodie.metrics.datadog.api.key.supplier",
        "hoodie.write.lock.zookeeper.url",
    ],
)
def test_no_message_repeats_what_may_be_a_secret(key: str, table: HudiTable) -> None:
    with (
        pytest.warns(IgnoredOptionWarning)
        if known_options()[key].fate is Fate.ADVICE
        else contextlib.nullcontext() as told
    ):
        try:
            table.upsert(ROWS, options={key: "jdbc:x://u:hunter2@h"})
            said = str([str(warning.message) for warning in told or ()])
        except HudiError as error:
            said = str(error)
    assert "hunter2" not in said
    assert key in said
