"""What the race says: a record for `bench.json`, and the Markdown that is printed and kept as
`bench.md`."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import psutil

from bench import idle, logs, services
from bench import services_steps as race_steps
from bench.index_report import index_lines
from bench.peers import HUDI
from bench.process import ROOT, Cost
from bench.race import ENTRIES, STEPS, TARGETS, Results, Target
from bench.reads_report import reads_lines
from bench.rows import Workload
from bench.services import ServicesResults
from bench.starts import LIMITS, Start
from bench.store import store_lines
from bench.stream_hour import hour_lines
from bench.streams import streams_lines
from bench.tables import MIB, machine_lines, met_text, step_figures, table_lines, target_lines, target_ratio, wall_text
from bench.versions import versions_lines
from bench.writers import writers_lines

WORKER_MEMORY_MAX = 1 << 30


def machine_facts() -> dict[str, Any]:
    """What a reader needs to judge the figures, and nothing that names the machine."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    return {
        "commit": commit,
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / (1 << 30)),
        "system": platform.system(),
        "load_at_start": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "java": java[0].split('"')[1] if java and '"' in java[0] else "",
        "pyarrow": version("pyarrow"),
        "pyspark": version("pyspark"),
        "deltalake": version("deltalake"),
        "hudi": f"{HUDI} on Spark 3.5",
    }


def race_record(load: Workload, rounds: int, results: Results) -> dict[str, Any]:
    """Everything that was measured, and what it means for the targets."""
    return {
        "rows": load.rows,
        "updated": load.updated,
        "arrow_mib": round(load.arrow_bytes / MIB),
        "rounds": rounds,
        "contenders": {name: step_figures(steps) for name, steps in results.items()},
        "targets": [asdict(target) | target_ratio(target, results) for target in TARGETS if _ran(target, results)],
    }


def logs_record(load: Workload, rounds: int, results: Results) -> dict[str, Any]:
    """The race over logs: every step of every contender, and the targets."""
    return {
        "rows": load.rows,
        "updated": load.updated,
        "small": logs.SMALL_ROWS,
        "rounds": rounds,
        "contenders": {name: step_figures(steps) for name, steps in results.items()},
        "targets": [asdict(target) | target_ratio(target, results) for target in logs.TARGETS],
    }


def services_record(load: Workload, rounds: int, results: ServicesResults) -> dict[str, Any]:
    """The race of clusterings, the share of files that filters read by layout, and the jobs that
    found nothing to do."""
    return {
        "rows": load.rows,
        "files_before": results.before,
        "mib_before": round(results.bytes_before / MIB),
        "rounds": rounds,
        "contenders": {
            name: step_figures(steps) | {"files": results.files[name]} for name, steps in results.results.items()
        },
        "targets": [asdict(target) | target_ratio(target, results.results) for target in services.TARGETS],
        "files_read": {
            layout: {name: round(share, 3) for name, share in asdict(shares).items()}
            | {
                "limit": services.FILES_READ_MAX,
                "met": shares.both <= services.FILES_READ_MAX * results.read[services.UNSORTED].both,
            }
            for layout, shares in results.read.items()
        },
        "idle": {
            name: {"seconds": round(job.wall, 2), "outcome": job.outcome, "java": job.java}
            | {"limit": idle.SECONDS_MAX, "met": job.wall < idle.SECONDS_MAX and not job.java}
            for name, job in results.idle.items()
        },
    }


def _ran(target: Target, results: Results) -> bool:
    return target.ours in results and target.other in results


def starts_record(times: Mapping[str, Start]) -> dict[str, Any]:
    """Starts, and beside ours their limits."""
    return {
        name: {"seconds": round(start.wall, 3), "cpu": round(start.cpu, 3)}
        | ({"limit": LIMITS[name], "met": start.wall <= LIMITS[name]} if name in LIMITS else {})
        for name, start in times.items()
    }


def memory_record(load: Workload, costs: Mapping[str, Cost]) -> dict[str, Any]:
    """Peak memory of the Python worker beside its limit."""
    return {
        "rows": load.rows,
        "updated": load.updated,
        "steps": {
            step: {
                "worker_peak_mib": round(cost.worker_peak / MIB),
                "limit_mib": WORKER_MEMORY_MAX // MIB,
                "met": 0 < cost.worker_peak <= WORKER_MEMORY_MAX,
                "wall": round(cost.wall, 1),
                "cpu": round(cost.cpu, 1),
            }
            for step, cost in costs.items()
        },
    }


def markdown(record: Mapping[str, Any]) -> str:
    """The record as tables."""
    lines = [
        "# Bench",
        "",
        "Written by `make bench`; what the figures mean: [performance](../explanation/performance.md).",
        "",
    ]
    if "race" in record:
        lines += _race_lines(record["race"])
    if "logs" in record:
        lines += _logs_lines(record["logs"])
    if "versions" in record:
        lines += versions_lines(record["versions"])
    if "services" in record:
        lines += _services_lines(record["services"])
    if "store" in record:
        lines += store_lines(record["store"], machine_lines(record["store"]["machine"]))
    if "writers" in record:
        lines += writers_lines(record["writers"], machine_lines(record["writers"]["machine"]))
    if "streams" in record:
        lines += streams_lines(record["streams"])
    if "hour" in record:
        lines += hour_lines(record["hour"])
    if "reads" in record:
        lines += reads_lines(record["reads"])
    lines += index_lines(record)
    if "starts" in record:
        lines += ["## Starts", "", *machine_lines(record["starts"]["machine"]), ""]
        rows = [
            (
                name,
                f"{v['seconds']} s",
                f"{v['cpu']} s",
                *((f"{v['limit']} s", met_text(v)) if "limit" in v else ("–", "–")),
            )
            for name, v in record["starts"]["times"].items()
        ]
        lines += [*table_lines(("process", "wall", "CPU", "limit", "met"), rows), ""]
    if "memory" in record:
        held = record["memory"]
        text = f"bulk_insert of {held['rows']:,} rows, then an upsert of {held['updated']:,}, on Spark, one task at a time."
        lines += ["## Memory of one Python worker", "", *machine_lines(held["machine"]), "", text, ""]
        measured = [
            (
                step,
                f"{v['worker_peak_mib']} MiB",
                f"{v['limit_mib']} MiB",
                met_text(v),
                f"{v['wall']} s",
                f"{v['cpu']} s",
            )
            for step, v in held["steps"].items()
        ]
        lines += [*table_lines(("step", "peak", "limit", "met", "wall", "CPU"), measured), ""]
    return "\n".join(lines)


