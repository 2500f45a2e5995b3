"""Parsing of manifests: all errors at once, each with its path, its value and the next step."""

from __future__ import annotations

import pytest

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import desired_table
from hudi_operator.api.table import HudiTableSpec
from hudi_table.model.table.config import IndexType, TableType
from tests.support.manifests import ingest, manifest, spec, stored


def errors_of(**changes: object) -> dict[str, str]:
    _, errors = parse(HudiTableSpec, spec(**changes), "spec")
    return {error.path: error.message for error in errors}


def test_a_right_spec_becomes_typed_values_with_their_defaults() -> None:
    found, errors = parse(HudiTableSpec, spec(), "spec")
    assert errors == ()
    assert found is not None
    assert found.type is TableType.COPY_ON_WRITE
    assert found.index is not None
    assert found.index.type is IndexType.BUCKET
    assert found.files.target_size == "120Mi"
    assert found.ingest[0].source.path == "s3://landing/flights/"


def test_all_errors_are_told_at_once() -> None:
    errors = errors_of(
        location="lake", recordKey=None, type="COW", ingest=[ingest(mode="Often", source={"type": "Files"})]
    )
    assert set(errors) == {
        "spec.location",
        "spec.recordKey",
        "spec.type",
        "spec.ingest[0].mode",
        "spec.ingest[0].source",
    }


def test_an_unknown_field_names_the_nearest_one() -> None:
    assert errors_of(recordkey=["id"]) == {"spec.recordkey": "unknown field; did you mean recordKey?"}


def test_a_missing_field_says_what_it_is_for() -> None:
    assert errors_of(recordKey=None) == {"spec.recordKey": "is required: columns that identify a row"}


def test_a_wrong_value_is_shown_with_what_is_taken() -> None:
    assert errors_of(type="COW") == {"spec.type": "is 'COW', must be one of CopyOnWrite, MergeOnRead"}


def test_a_value_in_another_case_names_the_right_word() -> None:
    assert errors_of(type="mergeOnRead") == {"spec.type": "is 'mergeOnRead', did you mean MergeOnRead?"}
    assert errors_of(index={"type": "bucket", "buckets": 2}) == {"spec.index.type": "is 'bucket', did you mean Bucket?"}


def test_a_column_has_a_name_of_at_most_256_characters() -> None:
    assert errors_of(recordKey=["k" * 256]) == {}
    (said,) = errors_of(recordKey=["k" * 257]).values()
    assert "256" in said


def test_one_word_in_the_place_of_a_list_is_shown_as_a_list() -> None:
    assert errors_of(recordKey="id") == {"spec.recordKey": "must be a list, not 'id': write [id]"}


def test_a_wrong_type_is_shown() -> None:
    assert errors_of(suspend="yes") == {"spec.suspend": "must be true or false, not 'yes'"}
    assert errors_of(index={"type": "Bucket", "buckets": True}) == {
        "spec.index.buckets": "must be an integer, not True"
    }


def test_an_option_that_yaml_reads_as_a_number_is_to_be_quoted() -> None:
    assert errors_of(options={"a": 1}) == {"spec.options[a]": "must be a string, not 1; quote it"}


def test_a_long_value_is_cut_in_the_message() -> None:
    message = errors_of(location="x" * 500)["spec.location"]
    assert len(message) < 250


def test_two_ingests_of_one_name_are_refused() -> None:
    assert errors_of(ingest=[ingest(), ingest()]) == {"spec.ingest": "has two entries whose name is 'feed'"}


def test_a_rule_over_a_part_with_errors_is_not_judged() -> None:
    assert set(errors_of(index={"type": "Bucket", "buckets": "4"})) == {"spec.index.buckets"}


@pytest.mark.parametrize("value", [None, [], "spec", 3])
def test_a_spec_that_is_no_object_is_one_error(value: object) -> None:
    found, errors = parse(HudiTableSpec, value, "spec")
    assert found is None
    assert [error.path for error in errors] == ["spec"]


def test_an_option_that_is_given_under_two_names_with_two_values_is_an_error() -> None:
    options = {"hoodie.clean.max.commits": "3", "hoodie.clean.trigger.max.commits": "4"}
    (error,) = desired_table(stored(manifest(**spec(options=options)))).errors
    assert str(error) == (
        "spec.options[hoodie.clean.max.commits]: is '3', and hoodie.clean.trigger.max.commits is '4': give one"
    )
    options["hoodie.clean.trigger.max.commits"] = " 3"
    assert desired_table(stored(manifest(**spec(options=options)))).errors == ()


def test_unknown_hudi_options_are_refused_by_name_with_the_nearest_one() -> None:
    options = {"hoodie.parquet.max.file.sise": "1", "hoodie.parquet.max.file.size": "1", "compress": "zstd"}
    desired = desired_table(stored(manifest(**spec(options=options))))
    found = {error.path: error.message for error in desired.errors}
    assert set(found) == {"spec.options[hoodie.parquet.max.file.sise]", "spec.options[compress]"}
    assert "hoodie.parquet.max.file.size" in found["spec.options[hoodie.parquet.max.file.sise]"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"storage": {"endpoint": "https://AKIA:canary@s3.example"}}, "spec.storage.endpoint"),
        ({"storage": {"endpoint": "https://s3.example?sig=canary"}}, "spec.storage.endpoint"),
        ({"storage": {"accessKey": "canary"}}, "spec.storage.accessKey"),
        (
            {"storage": {"credentialsSecretRef": {"name": "s3", "value": "canary"}}},
            "spec.storage.credentialsSecretRef.value",
        ),
        ({"location": "s3://AKIA:canary@lake/flights"}, "spec.location"),
        ({"location": "s3://AKIA:a/canary@lake/flights"}, "spec.location"),
        ({"location": "s3://lake/flights?secret=canary"}, "spec.location"),
        (
            {"ingest": [ingest(source={"type": "Files", "path": "s3://a:canary@landing/", "format": "csv"})]},
            "spec.ingest[0].source.path",
        ),
        (
            {"ingest": [ingest(source={"type": "Files", "path": "s3://a:b/canary@landing/", "format": "csv"})]},
            "spec.ingest[0].source.path",
        ),
        ({"options": {"fs.s3a.secret.key": "canary"}}, "spec.options"),
        ({"options": {"hoodie.aws.secret.key": "canary"}}, "spec.options"),
    ],
)
def test_a_key_has_no_place_in_a_manifest(changes: dict[str, object], field: str) -> None:
    """Credentials come from a Secret or from the pod's identity."""
    found = [error.path for error in desired_table(stored(manifest(**spec(**changes)))).errors]
    assert any(path.startswith(field) for path in found), found


@pytest.mark.parametrize(
    "location",
    [
        "s3://lake/flights",
        "abfss://lake@account.dfs.core.windows.net/flights",
        "file:///data/a:b",
        "gs://lake",
        "memory://x/a:b@c",
    ],
)
def test_locations_of_all_stores_are_taken(location: str) -> None:
    assert "spec.location" not in errors_of(location=location)


@pytest.mark.parametrize(
    "index",
    [
        {"type": "Custom"},
        {"type": "Custom", "settings": {"global": "true"}},
        {"type": "Simple", "className": "postgres"},
        {"type": "Simple", "settings": {"global": "true"}},
    ],
)
def test_the_class_and_settings_of_an_index_belong_to_custom_ones(index: dict[str, object]) -> None:
    assert set(errors_of(index=index)) == {"spec.index.className"}
    assert not errors_of(index={"type": "Custom", "className": "postgres", "settings": {"global": "true"}})
