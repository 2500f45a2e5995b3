"""What the section of indexes says: records for `bench.json`, and its Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from bench import indexes, lookups, planning
from bench.index_rows import Batch
from bench.lookups import LookupTimes
from bench.planning import PlanningResults
from bench.race import Results
from bench.rows import Workload
from bench.tables import MIB, machine_lines, met_text, step_figures, table_lines, target_lines, target_ratio, wall_text


def indexes_record(load: Workload, batch: Batch, rounds: int, results: Results) -> dict[str, Any]:
    """The race of upserts by indexes, and its targets."""
    ran = [target for target in indexes.TARGETS if {target.ours, target.other} <= set(results)]
    return {
        "rows": load.rows,
        "updated": batch.updated,
        "inserted": batch.inserted,
        "rounds": rounds,
        "contenders": {name: step_figures(steps) for name, steps in results.items()},
        "targets": [asdict(target) | target_ratio(target, results) for target in ran],
    }


def lookups_record(load: Workload, rounds: int, timed: Iterable[LookupTimes]) -> dict[str, Any]:
    """Point lookups by way and number of keys."""
    return {
        "rows": load.rows,
        "rounds": rounds,
        "found": [
            step_figures({lookups.STEP: item.times})[lookups.STEP]
            | {"way": item.way, "keys": item.keys, "opened": item.opened, "files": item.files}
            | _within(item.times.middle(lambda cost: cost.wall), lookups.SECONDS_MAX)
            for item in timed
        ],
    }


def planning_record(rounds: int, results: PlanningResults) -> dict[str, Any]:
    """Planning by table, metadata table and partitions touched."""
    found = []
    for entry, steps in results.items():
        figures = step_figures(steps)
        plan = steps["plan"]
        peak = max(cost.peak for cost in plan.warm)
        held = _within(plan.middle(lambda cost: cost.wall), planning.SECONDS_MAX)
        held["met"] = held["met"] and peak <= planning.MEMORY_MAX
        found.append(asdict(entry) | {"steps": figures, "memory_limit_mib": planning.MEMORY_MAX // MIB} | held)
    return {"rounds": rounds, "found": found}


def _within(seconds: float, limit: float) -> dict[str, Any]:
    return {"limit": limit, "met": seconds <= limit}


def index_lines(record: Mapping[str, Any]) -> list[str]:
    """The section, of the parts that the record has."""
    parts = record.get("indexes", {})
    writers = {"upsert": _upsert_lines, "lookups": _lookup_lines, "planning": _planning_lines}
    return [line for name, lines in writers.items() if name in parts for line in lines(parts[name])]


def _upsert_lines(race: Mapping[str, Any]) -> list[str]:
    text = (
        f"{race['rows']:,} rows, partitioned by year, without buckets; {race['updated']:,} random known keys and {race['inserted']:,} new "
        f"ones in one upsert, a hundredth of the rows, which touches every file. Rows are checked after each round. Median of "
        f"{race['rounds']} rounds, cold round apart. record index: both sides keep a metadata table with it."
    )
    labels = {entry.worker: entry.label for entry in indexes.ENTRIES}
    rows = [
        (labels[name], wall_text(c["upsert"]), f"{c['upsert']['cpu']} s", f"{c['upsert']['peak_mib']} MiB")
        for name, c in race["contenders"].items()
    ]
    lines = ["## Upserts by indexes", "", *machine_lines(race["machine"]), "", text, ""]
    return [*lines, *table_lines(("upsert", "wall (rounds)", "CPU", "peak"), rows), "", *target_lines(race, labels), ""]


def _lookup_lines(held: Mapping[str, Any]) -> list[str]:
    text = (
        f"All columns of the rows of random keys among {held['rows']:,}, by a scan whose filter names them. bucket: {lookups.BUCKETS} "
        f"buckets in each year; sorted: files in the order of keys; statistics: the same with column statistics in the metadata "
        f"table; record index: files in no order, with a record index there. A file counts as opened if only its footer was read. Median of {held['rounds']} rounds, cold round apart."
    )
    rows = [
        (
            str(v["keys"]),
            v["way"],
            wall_text(v),
            f"{v['cpu']} s",
            f"{v['opened']} of {v['files']}",
            f"{v['limit']} s",
            met_text(v),
        )
        for v in held["found"]
    ]
    head = ("keys", "way", "wall (rounds)", "CPU", "files opened", "limit", "met")
    return ["## Point lookups", "", *machine_lines(held["machine"]), "", text, "", *table_lines(head, rows), ""]


def _planning_lines(held: Mapping[str, Any]) -> list[str]:
    text = (
        "An upsert as far as its plan, in a warm process: opened, checked, routed by bucket, claimed, listed, planned. Tables are synthetic: "
        "10 base files without a byte in each partition, 20 commits that name them. touched and whole: the latest slices of the rows' "
        "partitions and of all, from the folders or, with a metadata table, the files as its partition `files` lists them; writes list "
        f"folders either way. Median of {held['rounds']} rounds, cold round apart; the peak is the process's when it plans."
    )
    rows = []
    for v in held["found"]:
        steps, way = v["steps"], "listed_" if v["metadata"] else ""
        plan = steps["plan"]
        rows.append(
            (
                f"{v['groups']:,}", "yes" if v["metadata"] else "no", f"{v['touched']:,}", wall_text(plan), f"{plan['cpu']} s",
                f"{plan['peak_mib']} MiB", wall_text(steps[f"{way}touched"]), wall_text(steps[f"{way}whole"]), met_text(v),
            )
        )  # fmt: skip
    head = (
        "file groups",
        "metadata table",
        "partitions touched",
        "plan (rounds)",
        "CPU",
        "peak",
        "touched",
        "whole",
        "met",
    )
    limits = f"Aimed at: {planning.SECONDS_MAX} s and {planning.MEMORY_MAX // MIB} MiB."
    return ["## Planning", "", *machine_lines(held["machine"]), "", text, "", *table_lines(head, rows), "", limits, ""]
