"""The table that a verb's arguments name, and what several verbs show of it."""

from __future__ import annotations

import argparse
from datetime import UTC
from typing import Any

from hudi_table.api import HudiTable, open_table
from hudi_table.cli.program import lock_options, storage_options
from hudi_table.errors import InvalidOptionError
from hudi_table.model.names import BOOTSTRAPS
from hudi_table.model.options.known import admit
from hudi_table.model.timeline.instants import parse_instant_time


def opened(args: argparse.Namespace) -> HudiTable:
    """The table at `args.base`."""
    lock = lock_options(getattr(args, "lock", []))
    return open_table(args.base, storage_options=storage_options(args.storage), lock=lock)


def option_arguments(arguments: list[str]) -> dict[str, str]:
    """`--option` arguments as options. Raises InvalidOptionError, of a key or value that is refused
    too."""
    found: dict[str, str] = {}
    for text in arguments:
        key, separator, value = text.partition("=")
        if not separator:
            raise InvalidOptionError(f"--option {text!r} has no '='; give hoodie.key=value")
        if found.setdefault(key.strip(), value.strip()) != value.strip():
            raise InvalidOptionError(
                f"--option {key.strip()} is given twice, with two values: leave one of the two out"
            )
    admit(found)
    return found


def belongs_to(owner: str, allowed: object, **given: object) -> None:
    """Refuse flags that say nothing without another one, named as their arguments are. Raises
    InvalidOptionError."""
    lost = [name for name, value in given.items() if value]
    if lost and not allowed:
        raise InvalidOptionError(f"--{lost[0].replace('_', '-')} belongs to {owner}; leave it out")


def approves(args: argparse.Namespace) -> None:
    """Refuse `--plan` without `--yes`. Raises InvalidOptionError."""
    if args.plan and not args.yes:
        raise InvalidOptionError("--plan runs an approved plan and needs --yes")


def read_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """What `--query`, `--as-of`, `--meta` and their like say, as arguments of `HudiTable.scan`."""
    names = ("as_of", "query", "since", "until", "full_scan", "meta")
    return {name: getattr(args, name) for name in names}


def age_seconds(table: HudiTable, instant: str) -> int | None:
    """Whole seconds since an instant, read in the timeline's zone; None if it carries no time
    (restored, of a bootstrap, or of a metadata table)."""
    if instant in BOOTSTRAPS:
        return None
    try:
        naive = parse_instant_time(instant)
    except ValueError:
        return None
    # A naive `astimezone` takes the zone of this process, as Hudi does for LOCAL tables.
    moment = naive.astimezone(UTC) if table.context.config.timezone == "LOCAL" else naive.replace(tzinfo=UTC)
    return round((table.context.clock.now() - moment).total_seconds())


def described_table(args: argparse.Namespace) -> dict[str, Any]:
    """What verbs that make a table of what lies elsewhere say of it, as the calls name it."""
    return {
        "record_key": _names(args.record_key) or None,
        "partition_by": None if args.partition_by is None else _names(args.partition_by),
        "ordering_fields": _names(args.ordering_fields) or None,
        "type": args.type,
        "index": args.index,
        "options": option_arguments(args.option),
        "storage_options": storage_options(args.storage),
    }


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
