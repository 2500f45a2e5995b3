"""What the race of readers says, as a record and as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from bench import reads
from bench.race import Results, Target, Times
from bench.rows import Workload
from bench.tables import machine_lines, met_text, table_lines, target_ratio


def reads_record(load: Workload, rounds: int, results: Results) -> dict[str, Any]:
    """Every step of every reader, and the targets that can be told of them."""
    known = reads.with_fastest(results)
    targets = [each for each in reads.TARGETS if _ran(each, known)]
    by_ours = results.get("reads-ours", {})
    return {
        "rows": load.rows,
        "updated": load.updated,
        "rounds": rounds,
        "readers": {name: {step: _figures(times) for step, times in steps.items()} for name, steps in results.items()},
        "targets": [asdict(each) | target_ratio(each, known) for each in targets],
        "logs": {
            step: _share(by_ours[reads.merged(step)], by_ours[step])
            for step in reads.SCANS
            if reads.merged(step) in by_ours
        },
    }


def reads_lines(record: Mapping[str, Any]) -> list[str]:
    """The record as Markdown."""
    labels = {entry.worker: entry.label for entry in reads.ENTRIES} | {reads.FASTEST: "the fastest of four"}
    intro = (
        f"{record['rows']:,} rows of TPC-H lineitem, 19 columns, in the base files of a copy-on-write table of ours, 7 years of 2 buckets; with "
        f"logs: the same merge-on-read, {record['updated']:,} of the rows once more in logs. Columns end as an Arrow table, queries as their "
        f"answer; what they join lies in plain Parquet files. Milliseconds of wall time, and of CPU: medians of {record['rounds']} rounds in turns."
    )
    lines = ["## Readers", "", *machine_lines(record["machine"]), "", intro, ""]
    for head, named in (("ms (CPU)", str), ("with logs", reads.merged)):
        lines += [*_times_lines(head, named, record["readers"], labels), ""]
    compared = [
        (t["step"], labels[t["ours"]], labels[t["other"]], f"{t['limit']:.2f}", f"{t['ratio']:.2f}", met_text(t))
        for t in record["targets"]
    ]
    compared += [
        (
            reads.merged(step),
            labels["reads-ours"],
            "without logs",
            f"{v['limit']:.2f}",
            f"{v['ratio']:.2f}",
            met_text(v),
        )
        for step, v in record["logs"].items()
    ]
    return [*lines, *table_lines(("step", "ours", "beside", "at most", "wall ratio", "met"), compared), ""]


def _times_lines(
    head: str, named: Callable[[str], str], readers: Mapping[str, Any], labels: Mapping[str, str]
) -> list[str]:
    """One row for each reader that took any of the steps, as they are `named` here, and one column
    for each step that any took."""
    ran = [step for step in reads.STEPS if any(named(step) in found for found in readers.values())]
    rows = [
        (labels[name], *(_cell(found.get(named(step))) for step in ran))
        for name, found in readers.items()
        if any(named(step) in found for step in ran)
    ]
    return table_lines((head, *ran), rows)


def _ran(target: Target, results: Results) -> bool:
    return all(target.step in results.get(name, {}) for name in (target.ours, target.other))


def _figures(times: Times) -> dict[str, Any]:
    return {
        "wall": round(times.middle(lambda cost: cost.wall), 4),
        "wall_of_rounds": [round(cost.wall, 4) for cost in times.warm],
        "cold_wall": round(times.cold.wall, 4) if times.cold else None,
        "cpu": round(times.middle(lambda cost: cost.cpu), 3),
    }


def _share(logged: Times, plain: Times) -> dict[str, Any]:
    ratio = logged.middle(lambda cost: cost.wall) / plain.middle(lambda cost: cost.wall)
    return {"ratio": round(ratio, 3), "limit": reads.LOGS_MAX, "met": ratio <= reads.LOGS_MAX}


def _cell(cost: Mapping[str, Any] | None) -> str:
    return "–" if cost is None else f"{1000 * cost['wall']:.0f} ({1000 * cost['cpu']:.0f})"