def _race_lines(race: Mapping[str, Any]) -> list[str]:
    intro = (
        f"{race['rows']:,} rows of TPC-H lineitem ({race['arrow_mib']} MiB in Arrow, 19 columns), 7 years, 2 buckets each; the "
        f"upsert is a random tenth ({race['updated']:,} rows) and touches every file. Every contender starts from the same "
        f"Parquet files and writes zstd level 1; its table is checked after each step. Wall: median of {race['rounds']} "
        "interleaved rounds in a warm session; cold: the first. CPU and peak are those of the process tree."
    )
    lines = ["## Race", "", *machine_lines(race["machine"]), "", intro, ""]
    labels = {entry.name: entry.label for entry in ENTRIES}
    for step in STEPS:
        rows = []
        for name, steps in race["contenders"].items():
            cost = steps[step]
            ratio = cost["wall"] / race["contenders"].get("floor", steps)[step]["wall"]
            rounds = f"{min(cost['wall_of_rounds'])} – {max(cost['wall_of_rounds'])}"
            rows.append(
                (
                    labels[name], f"{cost['wall']} s", f"{ratio:.2f}", rounds, f"{cost['cold_wall']} s",
                    f"{cost['cpu']} s", f"{cost['peak_mib']} MiB",
                )
            )  # fmt: skip
        head = (step, "wall", "× floor", "rounds", "cold", "CPU", "peak")
        lines += [*table_lines(head, rows), ""]
    return [*lines, "### Targets", "", *target_lines(race, labels), ""]


def _logs_lines(race: Mapping[str, Any]) -> list[str]:
    intro = (
        f"The same {race['rows']:,} rows as merge-on-read tables. upsert: {race['updated']:,} rows to logs; snapshot: every column "
        f"of every row, logs merged; incremental: what the upsert changed; small: {race['small']:,} rows to logs, by a warm job; "
        f"compact: planned and executed. hudi-rs reads the table of ours. Rows are checked after each step. Median of "
        f"{race['rounds']} rounds, cold round apart."
    )
    lines = ["## Race over logs", "", *machine_lines(race["machine"]), "", intro, ""]
    labels = {entry.worker: entry.label for entry in logs.ENTRIES}
    rows = [
        (labels[name], *(wall_text(steps.get(step)) for step in logs.STEPS))
        for name, steps in race["contenders"].items()
    ]
    lines += [*table_lines(("wall (rounds)", *logs.STEPS), rows), ""]
    return [*lines, *target_lines(race, labels), ""]


def _services_lines(race: Mapping[str, Any]) -> list[str]:
    intro = (
        f"The same {race['rows']:,} rows, unpartitioned, as they come, in {race['files_before']} files of {race['mib_before']} MiB "
        f"together; all of it clustered by {race_steps.SORTED_BY} towards {race_steps.OUTPUTS} files. Every contender clusters a copy of the "
        f"same table; rows, files and order are checked. Median of {race['rounds']} rounds, cold round apart."
    )
    lines = ["## Table services", "", *machine_lines(race["machine"]), "", intro, ""]
    labels = {entry.worker: entry.label for entry in services.ENTRIES}
    rows = [
        (
            labels[name],
            wall_text(c["cluster"]),
            f"{c['cluster']['cpu']} s",
            f"{c['cluster']['peak_mib']} MiB",
            str(c["files"]),
        )
        for name, c in race["contenders"].items()
    ]
    lines += [
        *table_lines(("cluster", "wall (rounds)", "CPU", "peak", "files"), rows),
        "",
        *target_lines(race, labels),
        "",
    ]
    first, second = race_steps.CURVE
    text = (
        f"Clustered by {first}, {second} into {race_steps.CURVE_OUTPUTS} files: the share of the table's files that a filter reads, a mean "
        f"over ranges that each hold a twentieth of the rows. At most {services.FILES_READ_MAX:.0%} of unsorted is aimed at on both."
    )
    shares = [
        (
            layout,
            f"{v['both']:.0%}",
            f"{v['first']:.0%}",
            f"{v['second']:.0%}",
            "" if layout == services.UNSORTED else met_text(v),
        )
        for layout, v in race["files_read"].items()
    ]
    lines += [text, "", *table_lines(("layout", "on both", f"on {first}", f"on {second}", "met"), shares), ""]
    jobs = [
        (name, f"{v['seconds']} s", v["outcome"], "yes" if v["java"] else "no", f"{v['limit']} s", met_text(v))
        for name, v in race["idle"].items()
    ]
    lines += ["A job of each service, asked for Spark, that has nothing to do:", ""]
    return [*lines, *table_lines(("service", "wall", "outcome", "Java started", "limit", "met"), jobs), ""]
