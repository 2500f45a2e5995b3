"""docs/results/faults.md and faults.json, of the rounds that are kept."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.mirror.rounds import FINE, REPAIR, UNREADABLE, WRITABLE_SECONDS_MAX, WRONG
from tests.mirror.schedules import SCHEDULES
from tests.mirror.writers import RETAINED, VERSION, Came, table_options

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
VERDICTS = (FINE, WRONG, UNREADABLE, REPAIR)
SHOWN_MAX, SAID_MAX = 12, 200

EXECUTOR = re.compile(r" ?\([\d.]+ executor driver\)")
"""The address of the machine, which Spark tells."""
Found = dict[str, Any]

INTRODUCTION = f"""The same faults, on our writer and on Apache Hudi's (Spark 3.5, S3A of Hadoop 3.3.4), on tables of version {VERSION} in an S3 server (versitygw). Requests
go by a proxy that does one fault at one of them; processes are killed and stopped. A round begins with a table of two writes.
A write meets the fault, the next ones recover what is left by nothing but their own means, and hudi-rs, which belongs to neither, reads all the time past the
proxy. `make mirror` runs rounds, adds them up and writes this page.

## How to read it

- A round is **fine** if in the end every acknowledged row is there once, of no other write more than all or nothing, each shared row is of the newest write, and writes go on without a
  hand. It has **wrong rows** or is **unreadable** by the engine's own reader, so that no difference of readers counts against a writer. It **needs repair** if no write was acknowledged
  for {WRITABLE_SECONDS_MAX:.0f} seconds, in the same process nor in a new one.
- A write that ends with an error, or with its process, may be there or not: an error does not mean "not written", for either engine.
- A write of Hudi's is an upsert of its DataFrame writer with the services that it runs after it: cleaning, compaction after two delta commits. Ours is an upsert,
  then a compaction after every second write, then a cleaning.
- Hudi's write ends with an error too if a service after its commit fails, though its rows are there: it counts as refused. A service of ours that fails is told apart from the write.
- Seconds until writable count from when another process is ready, so Java's start is in none of them. Small rows, a store on the same machine, and that one busy: they are no figures of performance.
- Few rounds find only what is frequent. What is fine here was not shown to be safe.
"""


def kept(path: Path) -> list[Found]:
    """The rounds of a file, oldest first."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write(path: Path) -> None:
    """Both files."""
    fired = [found for found in kept(path) if found["fired"]]
    engines = sorted({found["engine"] for found in fired}, key=lambda name: (name != "ours", name))
    (RESULTS / "faults.json").write_text(json.dumps(_record(fired, engines), indent=1) + "\n")
    (RESULTS / "faults.md").write_text("\n".join(_page(fired, engines)) + "\n")


def _of(rounds: Iterable[Found], engine: str, schedule: str) -> list[Found]:
    return [found for found in rounds if (found["engine"], found["schedule"]) == (engine, schedule)]


def _record(rounds: list[Found], engines: Sequence[str]) -> Found:
    return {
        "commits": sorted({found["commit"] for found in rounds}),
        "schedules": {
            schedule.name: {engine: _counts(_of(rounds, engine, schedule.name)) for engine in engines}
            for schedule in SCHEDULES
        },
        "not fine": [
            _told(found)
            for found in rounds
            if found["verdict"] != FINE or found["reads failed"] or found["reads wrong"]
        ],
    }


def _told(found: Found) -> Found:
    """A round with no more than the first and the last that was said."""
    said = [_short(text) for text in dict.fromkeys([*found["said"][:1], *found["said"][-1:]])]
    return found | {"said": said, "own": _short(found["own"])}


def _counts(rounds: list[Found]) -> Found:
    seconds = [found["seconds"] for found in rounds if found["seconds"] is not None]
    return {
        "rounds": len(rounds),
        "verdicts": {name: count for name in VERDICTS if (count := sum(found["verdict"] == name for found in rounds))},
        "came": dict(Counter(came for found in rounds for came in found["came"])),
        "seconds": {"median": round(median(seconds), 2), "longest": max(seconds)} if seconds else {},
        "reads": {name: sum(found[name] for found in rounds) for name in ("reads", "reads failed", "reads wrong")},
    }


def _page(rounds: list[Found], engines: Sequence[str]) -> list[str]:
    titles = [_title(name) for name in engines]
    commits = ", ".join(f"`{name}`" for name in sorted({found["commit"] for found in rounds}))
    total = {engine: sum(found["engine"] == engine for found in rounds) for engine in engines}
    said = ", ".join(f"{total[engine]} of {_title(engine)}" for engine in engines)
    return [
        "# Faults: the mirror", "", INTRODUCTION,
        f"## What came of the rounds\n\nRounds in which the fault happened: {said}, on commit {commits}.", "",
        *_table(rounds, engines, titles, _verdicts),
        "What came of the writes that met the fault (and of those that were tried until one was acknowledged):", "",
        *_table(rounds, engines, titles, _came),
        "Seconds until the next acknowledged write, in the middle and at most:", "",
        *_table(rounds, engines, titles, _seconds),
        "Reads by hudi-rs while all that happened, and how many of them failed or showed rows that cannot be:", "",
        *_table(rounds, engines, titles, _reads),
        *_not_fine(rounds), *_schedules(), *_settings(),
    ]  # fmt: skip


