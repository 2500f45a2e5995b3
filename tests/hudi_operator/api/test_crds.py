"""The CRDs: checked in as derived, structural, and their CEL rules say what the code says.

No API server here. The structural rules are those of apiextensions.k8s.io/v1; the CEL is evaluated
by an independent implementation of the language on the same documents as the parser.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cel
import jsonschema
import pytest
import yaml

from hudi_operator.api import crd, schema
from hudi_operator.api.parsing import parse
from hudi_operator.api.service import TableServiceSpec
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.api.table_set import HudiTableSetSpec
from tests.support.indexing_manifests import INDEXING_BAD, INDEXING_GOOD
from tests.support.kafka_manifests import KAFKA_BAD, KAFKA_GOOD, table
from tests.support.kinesis_manifests import KINESIS_BAD, KINESIS_GOOD
from tests.support.manifests import PARTS, ingest
from tests.support.polled_manifests import POLLED_BAD, POLLED_GOOD
from tests.support.refused_manifests import REFUSED_BAD, REFUSED_GOOD
from tests.support.set_manifests import SET_BAD, SET_GOOD
from tests.support.spec_parts import parts
from tests.support.version_manifests import VERSION_BAD, VERSION_GOOD

CRDS = Path(__file__).resolve().parents[3] / "crds"
SPECS: dict[str, type] = {
    "HudiTable": HudiTableSpec,
    "HudiTableSet": HudiTableSetSpec,
    "TableService": TableServiceSpec,
}
SHORT = {"HudiTable": "ht", "HudiTableSet": "hts", "TableService": "tsvc"}


def nodes(found: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema node with its path."""
    yield path, found
    for name, child in found.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            yield from nodes(found[key], f"{path}[]")


