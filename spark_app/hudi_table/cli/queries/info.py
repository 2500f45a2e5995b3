"""`hudictl info BASE`: what a table is."""

from __future__ import annotations

import argparse
from typing import Any

from hudi_table.api import HudiTable
from hudi_table.cli import exits
from hudi_table.cli.opened import age_seconds, opened
from hudi_table.cli.output import Column, Document, emit, note
from hudi_table.model.counts import counted
from hudi_table.model.table.config import PartitionField, PartitionType, TableType
from hudi_table.model.table.properties import generator_class
from hudi_table.model.timeline.instants import PLANNED_ACTIONS
from hudi_table.read.output.human import age, number, size
from hudi_table.read.reader import index_text
from hudi_table.services.archiving.debt import TIMELINE_FILES_MAX, TIMELINE_FILES_WARN, timeline_debt
from hudi_table.services.compaction.debt import compaction_debt
from hudi_table.services.index.advice import advice_words
from hudi_table.services.index.facts import index_advice
from hudi_table.table.commit.foreign_writers import COMMITS_MAX, foreign_commits
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView


def _lookups_text(cost: dict[str, int] | None) -> str:
    if cost is None:
        return "-"
    rows, files = (counted(cost[key], noun) for key, noun in (("rows", "row"), ("filesOpened", "file")))
    return f"a write of {rows} opens {files} and reads {size(cost['bytesRead'])}"


def _foreign_text(counts: dict[str, Any] | None) -> str:
    if counts is None:
        return "-"
    return f"{counts['commits']} of the newest {counted(counts['among'], 'commit')}, the last at {counts['last']}"


_COLUMNS = (
    Column("name", "Name"),
    Column("location", "Location"),
    Column("type", "Type"),
    Column("tableVersion", "Table version"),
    Column("recordKey", "Record key"),
    Column("partitionBy", "Partition by"),
    Column("orderingFields", "Ordering fields"),
    Column("mergeMode", "Merge mode"),
    Column("index", "Index"),
    Column("indexLookups", "Index lookups", _lookups_text),
    Column("indexAdvice", "Index advice", lambda words: "; ".join(words) or "-"),
    Column("keyGenerator", "Key generator", wide=True),
    Column("hiveStyle", "Hive-style paths", wide=True),
    Column("urlEncode", "URL-encoded paths", wide=True),
    Column("timezone", "Timeline zone", wide=True),
    Column("metadataTable", "Metadata table", wide=True),
    Column("commits", "Commits", number),
    Column("foreignWriters", "Foreign writers", _foreign_text),
    Column("lostProperties", "Lost properties", lambda keys: ", ".join(keys) or "-"),
    Column("lastInstant", "Last instant"),
    Column("lastAction", "Last action"),
    Column("ageSeconds", "Age", age),
    Column("pending", "Pending"),
    Column("timelineFiles", "Timeline files", number),
    Column("partitions", "Partitions", number),
    Column("fileGroups", "File groups", number),
    Column("sizeBytes", "Size", size),
    Column("rows", "Rows", number),
    Column("columns", "Columns", lambda columns: ", ".join(f"{c['name']} {c['type']}" for c in columns) or "-"),
)
_LOG_COLUMNS = (
    Column("logFiles", "Log files", number),
    Column("logBytes", "In logs", size),
    Column("compaction", "Compaction"),
)


def run(args: argparse.Namespace) -> int:
    """Print the table's identity, newest commit and size."""
    table = opened(args)
    facts = with_relists(table.context, lambda: _facts(table))
    logged = table.context.config.type is TableType.MERGE_ON_READ
    emit(Document("TableInfo", _COLUMNS + _LOG_COLUMNS * logged, [facts], single=True), args.output)
    if facts["timelineFiles"] >= TIMELINE_FILES_WARN:
        note(
            f"the timeline has {counted(facts['timelineFiles'], 'file')}; archive it before it reaches {TIMELINE_FILES_MAX}"
        )
    # A plan of a table service is not a write that is not done; it waits for its execution.
    plans = tuple(f".{action.value}." for action in PLANNED_ACTIONS)
    writes = [name for name in facts["pending"] if not any(plan in name for plan in plans)]
    if args.fail_on == "pending" and writes:
        seconds = table.context.settings.suspect_after_seconds
        what = f"{counted(len(writes), 'instant')} {'is' if len(writes) == 1 else 'are'}"
        note(
            f"{what} pending: the next writer finishes or rolls back those whose writer shows no sign of life for {seconds:,.0f} s"
        )
        return exits.FINDINGS
    return exits.GOOD


