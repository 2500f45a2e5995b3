"""What the race says: a record for `bench.json`, and the Markdown that is printed and kept as `bench.md`."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import psutil

from bench import idle, logs, services
from bench import services_steps as asked
from bench.peers import HUDI
from bench.process import ROOT, Cost
from bench.race import ENTRIES, STEPS, Results, Target, Times
from bench.rows import Workload
from bench.services import ServicesFound
from bench.startup import Start

MIB = 1 << 20


TARGETS = (
    Target("upsert", "spark", "floor", 2.0),
    Target("upsert", "spark", "hudi", 1 / 5),
    Target("bulk_insert", "spark", "floor", 2.5),
    Target("bulk_insert", "spark", "hudi", 1 / 2),
    Target("upsert", "spark-bloom", "hudi-bloom", 1 / 5),
    Target("bulk_insert", "spark-bloom", "hudi-bloom", 1 / 2),
    Target("upsert", "local", "delta", 1.0),
    Target("bulk_insert", "local", "delta", 2.0),
)
STARTUP_LIMITS = {"import hudi_table": 0.5, "from hudi_table import open_table": 0.5, "hudictl --help": 0.15}
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
        "contenders": {name: _steps(steps) for name, steps in results.items()},
        "targets": [asdict(target) | _ratio(target, results) for target in TARGETS if _ran(target, results)],
    }


def _steps(steps: Mapping[str, Times]) -> dict[str, Any]:
    return {
        step: {
            "wall": round(times.middle(lambda cost: cost.wall), 2),
            "wall_of_rounds": [round(cost.wall, 2) for cost in times.warm],
            "cold_wall": round(times.cold.wall, 2) if times.cold else None,
            "cpu": round(times.middle(lambda cost: cost.cpu), 2),
            "peak_mib": round(max(cost.peak for cost in times.warm) / MIB),
            "python_worker_peak_mib": round(max(cost.worker_peak for cost in times.warm) / MIB),
        }
        for step, times in steps.items()
    }


def logs_record(load: Workload, rounds: int, results: Results) -> dict[str, Any]:
    """The race over logs: every step of every contender, and the targets."""
    return {
        "rows": load.rows,
        "updated": load.updated,
        "small": logs.SMALL_ROWS,
        "rounds": rounds,
        "contenders": {name: _steps(steps) for name, steps in results.items()},
        "targets": [asdict(target) | _ratio(target, results) for target in logs.TARGETS],
    }


def services_record(load: Workload, rounds: int, found: ServicesFound) -> dict[str, Any]:
    """The race of clusterings, the share of files that filters read by layout, and the jobs that found nothing to do."""
    return {
        "rows": load.rows,
        "files_before": found.before,
        "mib_before": round(found.bytes_before / MIB),
        "rounds": rounds,
        "contenders": {name: _steps(steps) | {"files": found.files[name]} for name, steps in found.results.items()},
        "targets": [asdict(target) | _ratio(target, found.results) for target in services.TARGETS],
        "files_read": {
            layout: {name: round(share, 3) for name, share in asdict(shares).items()}
            | {
                "limit": services.FILES_READ_MAX,
                "met": shares.both <= services.FILES_READ_MAX * found.read[services.UNSORTED].both,
            }
            for layout, shares in found.read.items()
        },
        "idle": {
            name: {"seconds": round(job.wall, 2), "outcome": job.outcome, "java": job.java}
            | {"limit": idle.SECONDS_MAX, "met": job.wall < idle.SECONDS_MAX and not job.java}
            for name, job in found.idle.items()
        },
    }


def _ran(target: Target, results: Results) -> bool:
    return target.ours in results and target.other in results


def _ratio(target: Target, results: Results) -> dict[str, Any]:
    ours, other = results[target.ours][target.step], results[target.other][target.step]
    ratio = ours.middle(lambda cost: cost.wall) / other.middle(lambda cost: cost.wall)
    cpu = ours.middle(lambda cost: cost.cpu) / max(0.01, other.middle(lambda cost: cost.cpu))
    return {"ratio": round(ratio, 3), "cpu_ratio": round(cpu, 3), "met": ratio <= target.limit}


def startup_record(times: Mapping[str, Start]) -> dict[str, Any]:
    """Start-up times beside their limits."""
    return {
        name: {
            "seconds": round(start.wall, 3),
            "cpu": round(start.cpu, 3),
            "limit": STARTUP_LIMITS[name],
            "met": start.wall <= STARTUP_LIMITS[name],
        }
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
    lines = ["# Bench", "", "Written by `make bench`; what the figures mean: [performance](../performance.md).", ""]
    if "race" in record:
        lines += _race_lines(record["race"])
    if "logs" in record:
        lines += _logs_lines(record["logs"])
    if "services" in record:
        lines += _services_lines(record["services"])
    if "startup" in record:
        lines += ["## Start", "", *_facts(record["startup"]["machine"]), ""]
        rows = [
            (name, f"{v['seconds']} s", f"{v['cpu']} s", f"{v['limit']} s", _met(v))
            for name, v in record["startup"]["times"].items()
        ]
        lines += [*_table(("command", "wall", "CPU", "limit", "met"), rows), ""]
    if "memory" in record:
        held = record["memory"]
        text = f"bulk_insert of {held['rows']:,} rows, then an upsert of {held['updated']:,}, on Spark, one task at a time."
        lines += ["## Memory of one Python worker", "", *_facts(held["machine"]), "", text, ""]
        measured = [
            (step, f"{v['worker_peak_mib']} MiB", f"{v['limit_mib']} MiB", _met(v), f"{v['wall']} s", f"{v['cpu']} s")
            for step, v in held["steps"].items()
        ]
        lines += [*_table(("step", "peak", "limit", "met", "wall", "CPU"), measured), ""]
    return "\n".join(lines)


def _race_lines(race: Mapping[str, Any]) -> list[str]:
    intro = (
        f"{race['rows']:,} rows of TPC-H lineitem ({race['arrow_mib']} MiB in Arrow, 19 columns), 7 years, 2 buckets each; the "
        f"upsert is a random tenth ({race['updated']:,} rows) and touches every file. Every contender starts from the same "
        f"Parquet files and writes zstd level 1; its table is checked after each step. Wall: median of {race['rounds']} "
        "interleaved rounds in a warm session; cold: the first. CPU and peak are those of the process tree."
    )
    lines = ["## Race", "", *_facts(race["machine"]), "", intro, ""]
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
        lines += [*_table(head, rows), ""]
    return [*lines, "### Targets", "", *_targets(race, labels), ""]


def _logs_lines(race: Mapping[str, Any]) -> list[str]:
    intro = (
        f"The same {race['rows']:,} rows as merge-on-read tables. upsert: {race['updated']:,} rows to logs; snapshot: every column "
        f"of every row, logs merged; incremental: what the upsert changed; small: {race['small']:,} rows to logs, by a warm job; "
        f"compact: planned and executed. hudi-rs reads the table of ours. Rows are checked after each step. Median of "
        f"{race['rounds']} rounds, cold round apart."
    )
    lines = ["## Race over logs", "", *_facts(race["machine"]), "", intro, ""]
    labels = {entry.worker: entry.label for entry in logs.ENTRIES}
    rows = [
        (labels[name], *(_wall(steps.get(step)) for step in logs.STEPS)) for name, steps in race["contenders"].items()
    ]
    lines += [*_table(("wall (rounds)", *logs.STEPS), rows), ""]
    return [*lines, *_targets(race, labels), ""]


def _services_lines(race: Mapping[str, Any]) -> list[str]:
    intro = (
        f"The same {race['rows']:,} rows, unpartitioned, as they come, in {race['files_before']} files of {race['mib_before']} MiB "
        f"together; all of it clustered by {asked.SORTED_BY} towards {asked.OUTPUTS} files. Every contender clusters a copy of the "
        f"same table; rows, files and order are checked. Median of {race['rounds']} rounds, cold round apart."
    )
    lines = ["## Table services", "", *_facts(race["machine"]), "", intro, ""]
    labels = {entry.worker: entry.label for entry in services.ENTRIES}
    rows = [
        (
            labels[name],
            _wall(c["cluster"]),
            f"{c['cluster']['cpu']} s",
            f"{c['cluster']['peak_mib']} MiB",
            str(c["files"]),
        )
        for name, c in race["contenders"].items()
    ]
    lines += [*_table(("cluster", "wall (rounds)", "CPU", "peak", "files"), rows), "", *_targets(race, labels), ""]
    first, second = asked.CURVE
    text = (
        f"Clustered by {first}, {second} into {asked.CURVE_OUTPUTS} files: the share of the table's files that a filter reads, a mean "
        f"over ranges that each hold a twentieth of the rows. At most {services.FILES_READ_MAX:.0%} of unsorted is aimed at on both."
    )
    shares = [
        (
            layout,
            f"{v['both']:.0%}",
            f"{v['first']:.0%}",
            f"{v['second']:.0%}",
            "" if layout == services.UNSORTED else _met(v),
        )
        for layout, v in race["files_read"].items()
    ]
    lines += [text, "", *_table(("layout", "on both", f"on {first}", f"on {second}", "met"), shares), ""]
    jobs = [
        (name, f"{v['seconds']} s", v["outcome"], "yes" if v["java"] else "no", f"{v['limit']} s", _met(v))
        for name, v in race["idle"].items()
    ]
    lines += ["A job of each service, asked for Spark, that has nothing to do:", ""]
    return [*lines, *_table(("service", "wall", "outcome", "Java started", "limit", "met"), jobs), ""]


def _targets(race: Mapping[str, Any], labels: Mapping[str, str]) -> list[str]:
    rows = [
        (
            t["step"],
            labels[t["ours"]],
            labels[t["other"]],
            f"{t['limit']:.2f}",
            f"{t['ratio']:.2f}",
            f"{t['cpu_ratio']:.2f}",
            _met(t),
        )
        for t in race["targets"]
    ]
    return _table(("step", "ours", "beside", "at most", "wall ratio", "CPU ratio", "met"), rows)


def _wall(cost: Mapping[str, Any] | None) -> str:
    if cost is None:
        return "–"
    return f"{cost['wall']} s ({min(cost['wall_of_rounds'])} – {max(cost['wall_of_rounds'])})"


def _facts(machine: Mapping[str, Any]) -> list[str]:
    text = (
        f"Commit {machine['commit']}; {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, load "
        f"{machine['load_at_start']} at the start and {machine['load_at_end']} at the end; Python {machine['python']}, Java "
        f"{machine['java']}, pyarrow {machine['pyarrow']}, pyspark {machine['pyspark']}, delta-rs {machine['deltalake']}, "
        f"Hudi {machine['hudi']}."
    )
    return [text]


def _met(item: Mapping[str, Any]) -> str:
    return "yes" if item["met"] else "**no**"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