def _title(engine: str) -> str:
    return engine if engine == "ours" else f"Apache Hudi {engine}"


def _table(
    rounds: list[Found], engines: Sequence[str], titles: list[str], cell: Callable[[list[Found]], str]
) -> list[str]:
    lines = [f"| fault | {' | '.join(titles)} |", f"|---|{'---|' * len(titles)}"]
    for schedule in SCHEDULES:
        cells = [cell(found) if (found := _of(rounds, engine, schedule.name)) else "–" for engine in engines]
        if any(text != "–" for text in cells):
            mark = " (1)" if schedule.documented else ""
            lines.append(f"| {schedule.name}{mark} | {' | '.join(cells)} |")
    return [*lines, ""]


def _verdicts(rounds: list[Found]) -> str:
    counts = Counter(found["verdict"] for found in rounds)
    return ", ".join(
        f"{counts[name]} {name}" if name == FINE else f"**{counts[name]} {name}**" for name in VERDICTS if counts[name]
    )


def _came(rounds: list[Found]) -> str:
    counts = Counter(came for found in rounds for came in found["came"])
    return ", ".join(f"{counts[came.value]} {came.value}" for came in Came if counts[came.value])


def _seconds(rounds: list[Found]) -> str:
    found = [each["seconds"] for each in rounds if each["seconds"] is not None]
    return f"{median(found):.1f}, {max(found):.1f}" if found else "never"


def _reads(rounds: list[Found]) -> str:
    every, failed, wrong = (sum(found[name] for found in rounds) for name in ("reads", "reads failed", "reads wrong"))
    more = [f"{count} {what}" for count, what in ((failed, "failed"), (wrong, "wrong")) if count]
    return ", ".join([f"{every} reads", *more])


def _not_fine(rounds: list[Found]) -> list[str]:
    """What was said where something was not fine, each kind of it once."""
    lines: dict[tuple[str, str, str], str] = {}
    for found in rounds:
        if found["verdict"] == FINE and not found["reads failed"] and not found["reads wrong"]:
            continue
        key = found["engine"], found["schedule"], found["verdict"]
        said = [*found["wrong"], found["own"], *found["said"][-1:], *map(_joined, found["read"])]
        what = "; ".join(_short(text) for text in said if text)[: 3 * SAID_MAX]
        lines.setdefault(key, f"- {_title(key[0])}, {key[1]}, {found['kind']}, {key[2]} ({found['fired']}): {what}")
    shown = [*lines.values()][:SHOWN_MAX]
    return (
        ["## What was not fine", "", "An example of each; all of them are in `faults.json`.", "", *shown, ""]
        if shown
        else []
    )


def _joined(read: str | list[str]) -> str:
    return "a read: " + (read if isinstance(read, str) else ", ".join(read))


def _short(text: str) -> str:
    text = EXECUTOR.sub("", text)
    text = " ".join(text.replace("|", "/").replace("<", "‹").replace(">", "›").split())
    return text if len(text) <= SAID_MAX else text[:SAID_MAX] + "…"


def _schedules() -> list[str]:
    lines = ["## The faults", "", "| fault | what happens | options beside the defaults |", "|---|---|---|"]
    for each in SCHEDULES:
        told = [f"{whose}: " + ", ".join(f"`{key}={value}`" for key, value in options.items())
                for whose, options in (("ours", each.ours), ("Hudi", each.hudi)) if options]  # fmt: skip
        if each.locked:
            told.append("both: ZooKeeper's lock, a session of 10 seconds")
        lines.append(f"| {each.name} | {each.what} | {'; '.join(told) or '–'} |")
    notes = [f"(1) {each.documented}." for each in SCHEDULES if each.documented]
    return [*lines, "", *notes, ""]


def _settings() -> list[str]:
    options = ", ".join(
        f"`{key}={value}`" for key, value in table_options("CopyOnWrite").items() if value and "parallelism" not in key
    )
    hudi = (
        f"Every write of Hudi's: {options}, the table type, two tasks a shuffle. Its metadata table, its rollback of failed writes, its heartbeats and its"
        " markers are as they come. S3A is told where the server is, `fs.s3a.directory.marker.retention=keep` (versitygw refuses to delete the marker of a"
        " folder that holds something, on which S3A tries again without an end), and nothing of how often to try again."
    )
    ours = (
        f"Ours: the same key, order, buckets and version, `hoodie.cleaner.commits.retained={RETAINED}`; all else is as it comes. No lock but where the"
        " table says so."
    )
    volume = "Only a run as root has a volume of its own that can be full; else that fault is left out."
    return ["## What both are told", "", hudi, "", ours, "", volume]
