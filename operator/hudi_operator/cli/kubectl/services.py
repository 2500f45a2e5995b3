"""TableServices that a person makes: their manifests, and how one is followed to its end."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.api.names import API_VERSION
from hudi_operator.cli.kubectl.access import Access
from hudi_table.cli import exits
from hudi_table.cli.output import note
from hudi_table.errors import HudiError, InvalidOptionError, InvalidRequestError
from hudi_table.model.defined_indexes import OF, asked_expression
from hudi_table.model.metadata_table import EXPRESSION_INDEX, SECONDARY_INDEX, is_defined, is_secondary, short_name
from hudi_table.table.store.clock import SystemClock

POLL_SECONDS = 0.5
MADE_BY = {"app.kubernetes.io/created-by": "kubectl-hudi"}
INDEXES = ("column_stats", "partition_stats", "bloom_filters", "record_index", "partitioned_record_index")
_NAMED = {"Savepoint": "savepoint", "Restore": "restore", "Rollback": "rollback"}


def workable(table: Document) -> Document:
    """The table, if something can run on it. Raises InvalidRequestError with the next step."""
    if documents.is_suspended(table):
        where = f"{documents.name_of(table)} -n {documents.namespace_of(table)}"
        patch = """--type merge -p '{"spec":{"suspend":false}}'"""
        raise InvalidRequestError(
            f"HudiTable {documents.name_of(table)} is suspended, so nothing runs: kubectl patch ht {where} {patch}"
        )
    return table


def service_manifest(args: argparse.Namespace, table: Document, mode: str) -> dict[str, Any]:
    """A TableService that runs once. It goes when its table goes."""
    kind = args.type
    spec: dict[str, Any] = {"tableRef": {"name": documents.name_of(table)}, "type": kind, "mode": mode}
    if args.instant is not None:
        if kind not in _NAMED:
            raise InvalidOptionError(f"--instant is of {', '.join(_NAMED)}; {kind} takes none")
        spec[_NAMED[kind]] = {"instant": args.instant}
    elif kind in ("Restore", "Rollback"):
        raise InvalidOptionError(
            f"{kind} needs --instant; kubectl hudi timeline {documents.name_of(table)} --storage shows them"
        )
    if (args.days is not None) is not (kind == "PartitionTTL"):
        raise InvalidOptionError("PartitionTTL needs --days, and nothing else takes it")
    if args.days is not None:
        spec["partitionTTL"] = {"days": args.days}
    if (args.to is not None) is not (kind == "Upgrade"):
        raise InvalidOptionError("Upgrade needs --to, and nothing else takes it")
    if args.to is not None:
        spec["upgrade"] = {"to": args.to}
    indexing = indexing_section(args)
    if indexing and kind != "Indexing":
        raise InvalidOptionError(f"--index and --drop-index are of Indexing; {kind} takes none")
    if indexing:
        spec["indexing"] = indexing
    if args.option:
        spec["options"] = _options(args.option)
    owner = {name: table[name] for name in ("apiVersion", "kind")} | {
        "name": documents.name_of(table), "uid": table["metadata"]["uid"],
    }  # fmt: skip
    head = f"{documents.name_of(table)[:40].rstrip('-.')}-{kind.lower()}-"
    return {
        "apiVersion": API_VERSION,
        "kind": "TableService",
        "metadata": {"generateName": head, "labels": MADE_BY, "ownerReferences": [owner]},
        "spec": spec,
    }


def indexing_section(args: argparse.Namespace) -> dict[str, Any]:
    """What `--index` and `--drop-index` say, as `spec.indexing`. Raises InvalidOptionError for what
    names no index."""
    asked = list(dict.fromkeys(args.index))
    found = {
        "partitions": [text for text in asked if text in INDEXES],
        "indexes": [_index(text) for text in asked if text not in INDEXES],
        "drop": list(dict.fromkeys(args.drop_index)),
    }
    return {name: value for name, value in found.items() if value}


def _index(text: str) -> dict[str, Any]:
    partition, _, of = text.partition(OF)
    if not is_defined(partition) or not of.strip():
        raise InvalidOptionError(
            f"--index {text!r} is none of {', '.join(INDEXES)}, {SECONDARY_INDEX}NAME=COLUMN and "
            f"{EXPRESSION_INDEX}NAME=FUNCTION(COLUMN)"
        )
    found: dict[str, Any] = {"name": short_name(partition)}
    if is_secondary(partition):
        return found | {"column": of.strip()}
    asked = asked_expression(of)
    if asked is None:
        raise InvalidOptionError(
            f"--index {text!r} is of no expression: {partition}=FUNCTION(COLUMN), with using bloom_filters or options "
            "as format='yyyy-MM-dd' behind it"
        )
    found |= {"column": asked.column, "function": asked.function, "using": asked.using}
    return found | ({"options": dict(asked.options)} if asked.options else {})


def _options(arguments: list[str]) -> dict[str, str]:
    """`--option` arguments. Raises InvalidOptionError; whether a key is known, the operator
    says."""
    pairs = [text.partition("=") for text in arguments]
    for key, separator, _ in pairs:
        if not separator:
            raise InvalidOptionError(f"--option {key!r} has no '='; give hoodie.key=value")
    return {key.strip(): value.strip() for key, _, value in pairs}


def followed(cluster: Access, name: str, seconds: float, ended: Callable[[Document], bool]) -> Document | None:
    """The TableService once it has `ended`; None if it has not in so many seconds. What it says
    meanwhile goes to stderr."""
    clock = SystemClock()
    limit, last_line = clock.boot_seconds() + seconds, ""
    while True:
        service: Document | None = None
        try:
            service = cluster.service(name)
            line = status_line(service)
        except HudiError as error:
            if not error.retryable:
                raise
            line = f"{name}: {error}"
        if line != last_line:
            note(line)
            last_line = line
        if service is not None and ended(service):
            return service
        if clock.boot_seconds() > limit:
            note(f"it has not ended after {seconds:g} s, and goes on: kubectl hudi status -w -n {cluster.namespace}")
            return None
        clock.sleep(POLL_SECONDS)


def status_line(service: Document) -> str:
    """Where a TableService is, in one line."""
    phase = documents.status_of(service).get("phase")
    if not documents.is_seen(service) or phase is None:
        return f"{documents.name_of(service)}: waits for the operator"
    busy, ready = documents.condition_of(service, "Reconciling"), documents.condition_of(service, "Ready")
    said = busy if busy.get("status") == "True" else ready
    return f"{documents.name_of(service)}: {phase}: {said.get('message')}"


def is_over(service: Document) -> bool:
    """Whether nothing more comes of its one run: it did well, failed for good, or waits for an
    approval or for `suspend`."""
    if not documents.is_seen(service):
        return False
    if documents.is_true(service, "Stalled"):
        return True
    status = documents.status_of(service)
    if documents.running_of(service):
        return False
    return status.get("phase") in ("Planned", "Suspended") or (status.get("phase") == "Succeeded" and "done" in status)


def verdict(service: Document | None) -> int:
    """The exit code of what was followed; what went wrong goes to stderr."""
    if service is None:
        return exits.FAILED
    if documents.status_of(service).get("phase") == "Succeeded" and not documents.is_true(service, "Stalled"):
        return exits.GOOD
    ready = documents.condition_of(service, "Ready")
    where = f"-n {documents.namespace_of(service)}"
    note(
        f"error: {ready.get('reason')}: {ready.get('message')}\nkubectl hudi logs {documents.name_of(service)} {where} shows its pod"
    )
    return exits.FAILED
