"""The object store, seen from outside by clients that are not ours: boto3 and hudi-rs."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from examples.flights.generate import Landing
from examples.kubernetes.land import land, make_buckets
from tests.support import hudi_rs

REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Lake:
    """An S3 server at a port of this machine, with its credentials."""

    endpoint: str
    access_key: str
    secret_key: str

    def client(self) -> Any:
        """boto3's."""
        import boto3  # type: ignore[import-untyped]

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
        )

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Every key, as boto3 lists them."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def has_table(self, name: str) -> bool:
        """Whether a table is there, with a write that has completed."""
        return any(key.endswith("commit") for key in self.keys("lake", f"{name}/.hoodie/"))

    def land(self, phase: str, prefix: str = "flights/") -> Landing:
        """Put the files of a phase of the demo into the landing bucket, as the tour does."""
        return land(self.client(), phase, prefix)

    def land_rows(self, rows: pa.Table, key: str) -> None:
        """Put a Parquet file into the landing bucket."""
        client, written = self.client(), io.BytesIO()
        make_buckets(client)
        pq.write_table(rows, written)
        client.put_object(Bucket="landing", Key=key, Body=written.getvalue())

    def rows(self, uri: str) -> pa.Table:
        """The table's snapshot, as hudi-rs reads it."""
        return hudi_rs.read(uri, **self.options())

    def options(self) -> dict[str, str]:
        """What a client of the store is told, ours or hudi-rs."""
        return {
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "aws_region": REGION,
            "aws_endpoint": self.endpoint,
            "aws_allow_http": "true",
        }