def _facts(table: HudiTable) -> dict[str, Any]:
    config = table.context.config
    timeline = load_timeline(table.context)
    view = FileSystemView(table.context, timeline)
    slices = view.latest_slices()
    bases = [s.base for s in slices if s.base is not None]
    logs = any(s.logs for s in slices)
    last = timeline.last_commit
    return {
        "name": config.name,
        "location": table.base_path,
        "type": config.type.value,
        "tableVersion": config.version,
        "recordKey": list(config.record_key),
        "partitionBy": [_partition_text(item) for item in config.partition_by],
        "orderingFields": list(config.ordering_fields),
        "mergeMode": config.merge_mode.value,
        "index": index_text(config.index) if config.index else None,
        **_index_facts(view),
        "keyGenerator": generator_class(config).rpartition(".")[2],
        "hiveStyle": config.hive_style,
        "urlEncode": config.url_encode,
        "timezone": config.timezone,
        "metadataTable": list(config.metadata_partitions),
        "commits": len(timeline.commits),
        "foreignWriters": _foreign(table, timeline),
        "lostProperties": sorted(table.context.lost),
        "lastInstant": last.time if last else None,
        "lastAction": last.action.value if last else None,
        "ageSeconds": age_seconds(table, last.time) if last else None,
        "pending": [instant.file_name for instant in timeline.pending],
        "timelineFiles": timeline_debt(timeline).files,
        "partitions": len(view.partitions()),
        "fileGroups": len(view.groups()),
        "sizeBytes": sum(base.size for base in bases),
        "rows": None if logs else _rows(table, timeline, {base.path for base in bases}),
        "columns": [{"name": field.name, "type": str(field.type)} for field in table.schema()],
        **(_logs(view, slices) if config.type is TableType.MERGE_ON_READ else {}),
    }


def _foreign(table: HudiTable, timeline: Timeline) -> dict[str, Any] | None:
    """How many of the newest commits other engines made (docs/explanation/foreign-writers.md); None
    if none."""
    found = foreign_commits(table.context, timeline)
    among = min(len(timeline.commits), COMMITS_MAX)
    return {"commits": len(found), "among": among, "last": found[-1].time} if found else None


def _index_facts(view: FileSystemView) -> dict[str, Any]:
    """What a write of usual size spends on finding its keys, and what would be better."""
    advice = index_advice(view)
    if advice is None:
        return {"indexLookups": None, "indexAdvice": []}
    cost = advice.now and {
        "rows": advice.rows,
        "filesOpened": advice.now.files_opened,
        "bytesRead": advice.now.bytes_read,
    }
    return {"indexLookups": cost, "indexAdvice": advice_words(advice)}


def _logs(view: FileSystemView, slices: list[FileSlice]) -> dict[str, Any]:
    """What lies in logs, what compaction waits, and whether Hudi's default trigger would make a new
    one now."""
    debt = compaction_debt(view, {})
    state = f"planned at {', '.join(debt.pending)}" if debt.pending else f"due, {debt.why}"
    return {
        "logFiles": sum(len(found.logs) for found in slices),
        "logBytes": sum(log.size for found in slices for log in found.logs),
        "compaction": f"{state}: {counted(debt.file_groups, 'file group')}, reads {size(debt.bytes_read)}"
        if debt.due
        else "not due",
    }


def _partition_text(item: PartitionField) -> str:
    return f"{item.field} ({item.format})" if item.type is PartitionType.TIMESTAMP and item.format else item.field


def _rows(table: HudiTable, timeline: Timeline, paths: set[str]) -> int | None:
    """Rows by the write stats of the files that a snapshot reads; None if a stat of one is
    archived."""
    written: dict[str, int] = {}
    for instant in reversed(timeline.commits):
        if len(written) == len(paths):
            break
        for stat in commit_metadata(table.context, instant).stats:
            if stat.path in paths:
                written.setdefault(stat.path, stat.num_writes)
    return sum(written.values()) if len(written) == len(paths) else None
