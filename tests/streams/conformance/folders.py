"""Files below a folder of a store, which is listed, or of which a queue tells."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.sources.files import notified, sqs
from hudi_table.table.store.remote import ObjectStorage
from tests.streams.conformance.on_store import OnStore
from tests.streams.conformance.part import Row
from tests.streams.test_polled import ACCOUNT, shown
from tests.support.polled import parquet
from tests.support.s3 import ACCESS


class Files(OnStore):
    """Files of Parquet."""

    label = "Files"
    part = "a folder of an S3 store"

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        super().__init__(request, folder)
        self.name, self.below = f"landing-{uuid.uuid4().hex[:10]}", ""
        path = f"s3://{self.store.server.bucket}/{self.name}/"
        self.feed.source = {"type": "Files", "path": path, "format": "parquet"}

    def calls(self) -> list[tuple[Any, str]]:
        return [(ObjectStorage, "_request")]

    def put(self, *rows: Row, **more: str) -> None:
        self.land(f"{uuid.uuid4().hex}.parquet", self.file(rows, more))

    def file(self, rows: tuple[Row, ...], more: dict[str, str]) -> bytes:
        """A file of rows."""
        return parquet(pa.Table.from_pylist([{"id": key, "v": version, **more} for key, version in rows]))

    def land(self, name: str, data: bytes) -> None:
        """Put a file, whatever was there."""
        key = f"{self.name}/{self.below}{name}"
        self.store.server.client().put_object(Bucket=self.store.server.bucket, Key=key, Body=data)

    def again(self, *rows: Row) -> None:
        """Under one name twice, and under another name."""
        for name in ("a.parquet", "a.parquet", "b.parquet"):
            self.land(name, self.file(rows, {}))

    def grow(self) -> None:
        self.below = "day=2/"

    def poison(self) -> str:
        self.land("bad.parquet", b"no parquet at all")
        return "bad.parquet"

    def cure(self) -> tuple[list[Row], dict[str, Any]]:
        self.land("bad.parquet", self.file((("p", 1),), {}))
        return [("p", 1)], {}


class Notified(Files):
    """Files of which a queue tells."""

    label = "Files by SQS"
    part = "a folder of an S3 store that sends its events to a queue of moto"

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        import boto3  # type: ignore[import-untyped]

        super().__init__(request, folder)
        self.environment.setattr(notified, "WAIT_SECONDS", 0)
        keys = {f"aws_{name}": value for name, value in ACCESS.items()}
        server = self.store.server
        self.client = boto3.client("sqs", endpoint_url=server.endpoint, region_name="us-east-1", **keys)
        self.queue = self.client.create_queue(QueueName=self.name)["QueueUrl"]
        told = {"QueueArn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:{self.name}", "Events": ["s3:ObjectCreated:*"]}
        server.client().put_bucket_notification_configuration(
            Bucket=server.bucket, NotificationConfiguration={"QueueConfigurations": [told]}
        )
        self.feed.source["notifications"] = {"type": "Sqs", "queue": self.queue}

    def calls(self) -> list[tuple[Any, str]]:
        return [*super().calls(), (sqs.Queue, "_ask")]

    def again(self, *rows: Row) -> None:
        """Its event comes thrice, too."""
        super().again(*rows)
        where = {"bucket": {"name": self.store.server.bucket}, "object": {"key": f"{self.name}/a.parquet"}}
        event = {"Records": [{"eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": where}]}
        for _ in range(3):
            self.client.send_message(QueueUrl=self.queue, MessageBody=json.dumps(event))

    def forget(self) -> str:
        """It says of nothing that it is gone."""
        self.client.purge_queue(QueueUrl=self.queue)
        return ""

    def after_death(self) -> None:
        """Nobody hides any more what the dead run has received."""
        shown(self.feed)
