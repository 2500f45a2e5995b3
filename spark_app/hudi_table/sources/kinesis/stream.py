"""A stream of Kinesis: what it is, its shards, and reading one of them.

Facts (Kinesis developer guide): a read gives at most 10 MiB or 10,000 records, and of a shard five
reads and 2 MiB a second are allowed; an empty answer is no end, `MillisBehindLatest` of 0 is one
for now; a shard that was split or merged ends with an answer without a next iterator. An iterator
lasts five minutes. moto hands out iterators of closed shards without an end; so a closed shard that
is not behind and gives nothing counts as read, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hudi_table.errors import DataLossError, InvalidRequestError, UnavailableError
from hudi_table.model.job.shards import ShardExtent, ShardPosition, StreamExtent
from hudi_table.sources import aws
from hudi_table.sources.kinesis.settings import KinesisSettings

READ_BYTES_MAX, READ_ROWS_MAX = 10 << 20, 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RIGHTS = "kinesis:DescribeStreamSummary, kinesis:ListShards, kinesis:GetShardIterator and kinesis:GetRecords"


class IteratorExpiredError(Exception):
    """An iterator was not used for too long: another one is to be asked for."""


class ThrottledError(Exception):
    """A shard was read too often, or too much of it: others read it, too."""


@dataclass(frozen=True, slots=True)
class Read:
    """What one read gave. `next`: the iterator behind it, "" where the shard has ended; `behind`:
    how many milliseconds it is behind the newest record."""

    records: list[Mapping[str, Any]]
    next: str
    behind: int


@dataclass(slots=True)
class Stream:
    """The stream of the settings. `credentials`: AWS's three variables; where they are not among
    them, boto3's own chain finds some."""

    settings: KinesisSettings
    credentials: Mapping[str, str] = field(repr=False)
    _client: Any = field(default=None, repr=False)

    def extent(self) -> StreamExtent:
        """What there is now. Raises UnavailableError, AccessDeniedError, InvalidRequestError."""
        name = self.settings.stream
        told = self._ask("describe_stream_summary", StreamName=name)["StreamDescriptionSummary"]
        if told["StreamStatus"] in ("CREATING", "DELETING"):
            raise UnavailableError(f"{self._place} is {told['StreamStatus']}; try again later")
        shards: dict[str, ShardExtent] = {}
        more: dict[str, Any] = {"StreamName": name}
        while more:
            page = self._ask("list_shards", **more)
            shards |= {str(each["ShardId"]): _shard(each) for each in page["Shards"]}
            more = {"NextToken": page["NextToken"]} if page.get("NextToken") else {}
        made = told["StreamCreationTimestamp"].astimezone(UTC).isoformat(timespec="milliseconds")
        kept = int(timedelta(hours=told["RetentionPeriodHours"]) / timedelta(milliseconds=1))
        return StreamExtent(name, f"{told['StreamARN']} of {made}", kept, shards)

    def iterator(self, shard: str, at: ShardPosition) -> str:
        """Where a position is. Raises DataLossError where the shard, or the record, is not
        known."""

        def lost() -> Exception:
            return DataLossError(f"shard {shard} of stream {self.settings.stream} no longer knows its record {at.after or 'of the begin'}")  # fmt: skip

        how: dict[str, Any] = {"ShardIteratorType": "TRIM_HORIZON"}
        if at.after:
            how = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": at.after}
        elif at.start >= 0:
            how = {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": _EPOCH + timedelta(milliseconds=at.start)}
        known = {"InvalidArgumentException": lost, "ResourceNotFoundException": lost}
        found = self._ask("get_shard_iterator", known, StreamName=self.settings.stream, ShardId=shard, **how)
        return str(found["ShardIterator"])

    def read(self, iterator: str, rows: int) -> Read:
        """The next records, at most so many. Raises IteratorExpiredError, ThrottledError."""
        known: dict[str, Callable[[], Exception]] = {
            "ExpiredIteratorException": IteratorExpiredError,
            "ProvisionedThroughputExceededException": ThrottledError,
        }
        found = self._ask("get_records", known, ShardIterator=iterator, Limit=max(1, min(rows, READ_ROWS_MAX)))
        return Read(found["Records"], found.get("NextShardIterator") or "", int(found.get("MillisBehindLatest") or 0))

    @property
    def _place(self) -> str:
        return f"the stream {self.settings.stream}"

    def _ask(self, request: str, known: Mapping[str, Callable[[], Exception]] | None = None, **more: Any) -> Any:
        codes = {"ResourceNotFoundException": self._missing, **(known or {})}
        with aws.meaning(self._place, "kinesis.region or kinesis.endpoint", "sources of Kinesis", _RIGHTS, codes):
            if self._client is None:
                region, endpoint = self.settings.region, self.settings.endpoint
                self._client = aws.client("kinesis", region, endpoint, self.credentials)
            call: Callable[..., Any] = getattr(self._client, request)
            return call(**more)

    def _missing(self) -> Exception:
        region = f" in region {self.settings.region}" if self.settings.region else ""
        return InvalidRequestError(
            f"there is no stream {self.settings.stream}{region}: create it, or correct kinesis.stream or kinesis.region"
        )


def millis(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _shard(raw: Mapping[str, Any]) -> ShardExtent:
    parents = (raw.get("ParentShardId"), raw.get("AdjacentParentShardId"))
    end = raw["SequenceNumberRange"].get("EndingSequenceNumber", "")
    return ShardExtent(tuple(str(each) for each in parents if each), str(end))
