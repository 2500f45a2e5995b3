"""Events of S3 as a queue brings them, and what a queue's client is made of; queues themselves in
tests/hudi_spark/jobs/test_ingest_notified.py."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from hudi_table.errors import InvalidRequestError
from hudi_table.sources.files import sqs
from hudi_table.sources.files.events import Created, created_objects

S3 = {"bucket": {"name": "landing"}, "object": {"key": "orders/a+b%2Fc.parquet"}}
CAME = {"eventName": "ObjectCreated:Put", "s3": S3}


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"Records": [CAME, {"eventName": "s3:ObjectCreated:Copy", "s3": S3}]}, 2),
        ({"Records": [{"eventName": "ObjectRemoved:Delete", "s3": S3}, CAME]}, 1),
        ({"Records": []}, 0),
        ({"Service": "Amazon S3", "Event": "s3:TestEvent"}, 0),
        ({"Type": "Notification", "Message": json.dumps({"Records": [CAME]})}, 1),
    ],
)
def test_an_event_names_the_objects_that_came(document: dict[str, Any], found: int) -> None:
    assert created_objects(json.dumps(document)) == (Created("landing", "orders/a b/c.parquet"),) * found


def test_a_key_of_eventbridge_is_taken_as_it_is() -> None:
    event = {"source": "aws.s3", "detail-type": "Object Created", "detail": S3}
    assert created_objects(json.dumps(event)) == (Created("landing", "orders/a+b%2Fc.parquet"),)
    assert created_objects(json.dumps(event | {"detail-type": "Object Deleted"})) == ()


@pytest.mark.parametrize(
    "body",
    [
        "hello",
        "[]",
        "{}",
        "null",
        '{"Records": "x"}',
        '{"Records": ["x"]}',
        '{"Records": [{"eventName": 7}]}',
        '{"Records": [{"eventName": "ObjectCreated:Put"}]}',
        '{"Records": [{"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "b"}, "object": {"key": 1}}}]}',
        '{"source": "aws.s3", "detail-type": "Object Created", "detail": {}}',
        '{"Type": "Notification", "Message": "hello"}',
    ],
)
def test_what_is_no_event_of_s3_is_no_object(body: str) -> None:
    with pytest.raises(ValueError, match=r"event of S3|names no bucket"):
        created_objects(body)


@pytest.mark.parametrize(
    ("url", "given", "region"),
    [
        ("https://sqs.eu-central-1.amazonaws.com/1/q", "us-east-2", "eu-central-1"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/1/q", None, "cn-north-1"),
        ("https://eu-west-1.queue.amazonaws.com/1/q", None, "eu-west-1"),
        ("http://127.0.0.1:9324/1/q", "eu-west-3", "eu-west-3"),
        ("http://127.0.0.1:9324/1/q", None, "us-east-1"),
    ],
)
def test_the_region_is_that_of_the_queue(url: str, given: str | None, region: str) -> None:
    assert sqs.region_of(url, given) == region


@pytest.mark.parametrize(
    ("url", "credentials", "said"),
    [
        (
            "http://127.0.0.1:99999/1/q",
            {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s"},
            "cannot be asked",
        ),
        ("http://127.0.0.1:9/1/q", {"AWS_ACCESS_KEY_ID": "AKIA"}, "cannot be asked"),
        (
            "http://127.0.0.1:9/1/q",
            {"AWS_ACCESS_KEY_ID": "AKIA\n"},
            "aws_access_key_id has the control character U\\+000A",
        ),
    ],
)
def test_what_no_client_takes_is_refused_before_anything_is_asked(
    url: str, credentials: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said) as refused:
        sqs.Queue(url, credentials=credentials).depth()
    assert "AKIA" not in refused.value.message


def test_where_boto3_is_not_installed_the_command_that_brings_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)
    with pytest.raises(InvalidRequestError, match=r"pip install 'hudi-table\[aws\]'"):
        sqs.Queue("http://127.0.0.1:9/1/q").depth()
