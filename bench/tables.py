"""What records and tables of all sections have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.race import Results, Target, Times

MIB = 1 << 20


def step_figures(steps: Mapping[str, Times]) -> dict[str, Any]:
    """Every step of a contender: medians, rounds and peaks."""
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


def target_ratio(target: Target, results: Results) -> dict[str, Any]:
    """The ratio of a target's two contenders, and whether it is met."""
    ours, other = results[target.ours][target.step], results[target.other][target.step]
    ratio = ours.middle(lambda cost: cost.wall) / other.middle(lambda cost: cost.wall)
    cpu = ours.middle(lambda cost: cost.cpu) / max(0.01, other.middle(lambda cost: cost.cpu))
    return {"ratio": round(ratio, 3), "cpu_ratio": round(cpu, 3), "met": ratio <= target.limit}


def target_lines(race: Mapping[str, Any], labels: Mapping[str, str]) -> list[str]:
    """The targets as a table."""
    rows = [
        (
            t["step"],
            labels[t["ours"]],
            labels[t["other"]],
            f"{t['limit']:.2f}",
            f"{t['ratio']:.2f}",
            f"{t['cpu_ratio']:.2f}",
            met_text(t),
        )
        for t in race["targets"]
    ]
    return table_lines(("step", "ours", "beside", "at most", "wall ratio", "CPU ratio", "met"), rows)


def wall_text(cost: Mapping[str, Any] | None) -> str:
    """Median and range of the rounds, or a dash."""
    if cost is None:
        return "–"
    return f"{cost['wall']} s ({min(cost['wall_of_rounds'])} – {max(cost['wall_of_rounds'])})"


def machine_lines(machine: Mapping[str, Any]) -> list[str]:
    """The machine in a sentence."""
    text = (
        f"Commit {machine['commit']}; {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, load "
        f"{machine['load_at_start']} at the start and {machine['load_at_end']} at the end; Python {machine['python']}, Java "
        f"{machine['java']}, pyarrow {machine['pyarrow']}, pyspark {machine['pyspark']}, delta-rs {machine['deltalake']}, "
        f"Hudi {machine['hudi']}."
    )
    return [text]


def met_text(item: Mapping[str, Any]) -> str:
    """Whether a target was met."""
    return "yes" if item["met"] else "**no**"


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
