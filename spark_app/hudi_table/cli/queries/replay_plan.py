"""`hudictl checkpoint replay-plan BASE INGEST`: what an ingest from Kafka has passed over, between
which commits, and the manifest of the ingests that read again what the brokers still have."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.job.positions import Extent
from hudi_table.model.table.config import MergeMode
from hudi_table.services.replaying import Gap, backfills, gaps_of, looked_up, standing_gaps
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists

_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", right=True),
    Column("from", "FROM", right=True),
    Column("to", "TO", right=True),
    Column("messages", "MESSAGES", right=True),
    Column("reason", "REASON"),
    Column("after", "AFTER"),
    Column("by", "BY"),
    Column("newestBefore", "NEWEST BEFORE"),
    Column("newestAfter", "NEWEST AFTER"),
    Column("thereFrom", "THERE FROM", right=True),
    Column("thereTo", "THERE TO", right=True),
)


def show(ctx: TableContext, args: argparse.Namespace) -> int:
    """Print the plan, or with `--backfill` the manifest."""
    if not args.ingest or args.offsets:
        raise InvalidOptionError("checkpoint replay-plan needs INGEST alone, such as: replay-plan lake/orders feed")
    if args.backfill and not args.manifest:
        raise InvalidOptionError("--backfill needs --manifest FILE: the HudiTable whose ingest it is")
    gaps = with_relists(ctx, lambda: gaps_of(ctx, args.ingest))
    if args.manifest is None:
        emit(Document("ReplayPlan", _COLUMNS, [_row(gap) for gap in gaps]), args.output)
        if gaps:
            note("with --manifest FILE, the HudiTable's, the brokers are asked what they still have")
        return exits.GOOD
    document, ingest = _of_manifest(args.manifest, args.ingest)
    extent = _asked(ingest, {gap.skipped.topic for gap in gaps})
    gaps += with_relists(ctx, lambda: standing_gaps(ctx, args.ingest, extent))
    gaps = looked_up(gaps, extent)
    wanted = backfills(ingest, gaps)
    if args.backfill:
        return _manifest(ctx, document, wanted)
    emit(Document("ReplayPlan", _COLUMNS, [_row(gap) for gap in gaps]), args.output)
    if gaps and not wanted:
        note(
            "the brokers have none of it any more: another system, or the producer, has to write it into the topic again"
        )
    elif wanted:
        note(
            f"{counted(len(wanted), 'ingest')} of mode Backfill would read what is there: --backfill prints the manifest"
        )
    return exits.GOOD


def _manifest(ctx: TableContext, document: dict[str, Any], wanted: Sequence[Mapping[str, Any]]) -> int:
    if not wanted:
        raise InvalidRequestError("the brokers have nothing of what was passed over: no Backfill can give it back")
    config = ctx.config
    if not config.ordering_fields or config.merge_mode is not MergeMode.EVENT_TIME:
        raise InvalidRequestError(
            "a Backfill needs orderingFields and mergeMode EventTime, which this table has not: its older rows would overwrite "
            "newer ones; set the checkpoint back instead (hudictl checkpoint set), if rows of one key may come in any order"
        )
    import yaml

    held = {each.get("name") for each in document["spec"]["ingest"]}
    document["spec"]["ingest"] += [each for each in wanted if each["name"] not in held]
    document.pop("status", None)
    sys.stdout.write(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return exits.GOOD


def _of_manifest(path: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The HudiTable of a file that has this ingest, and the ingest."""
    import yaml

    try:
        documents = list(yaml.safe_load_all(Path(path).read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidOptionError(f"--manifest {path} cannot be read: {' '.join(str(error).split())}") from error
    for document in documents:
        spec = document.get("spec") if isinstance(document, dict) else None
        for ingest in (spec.get("ingest") or ()) if isinstance(spec, dict) else ():
            if isinstance(ingest, dict) and ingest.get("name") == name and document.get("kind") == "HudiTable":
                if not isinstance(ingest.get("source"), dict) or not isinstance(ingest["source"].get("kafka"), dict):
                    raise InvalidOptionError(
                        f"ingest {name!r} of {path} has no source.kafka: a replay is of Kafka alone"
                    )
                return document, ingest
    raise InvalidOptionError(f"--manifest {path} holds no HudiTable with an ingest {name!r}")


def _asked(ingest: Mapping[str, Any], skipped: set[str]) -> Extent:
    """What the brokers have of the ingest's topics, and of those of which something was passed
    over. User, password and PEM texts come from the environment, as of a job."""
    from hudi_table.sources.kafka.brokers import Brokers
    from hudi_table.sources.kafka.settings import KafkaSettings

    kafka = ingest["source"]["kafka"]
    asked = {name: kafka[name] for name in ("brokers", "topics", "topicPattern", "security") if name in kafka}
    brokers = Brokers(KafkaSettings.of({"format": "raw", "kafka": asked}), os.environ)
    there = set(brokers.named())
    return brokers.extent_of(sorted({*brokers.topics(), *skipped} & there))


def _row(gap: Gap) -> dict[str, Any]:
    place = gap.skipped
    begin, end = gap.there if gap.there is not None else (None, None)
    nothing = begin is None or end is None or begin >= end
    return {
        "topic": place.topic,
        "partition": _known(place.partition),
        "from": _known(place.start),
        "to": _known(place.stop),
        "messages": gap.messages,
        "reason": place.reason.value,
        "after": gap.after or None,
        "by": gap.by or None,
        "newestBefore": _moment(gap.since),
        "newestAfter": _moment(gap.until),
        "thereFrom": None if nothing else begin,
        "thereTo": None if nothing else end,
    }


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def _moment(millis: int) -> str | None:
    if millis < 0:
        return None
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