def root(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = crd.definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def test_the_definitions_that_are_checked_in_are_those_that_the_models_give() -> None:
    assert {path.name: path.read_text() for path in CRDS.glob("*.yaml")} == crd.rendered()


@pytest.mark.parametrize("kind", SPECS)
def test_names_follow_the_conventions(kind: str) -> None:
    definition = crd.definition(kind)
    names = definition["spec"]["names"]
    assert definition["metadata"]["name"] == f"{names['plural']}.hudi.lakeops.dev"
    assert names["shortNames"] == [SHORT[kind]]
    assert names["categories"] == ["hudi"]
    assert definition["spec"]["versions"][0]["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", SPECS)
def test_every_node_is_structural(kind: str) -> None:
    for path, node in nodes(root(kind)):
        assert "type" in node, path
        assert not {"$ref", "definitions", "patternProperties", "oneOf", "anyOf", "allOf"} & set(node), path
        assert not ("properties" in node and "additionalProperties" in node), path
        if node["type"] == "array":
            assert node["x-kubernetes-list-type"] in ("atomic", "map", "set"), path
        if node.get("x-kubernetes-list-type") == "set":
            assert node["items"]["type"] != "object", f"{path}: the items of a set must be scalars"
        if node.get("x-kubernetes-list-type") == "map":
            for key in node["x-kubernetes-list-map-keys"]:
                assert key in node["items"]["required"], f"{path}: a map key must be required"


@pytest.mark.parametrize("kind", SPECS)
def test_the_schema_is_json_schema_and_its_defaults_fit_it(kind: str) -> None:
    jsonschema.Draft202012Validator.check_schema(root(kind))
    for path, node in nodes(root(kind)):
        if "default" in node:
            try:
                jsonschema.validate(defaulted(node, copy.deepcopy(node["default"])), node)
            except jsonschema.ValidationError as error:
                pytest.fail(f"{path}: {error.message}")


@pytest.mark.parametrize("kind", SPECS)
def test_no_enum_value_is_a_boolean_in_yaml_1_1(kind: str) -> None:
    for path, node in nodes(root(kind)):
        for value in node.get("enum", ()):
            assert yaml.safe_load(value) == value, f"{path}: {value} unquoted is no string"
        for name in node.get("properties", ()):
            assert yaml.safe_load(name) == name, f"{path}: field {name} unquoted is no string"


@pytest.mark.parametrize("kind", SPECS)
def test_every_field_of_the_spec_says_what_it_is(kind: str) -> None:
    silent = [path for path, node in nodes(root(kind)["properties"]["spec"]) if path and "[]" not in path
              and not node.get("description")]  # fmt: skip
    assert not silent


@pytest.mark.parametrize("kind", SPECS)
def test_every_printer_column_reads_a_field_that_exists(kind: str) -> None:
    fields = {path for path, _ in nodes(root(kind))}
    for column in crd.COLUMNS[kind]:
        path = column["jsonPath"]
        plain = path.split("[?")[0] + ("[]." + path.rpartition(")].")[2] if "[?" in path else "")
        plain = plain.replace("[0]", "[]")
        assert plain in fields or path == ".metadata.creationTimestamp", path


@pytest.mark.parametrize("kind", SPECS)
def test_everything_that_cel_walks_is_bounded(kind: str) -> None:
    """The API server estimates a rule's cost from the limits, and refuses a definition without."""
    for path, node in nodes(root(kind)["properties"]["spec"]):
        if node["type"] == "array":
            assert "maxItems" in node, path
        if node["type"] == "string" and "enum" not in node and not path.endswith(("[]",)):
            assert "maxLength" in node, path
        if "additionalProperties" in node:
            assert "maxProperties" in node, path


def defaulted(node: dict[str, Any], value: Any) -> Any:
    """A value with defaults filled in, as the API server does it before it validates."""
    if isinstance(value, dict) and "properties" in node:
        for name, child in node["properties"].items():
            if name not in value and "default" in child:
                value[name] = copy.deepcopy(child["default"])
            if name in value:
                value[name] = defaulted(child, value[name])
    if isinstance(value, list) and "items" in node:
        return [defaulted(node["items"], item) for item in value]
    return value


def _holds(rule: str, variables: dict[str, Any]) -> bool:
    """Whether a rule is true. One that cannot be evaluated is broken, too, for the API server."""
    try:
        return cel.evaluate(rule, variables) is True
    except RuntimeError:
        return False


def violations(node: dict[str, Any], value: Any, old: Any = None, path: str = "spec") -> list[str]:
    """Messages of all CEL rules that a document breaks; of transitions if there is an old one."""
    found = []
    for rule in node.get("x-kubernetes-validations", ()):
        if "oldSelf" in rule["rule"] and old is None:
            continue
        variables = {"self": value, **({"oldSelf": old} if old is not None else {})}
        if not _holds(rule["rule"], variables):
            found.append(f"{path}: {rule['message']}")
    if isinstance(value, dict):
        for name, child in node.get("properties", {}).items():
            if name in value:
                before = old.get(name) if isinstance(old, dict) else None
                found += violations(child, value[name], before, f"{path}.{name}")
    if isinstance(value, list):
        keys = node.get("x-kubernetes-list-map-keys", ()) if node.get("x-kubernetes-list-type") == "map" else ()
        for key in keys:
            found += [f"{path}[{i}].{key}: Duplicate value" for i, item in enumerate(value)
                      if item[key] in [other[key] for other in value[:i]]]  # fmt: skip
        if node.get("x-kubernetes-list-type") == "set":
            found += [f'{path}[{i}]: Duplicate value: "{item}"' for i, item in enumerate(value) if item in value[:i]]
        for i, item in enumerate(value):
            found += violations(node["items"], item, None, f"{path}[{i}]")
    return found


def judged(kind: str, document: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    """What an API server says of a spec: the schema's errors, else those of CEL."""
    node = root(kind)["properties"]["spec"]
    value = defaulted(node, copy.deepcopy(document))
    errors = [error.message for error in jsonschema.Draft202012Validator(node).iter_errors(value)]
    before = defaulted(node, copy.deepcopy(old)) if old is not None else None
    return errors or violations(node, value, before)


def service(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "TableService", {"tableRef": {"name": "flights"}, "type": "Cleaning", **fields}


GOOD = [
    *KAFKA_GOOD,
    *INDEXING_GOOD,
    *KINESIS_GOOD,
    *POLLED_GOOD,
    *REFUSED_GOOD,
    *VERSION_GOOD,
    *SET_GOOD,
    table(),
    table(mergeMode=None, orderingFields=None, index=None, ingest=None),
    table(orderingFields=["ts", "id"], tableVersion=9),
    table(partitionBy=[{"field": "day"}, {"field": "at", "type": "Timestamp", "format": "yyyy/MM"}]),
    table(index={"type": "Bucket", "buckets": 8, "hashFields": ["id"]}),
    table(index={"type": "GlobalSimple"}, maintenance={"clustering": {"mode": "Auto"}}),
    table(tableVersion=9),
    table(index={"type": "Custom", "className": "postgres", "settings": {"global": "true"}}),
    table(maintenance={"cleaning": {"mode": "Disabled"}, "archiving": {"mode": "Disabled"}}),
    table(ingest=[ingest(source={"type": "Files", "path": "s3://lake/flights-landing", "format": "json"})]),
    table(storage={"credentialsSecretRef": {"name": "team.s3"}}),
    table(ingest=[ingest(source={"type": "Files", "path": "gs://b/p", "format": "csv", "csv": {"header": False}})]),
    table(type="MergeOnRead", maintenance={"compaction": {"mode": "Auto"}}),
    table(spark={"driver": {**PARTS, "memory": "1Gi"}, "executor": PARTS, "light": {"cpu": "50m"}}),
    table(options={"hoodie.parquet.max.file.size": "1"}, suspend=True, deletionPolicy="Purge"),
    service(),
    service(tableRef={"name": "lake.flights"}),
    service(type="Clustering", clustering={"sortColumns": ["a"], "layout": "ZOrder"}, schedule="0 3 * * *"),
    service(type="Clustering", when={"smallFileRatio": "> 0.5"}),
    service(type="Restore", restore={"instant": "20260101000000000"}),
    service(schedule="0 3 * * *", timeZone="Europe/Berlin", startingDeadlineSeconds=60, concurrencyPolicy="Replace"),
    service(mode="Schedule", activeDeadline="1h30m", successfulRunsHistoryLimit=0, failedRunsHistoryLimit=10),
    service(mode="Plan", approve="3f2a91bc00112233", options={"hoodie.clean.parallelism": "2"}),
    service(cleaning={"keepHours": 48}, when={"bytesToClean": ">= 10Gi", "commitsSince": "> 20"}),
    service(type="LogCompaction", when={"logBytes": ">2Gi", "logBytesRatio": "> 0.25"}),
    service(type="Archiving", archiving={"minCommits": 5, "maxCommits": 9}),
    service(type="Savepoint", savepoint={"comment": "before the migration", "instant": "20260101000000000"}),
    service(type="Savepoint", schedule="0 0 * * *", savepoint={"comment": "daily"}),
    service(type="Rollback", rollback={"instant": "20260101000000000"}, mode="Plan"),
    service(type="Repair", repair={"quarantine": True, "keys": True}),
    service(type="PartitionTTL", partitionTTL={"days": 90}, schedule="0 4 * * 0"),
    service(type="Resize", mode="Plan"),
    service(type="Clustering", clustering={"partitions": ["2013/01"], "maxGroups": 3, "smallFileLimit": "200Mi"}),
]
BAD = [
    *KAFKA_BAD,
    *INDEXING_BAD,
    *KINESIS_BAD,
    *POLLED_BAD,
    *REFUSED_BAD,
    *VERSION_BAD,
    *SET_BAD,
    (table(location=None), "location"),
    (table(location="lake/flights"), "location"),
    (table(location="file://${PWD}/lake"), "location"),
    (table(recordKey=[]), "recordKey"),
    (table(recordKey="id"), "recordKey"),
    (table(orderingFields=None), "mergeMode EventTime needs orderingFields"),
    (table(tableVersion=7), "tableVersion is one of 6, 8, 9"),
    (table(tableVersion=5), "must be at least 6"),
    (table(index={"type": "Bucket"}), "need buckets"),
    (table(index={"type": "Simple", "buckets": 4}), "belong to types Bucket"),
    (table(index={"type": "ConsistentBucket"}), "need buckets"),
    (table(index={"type": "ConsistentBucket", "buckets": 4}), "goes with type MergeOnRead"),
    (table(index={"type": "Bucket", "buckets": 4, "maxBuckets": 8}), "belong to type ConsistentBucket"),
    (
        table(type="MergeOnRead", index={"type": "ConsistentBucket", "buckets": 4, "minBuckets": 5}),
        "from minBuckets to maxBuckets",
    ),
    (
        table(type="MergeOnRead", index={"type": "ConsistentBucket", "buckets": 4, "maxBuckets": 3}),
        "from minBuckets to maxBuckets",
    ),
    (
        table(
            type="MergeOnRead",
            index={"type": "ConsistentBucket", "buckets": 4, "partitionBuckets": [{"partitions": "a", "buckets": 2}]},
        ),
        "partitionBuckets belong to type Bucket",
    ),
    (
        table(index={"type": "Bucket", "buckets": 4, "partitionBuckets": [{"partitions": "a;b", "buckets": 2}]}),
        "partitions",
    ),
    (table(index={"type": "Custom"}), "belong to type Custom"),
    (table(index={"type": "Simple", "settings": {"global": "true"}}), "belong to type Custom"),
    (table(index={"type": "Bucket", "buckets": 0}), "buckets"),
    (table(index={"type": "Bucket", "buckets": 4, "hashFields": ["other"]}), "hashFields must be fields of recordKey"),
    (table(partitionBy=[{"field": "at", "type": "Timestamp"}]), "needs a format"),
    (table(partitionBy=[{"field": "at", "format": "yyyy"}]), "belong to type Timestamp"),
    (table(ingest=[ingest(mode="Cron")]), "must be one of Once"),
    (table(ingest=[ingest(source={"type": "Pulsar"})]), "must be one of Files, Kafka"),
    (table(orderingFields=["ts", "id"], tableVersion=6), "give tableVersion 9, or one field"),
    (table(orderingFields=[f"c{number}" for number in range(9)], tableVersion=9), "takes at most 8"),
    (table(storage={"credentialsSecretRef": {"name": "team..s3"}}), "name of the Secret"),
    (service(tableRef={"name": ".flights"}), "name of the HudiTable"),
    (
        table(ingest=[ingest(source={"type": "Files", "path": "s3://lake", "format": "json"})]),
        "nor the table in a source's path",
    ),
    (table(ingest=[ingest(source={"type": "Files", "path": "s3://lake/flights/", "format": "json"})]), "own location"),
    (
        table(
            location="s3://lake/flights/",
            ingest=[ingest(source={"type": "Files", "path": "s3://lake/flights", "format": "json"})],
        ),
        "own",
    ),
    (table(ingest=[ingest(source={"type": "Files", "path": "s3://b/p"})]), "needs path and format"),
    (table(ingest=[ingest(source={"type": "Files", "path": "s3://b/p", "format": "json", "csv": {}})]), "csv belongs"),
    (
        table(ingest=[ingest(source={"type": "Files", "path": "s3://lake/flights/in", "format": "json"})]),
        "own location",
    ),
    (table(ingest=[ingest(operation="upsert")]), "Upsert"),
    (table(ingest=[ingest(transform=[{"sql": "select 1"}] * 9)]), "transform"),
    (table(ingest=[ingest(transform=[{}])]), "sql, flatten or function, one of them"),
    (table(ingest=[ingest(transform=[{"sql": "select 1", "flatten": {}}])]), "sql, flatten or function, one of them"),
    (table(ingest=[ingest(transform=[{"function": ""}])]), "function"),
    (
        table(
            ingest=[
                ingest(source={"type": "Files", "path": "s3://b/p", "format": "parquet", "columns": {"n": "bigint"}})
            ]
        ),
        "columns belongs to format json or csv",
    ),
    (table(maintenance={"archiving": {"minCommits": 30, "maxCommits": 30}}), "less than maxCommits"),
    (table(maintenance={"cleaning": {"keepCommits": 25}}), "more than cleaning.keepCommits"),
    (table(maintenance={"compaction": {"mode": "Auto"}}), "nothing to compact"),
    (table(maintenance={"clustering": {"mode": "Auto"}}), "rows of a Bucket index"),
    (table(files={"targetSize": "120 MB"}), "targetSize"),
    (table(spark={"executor": {"cores": "two"}}), "cores"),
    (table(spark={"driver": {"env": [{"name": "A"}]}}), "either a value or a secretKeyRef"),
    (table(spark={"driver": {"cpuRequest": "half"}}), "cpuRequest"),
    (table(suspend="yes"), "suspend"),
    (service(schedule="0 3 * * *", when={"logBytes": "> 1Gi"}), "exclude each other"),
    (service(type="Restore"), "needs restore.instant"),
    (service(restore={"instant": "20260101000000000"}), "restore belongs to type Restore"),
    (service(clustering={}), "clustering belongs to type Clustering"),
    (service(type="Archiving", cleaning={"keepCommits": 3}), "cleaning belongs to type Cleaning"),
    (service(archiving={}), "archiving belongs to type Archiving"),
    (service(savepoint={}), "savepoint belongs to type Savepoint"),
    (service(rollback={"instant": "20260101000000000"}), "rollback belongs to type Rollback"),
    (service(repair={}), "repair belongs to type Repair"),
    (service(partitionTTL={"days": 3}), "partitionTTL belongs to type PartitionTTL"),
    (service(type="Rollback"), "needs rollback.instant"),
    (service(type="PartitionTTL"), "needs partitionTTL.days"),
    (service(cleaning={}), "one of keepCommits, keepHours and keepFileVersions"),
    (service(cleaning={"keepCommits": 3, "keepHours": 3}), "one of keepCommits, keepHours and keepFileVersions"),
    (service(type="Archiving", archiving={"minCommits": 9, "maxCommits": 9}), "less than maxCommits"),
    (service(when={}), "when needs a figure"),
    (service(when={"smallFileRatio": "> 0.5"}), "when.smallFileRatio is about Clustering"),
    (service(when={"logBytes": "> 1Gi"}), "when.logBytes is about Compaction, LogCompaction"),
    (service(when={"logBytesRatio": "> 1"}), "when.logBytesRatio is about Compaction, LogCompaction"),
    (service(type="Archiving", when={"bytesToClean": "> 1Gi"}), "when.bytesToClean is about Cleaning"),
    (service(when={"commitsSince": "10"}), "commitsSince"),
    (service(timeZone="Europe/Berlin"), "timeZone belongs to a schedule"),
    (service(startingDeadlineSeconds=9), "startingDeadlineSeconds belongs to a schedule"),
    (service(concurrencyPolicy="Replace"), "Replace belongs to a schedule"),
    (service(concurrencyPolicy="Allow", schedule="0 3 * * *"), "Forbid"),
    (service(approve="3f2a91bc00112233"), "approve belongs to mode Plan"),
    (service(mode="Plan", approve="yes"), "approve"),
    (service(type="Archiving", mode="Execute"), "modes Schedule and Execute are for services with a plan"),
    (service(type="Resize"), "use mode Plan"),
    (service(type="Restore", restore={"instant": "20260101000000000"}, schedule="0 3 * * *"), "run once"),
    (
        service(type="Savepoint", savepoint={"instant": "20260101000000000"}, when={"commitsSince": "> 9"}),
        "names one write",
    ),
    (service(activeDeadline="half an hour"), "activeDeadline"),
]


@pytest.mark.parametrize(("kind", "document"), GOOD)
def test_what_the_api_server_takes_the_parser_takes(kind: str, document: dict[str, Any]) -> None:
    assert judged(kind, document) == []
    value, errors = parse(SPECS[kind], document, "spec")
    assert errors == ()
    assert value is not None


@pytest.mark.parametrize(("case", "words"), BAD)
def test_what_the_api_server_refuses_the_parser_refuses(case: tuple[str, dict[str, Any]], words: str) -> None:
    kind, document = case
    assert judged(kind, document)
    _, errors = parse(SPECS[kind], document, "spec")
    assert errors
    assert any(words in str(error) for error in errors), [str(error) for error in errors]


@pytest.mark.parametrize("kind", SPECS)
def test_what_is_parsed_and_written_again_is_what_the_api_server_would_store(kind: str) -> None:
    node = root(kind)["properties"]["spec"]
    for name, document in GOOD:
        if name == kind:
            value, _ = parse(SPECS[kind], document, "spec")
            assert schema.to_document(value) == defaulted(node, copy.deepcopy(document))


def test_every_rule_that_is_no_transition_has_a_document_that_breaks_it() -> None:
    said = "\n".join(str(judged(*case)) for case, _ in BAD)
    silent = [rule.message for part in parts(*SPECS.values()) for rule in schema.rules_of(part)
              if rule.holds is not None and rule.message not in said]  # fmt: skip
    assert not silent
