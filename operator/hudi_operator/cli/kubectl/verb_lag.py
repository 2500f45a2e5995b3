"""how far the ingests from streams are behind, partition by partition

The resource tells which streams and which table; the checkpoints are read from the store and the
ends from the streams, both with the credentials of this machine: the Secret of the cluster is the
operator's. `--file` takes the resource from a manifest, as `hudictl local` does.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hudi_operator.cli.kubectl import program
from hudi_operator.cli.kubectl.access import access
from hudi_table.cli import exits
from hudi_table.cli.output import Column, emit, note
from hudi_table.cli.output import Document as Shown
from hudi_table.errors import InvalidRequestError
from hudi_table.read.output.human import age, number, size
from hudi_table.table.store.clock import SystemClock

if TYPE_CHECKING:
    from hudi_operator.api.ingests.ingest import IngestSpec
    from hudi_table.model.job.lag import PartitionLag

COLUMNS = (
    Column("ingest", "Ingest"),
    Column("stream", "Stream"),
    Column("partition", "Partition"),
    Column("position", "Position", right=True),
    Column("end", "End", right=True),
    Column("rowsBehind", "Rows behind", number, right=True),
    Column("bytesBehind", "About", size, right=True),
    Column("secondsBehind", "Behind", age, right=True),
    Column("newestEventTime", "Newest event time"),
)


def main(arguments: list[str]) -> int:
    """The verb, as an entry point of `hudictl`."""
    return program.run(["lag", *arguments], "hudictl")


def run(args: argparse.Namespace) -> int:
    """Print a row for each partition."""
    # These read specs and streams: the other verbs of the program do without.
    from hudi_operator.api.resources import desired_table
    from hudi_operator.runtime.observing.lags import lags_of

    document, secret = _resource(args)
    desired = desired_table(document)
    if desired.spec is None or desired.errors:
        raise InvalidRequestError(f"the spec of {args.name} has errors: kubectl hudi why {args.name}")
    clock, rows = SystemClock(), []
    for ingest in _chosen(desired.spec.ingest, args):
        lags, lost = lags_of(desired.spec, ingest, secret, secret or os.environ, clock)
        if lost:
            note(f"{ingest.name}: {lost}")
        if not lags:
            note(f"{ingest.name} has committed nothing yet")
        rows += [_row(ingest.name, each, clock.now()) for each in lags]
    emit(Shown("PartitionLagList", COLUMNS, rows), args.output)
    return exits.GOOD


def _resource(args: argparse.Namespace) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """The HudiTable, and what its Secret holds if a manifest has it."""
    if args.file is None:
        return access(args).table(args.name), {}
    from hudi_operator.api.resources import DEFAULT_NAMESPACE
    from hudi_operator.runtime.local.documents import load

    loaded = load([Path(args.file)])
    namespace = args.namespace or DEFAULT_NAMESPACE
    for document in loaded.resources:
        metadata = document["metadata"]
        if document["kind"] == "HudiTable" and (metadata["name"], metadata.get("namespace", DEFAULT_NAMESPACE)) == (args.name, namespace):  # fmt: skip
            named = (document["spec"].get("storage") or {}).get("credentialsSecretRef") or {}
            stored = {**document, "metadata": {"uid": "", "generation": 1, **metadata}}
            return stored, loaded.secrets.get((namespace, str(named.get("name"))), {})
    raise InvalidRequestError(f"there is no HudiTable {args.name!r} in {args.file}; give the name of one that is there")


def _chosen(ingests: tuple[IngestSpec, ...], args: argparse.Namespace) -> list[IngestSpec]:
    streamed = [each for each in ingests if each.source.kafka is not None or each.source.kinesis is not None]
    found = [each for each in streamed if args.ingest in (None, each.name)]
    if not found:
        there = f"those from streams are {', '.join(each.name for each in streamed)}" if streamed else "it has none"
        what = f"ingest {args.ingest!r}" if args.ingest else "ingest"
        raise InvalidRequestError(f"{args.name} has no {what} from Kafka, Debezium or Kinesis; {there}")
    return found


def _row(ingest: str, lag: PartitionLag, now: datetime) -> dict[str, Any]:
    behind = None if lag.oldest is None else max(0, round((now - _moment(lag.oldest)).total_seconds()))
    newest = None if lag.newest is None else _moment(lag.newest).isoformat(timespec="milliseconds")
    return {
        "ingest": ingest,
        "stream": lag.stream,
        "partition": lag.partition,
        "position": lag.position,
        "end": lag.end,
        "rowsBehind": lag.rows,
        "bytesBehind": lag.bytes,
        "secondsBehind": 0 if lag.rows == 0 else behind,
        "newestEventTime": newest.replace("+00:00", "Z") if newest is not None else None,
    }


def _moment(millis: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)
