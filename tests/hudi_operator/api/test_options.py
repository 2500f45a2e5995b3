"""`options` of both resources: nothing that is refused gets past, and what does nothing is said in
the status."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.options import ignored
from hudi_operator.api.resources import desired_service, desired_table
from hudi_operator.plan.checks import service_contradictions
from hudi_operator.plan.status.report import notes
from hudi_table.model.options.known import check_options
from tests.support.manifests import manifest, spec, stored
from tests.support.options import all_advice, refused, taken
from tests.support.service_plans import service

REFUSED = refused()


def of_table(options: dict[str, str], **more: Any) -> dict[str, str]:
    found = desired_table(stored(manifest(**spec(options=options, **more)))).errors
    return {error.path: error.message for error in found}


def of_service(options: dict[str, str]) -> dict[str, str]:
    document = {
        "apiVersion": "lakeops.dev/v1", "kind": "TableService", "metadata": {"name": "s", "uid": "u", "generation": 1},
        "spec": {"tableRef": {"name": "t"}, "type": "Cleaning", "options": options},
    }  # fmt: skip
    return {error.path: error.message for error in desired_service(document).errors}


@pytest.mark.parametrize("resource", [of_table, of_service])
def test_every_refused_option_is_an_error_by_name(resource: Any) -> None:
    few = dict(list(REFUSED.items())[:200])
    errors = resource(few) | resource(dict(list(REFUSED.items())[200:]))
    assert set(errors) >= {f"spec.options[{key}]" for key in REFUSED}
    for key in REFUSED:
        assert f"option {key!r}" in errors[f"spec.options[{key}]"]


def test_what_they_take_is_no_error() -> None:
    # What the manifest's own fields say is not for an option to say again otherwise.
    for key, value in taken():
        if value:
            check_options({key: value})
            assert of_service({key: value}) == {}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"hoodie.datasource.write.operation": "delete"}, "spec.ingest[0].operation says 'Upsert'"),
        ({"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, "spec.type says 'COPY_ON_WRITE'"),
        ({"hoodie.datasource.write.recordkey.field": "other"}, "spec.recordKey"),
        ({"hoodie.datasource.write.precombine.field": "other"}, "spec.orderingFields"),
        ({"hoodie.datasource.write.hive_style_partitioning": "true"}, "spec.paths.hiveStyle says 'false'"),
        ({"hoodie.index.type": "SIMPLE"}, "spec.index.type says 'BUCKET'"),
        ({"hoodie.bucket.index.num.buckets": "77"}, "spec.index.buckets says '"),
        ({"hoodie.bucket.index.hash.field": "other"}, "spec.index.hashFields says '"),
        ({"hoodie.table.name": "other"}, "metadata.name"),
    ],
)
def test_an_option_that_says_otherwise_than_a_field_is_an_error(options: dict[str, str], field: str) -> None:
    ((path, message),) = of_table(options).items()
    assert path == f"spec.options[{next(iter(options))}]"
    assert field in message


def test_what_does_nothing_is_a_note_of_the_table_and_a_condition_of_the_service() -> None:
    options = {"hoodie.embed.timeline.server": "false", "hoodie.parquet.max.file.size": "1000"}
    desired = desired_table(stored(manifest(**spec(options=options))))
    assert desired.errors == ()
    (note,) = notes(desired.spec, None)
    assert note.reason == "IgnoredOptions"
    assert note.message == "hoodie.embed.timeline.server: it belongs to Hudi's timeline server, which does not run here"
    assert ignored({"hoodie.parquet.max.file.size": "1"}) == ""
    assert service is not None


def test_each_advice_is_said_by_name() -> None:
    for key, value in all_advice().items():
        desired = desired_table(stored(manifest(**spec(options={key: value})))).spec
        (note,) = notes(desired, None)
        assert note.message.startswith(f"{key}: ")
        assert ignored({key: value}).startswith(f"{key}: ")


@pytest.mark.parametrize("value", ["²", "1_000", "٣", "9" * 40, "-1"])
def test_a_number_is_made_of_ascii_digits(value: str) -> None:
    (message,) = of_service({"hoodie.clean.commits.retained": value}).values()
    assert "is not a whole number from 1" in message


@pytest.mark.parametrize("resource", [of_table, of_service])
def test_a_level_that_the_codec_does_not_have_is_an_error(resource: Any) -> None:
    codec, level = "hoodie.parquet.compression.codec", "hoodie.lakeops.parquet.compression.level"
    assert "whose levels are 1 to 9" in resource({codec: "gzip", level: "15"})["spec.options"]
    assert resource({codec: "zstd", level: "15"}) == {}


@pytest.mark.parametrize(
    ("index", "key", "other"),
    [
        ("RecordIndex", "hoodie.metadata.record.level.index.enable", "partitioned_record_index"),
        ("PartitionedRecordIndex", "hoodie.metadata.record.index.enable", "record_index"),
    ],
)
def test_another_record_index_than_the_tables_is_an_error_of_the_table_and_of_its_services(
    index: str, key: str, other: str
) -> None:
    said = {f"spec.options[{key}]": f"asks for a {other}, but spec.index.type says {index!r}: leave the option out"}
    assert of_table({key: "true"}, index={"type": index}, partitionBy=[{"field": "city"}]) == said
    assert of_table({key: "false"}, index={"type": index}, partitionBy=[{"field": "city"}]) == {}
    table = desired_table(stored(manifest(**spec(index={"type": index}, partitionBy=[{"field": "city"}])))).spec
    asked = service(type="Indexing", options={key: "true"}).spec
    assert table is not None
    assert asked is not None
    (error,) = service_contradictions(asked, table)
    assert "spec.index.type of the table says" in error.message


def test_an_option_of_a_service_says_nothing_otherwise_than_its_table() -> None:
    table = desired_table(stored(manifest(**spec()))).spec
    asked = service(type="Resize", mode="Plan", options={"hoodie.bucket.index.num.buckets": "9"}).spec
    assert table is not None
    assert asked is not None
    (error,) = service_contradictions(asked, table)
    assert str(error).startswith(
        "spec.options[hoodie.bucket.index.num.buckets]: is '9', but spec.index.buckets of the table says '4'"
    )
    same = service(type="Cleaning", options={"hoodie.bucket.index.num.buckets": "4"}).spec
    assert same is not None
    assert service_contradictions(same, table) == ()


@pytest.mark.parametrize("resource", [of_table, of_service])
def test_an_event_time_that_nobody_tracks_is_an_error(resource: Any) -> None:
    field = {"hoodie.payload.event.time.field": "when"}
    assert "does nothing alone" in resource(field)["spec.options"]
    assert resource(field | {"hoodie.write.track.event.time.watermark": "true"}) == {}


def test_partitions_to_delete_are_an_error_of_the_table_and_of_its_services_for_neither_deletes_any() -> None:
    options = {"hoodie.datasource.write.partitions.to.delete": "2026-01-01"}
    ((path, message),) = of_table(options).items()
    assert path == "spec.options[hoodie.datasource.write.partitions.to.delete]"
    assert message.startswith(
        "is '2026-01-01', and no ingest or service deletes partitions by name: leave the option out"
    )
    assert of_table(dict.fromkeys(options, " ")) == {}
    table, asked = desired_table(stored(manifest(**spec()))).spec, service(type="Cleaning", options=options).spec
    assert table is not None
    assert asked is not None
    assert [error.path for error in service_contradictions(asked, table)] == [path]


def test_partitions_of_a_table_that_has_none_do_not_expire() -> None:
    table = desired_table(stored(manifest(**spec()))).spec
    parts = desired_table(stored(manifest(**spec(partitionBy=[{"field": "day"}])))).spec
    asked = service(type="PartitionTTL", partitionTTL={"days": 3}).spec
    assert table is not None
    assert parts is not None
    assert asked is not None
    (error,) = service_contradictions(asked, table)
    assert str(error) == "spec.type: is PartitionTTL, but the table is not partitioned: no partition expires"
    assert service_contradictions(asked, parts) == ()
