"""Table version 9 beside version 6: the main race and the race over logs once more, with ours on
both versions in the same rounds, and Apache Hudi on version 9."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench import logs, race
from bench.logs import LogEntry, race_logs
from bench.peers import HUDI_OF
from bench.race import Entry, Results, Target
from bench.rows import Workload
from bench.tables import machine_lines, step_figures, table_lines, target_lines, target_ratio, wall_text

LATER = 9
SLOWER_MAX = 1.1
"""How much longer a step may take on version 9 than on version 6."""


def later(entry: Entry) -> Entry:
    """The same contender on version 9."""
    return replace(entry, label=f"{entry.label}, version {LATER}", version=LATER)


OURS = (Entry("local", "ours, LocalEngine"), Entry("spark", "ours, Spark"))
RACE = (
    Entry("floor", "pyarrow alone"),
    *OURS,
    *(later(entry) for entry in OURS),
    later(Entry("spark", "ours, Spark, bloom", bloom=True)),
    Entry("hudi", f"Apache Hudi {HUDI_OF[LATER]}, version {LATER}", version=LATER),
    Entry("hudi", f"Apache Hudi {HUDI_OF[LATER]}, bloom, version {LATER}", bloom=True, version=LATER),
)
HUDI_LOGS = f"hudi-logs-{HUDI_OF[LATER]}"
LOGS = (
    LogEntry("local-logs", "ours, LocalEngine"),
    LogEntry("spark-logs", "ours, Spark"),
    LogEntry("local-logs", f"ours, LocalEngine, version {LATER}", version=LATER),
    LogEntry("spark-logs", f"ours, Spark, version {LATER}", version=LATER),
    LogEntry(HUDI_LOGS, f"Apache Hudi {HUDI_OF[LATER]}, version {LATER}", version=LATER),
    LogEntry("hudi-rs", f"hudi-rs, version {LATER}", reads_only=True, version=LATER),
)


def beside_itself(steps: Sequence[str], names: Sequence[str]) -> tuple[Target, ...]:
    """No step is much slower than on version 6."""
    return tuple(Target(step, f"{name}-{LATER}", name, SLOWER_MAX) for step in steps for name in names)


RACE_TARGETS = (
    *beside_itself(race.STEPS, ("local", "spark")),
    *(
        replace(
            each, ours=f"{each.ours}-{LATER}", other=each.other if each.other == "floor" else f"{each.other}-{LATER}"
        )
        for each in race.TARGETS
        if each.ours.startswith("spark")
    ),
)
LOG_TARGETS = (
    *beside_itself(logs.STEPS, ("local-logs", "spark-logs")),
    *(
        replace(each, ours=f"{each.ours}-9", other="hudi-rs-9" if each.other == "hudi-rs" else f"{HUDI_LOGS}-9")
        for each in logs.TARGETS
    ),
)


@dataclass(frozen=True, slots=True)
class Versions:
    """What both races gave."""

    race: Results
    logs: Results


def race_versions(
    load: Workload,
    folder: Path,
    rounds: int,
    say: Callable[[str], None],
    entries: Sequence[Entry] = RACE,
    log_entries: Sequence[LogEntry] = LOGS,
) -> Versions:
    """Both races, one after the other. Raises AssertionError if the rows of two contenders
    differ."""
    folder.mkdir()
    return Versions(
        race.race(load, folder, rounds, entries, say), race_logs(load, folder / "logs", rounds, say, log_entries)
    )


def versions_record(load: Workload, rounds: int, found: Versions) -> dict[str, Any]:
    """Everything that was measured, and the targets of those that took part."""
    return {
        "rows": load.rows,
        "updated": load.updated,
        "rounds": rounds,
        "race": _record(found.race, RACE_TARGETS),
        "logs": _record(found.logs, LOG_TARGETS),
    }


def _record(results: Results, targets: Sequence[Target]) -> dict[str, Any]:
    return {
        "contenders": {name: step_figures(steps) for name, steps in results.items()},
        "targets": [
            asdict(target) | target_ratio(target, results)
            for target in targets
            if target.step in results.get(target.ours, ()) and target.step in results.get(target.other, ())
        ],
    }


def versions_lines(held: Mapping[str, Any]) -> list[str]:
    """The section as Markdown."""
    intro = (
        f"Both races once more, {held['rows']:,} rows of which {held['updated']:,} are upserted, ours on table version 6 and on {LATER} in the "
        f"same rounds: on {LATER} no step may take more than {SLOWER_MAX} times as long. Apache Hudi and hudi-rs take part on version {LATER}. "
        f"Wall: median of {held['rounds']} rounds in a warm session, cold round apart."
    )
    lines = ["## Table version 9", "", *machine_lines(held["machine"]), "", intro, ""]
    for part, steps, labels in (
        ("race", race.STEPS, {entry.name: entry.label for entry in RACE}),
        ("logs", logs.STEPS, {entry.name: entry.label for entry in LOGS}),
    ):
        rows = [
            (labels[name], *(wall_text(costs.get(step)) for step in steps))
            for name, costs in held[part]["contenders"].items()
        ]
        lines += [*table_lines(("wall (rounds)", *steps), rows), "", *target_lines(held[part], labels), ""]
    return lines
