"""What the writers of a soak asked and were told, and what a scan may show of it.

A write's new rows are all there or none. Those of a write that was acknowledged are there, those of
one that failed are not; of one whose process was killed, or whose outcome is unknown, either. A row
that a delete named may be gone from when the delete was asked, and is gone once that was
acknowledged. The newest write that a reader sees of a shared row has written it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

SHOWN = 5


@dataclass(slots=True)
class History:
    """All journals of a folder, read as far as they go."""

    folder: Path
    new: dict[str, list[str]] = field(default_factory=dict)
    shared: dict[str, list[str]] = field(default_factory=dict)
    deletes: dict[str, list[str]] = field(default_factory=dict)
    done: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    faults: list[dict[str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _read: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        """Take in what the journals say by now. The last line of a killed process may be half
        there: it waits for its end."""
        for path in sorted(self.folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path.name, 0))
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read[path.name] = self._read.get(path.name, 0) + len(whole)
            for line in whole.splitlines():
                self._take(path.stem, json.loads(line))

    def _take(self, name: str, said: dict[str, Any]) -> None:
        at = said["at"]
        self.counts[f"{at} {said['error']}" if "error" in said else at] += 1
        if at == "try" and "dead" in said:
            self.deletes[said["by"]] = said["dead"]
        elif at == "try":
            self.new[said["by"]] = said["new"]
            self.shared[said["by"]] = said["shared"]
        elif at == "done":
            self.done[said["by"]] = said["instant"]
        elif at == "failed":
            self.failed[said["by"]] = said["error"]
        elif at in ("fault", "wrong"):
            self.faults.append({"process": name, **said})

    def promised(self) -> tuple[set[str], set[str]]:
        """The writes that are acknowledged by now, and the rows whose deletion is."""
        return set(self.done), {key for by in self.done for key in self.deletes.get(by, [])}

    def against(self, rows: pa.Table, promised: tuple[set[str], set[str]]) -> list[str]:
        """What is wrong with a scan that began when `promised` held and ended before the last
        `look`; empty if nothing is."""
        acknowledged, gone = promised
        ids: list[str] = rows["id"].to_pylist()
        there = set(ids)
        asked = {key for keys in self.deletes.values() for key in keys}
        wrong = [f"{key}: {count} times" for key, count in Counter(ids).items() if count > 1]
        wrong += [f"{key}: was deleted" for key in gone & there]
        failed_deletes = {key for by in self.failed for key in self.deletes.get(by, [])}
        asked_and_open = asked - failed_deletes
        for by, keys in self.new.items():
            seen = [key for key in keys if key in there]
            lost = [key for key in keys if key not in there and key not in asked_and_open]
            if by in acknowledged and lost:
                wrong.append(f"{by}: acknowledged, {', '.join(lost)} not there")
            elif by in self.failed and seen:
                wrong.append(f"{by}: failed ({self.failed[by]}), {', '.join(seen)} there")
            elif seen and lost:
                wrong.append(f"{by}: {', '.join(seen)} there, {', '.join(lost)} not")
        return wrong[:SHOWN]

    def shared_rows(self, rows: pa.Table) -> list[str]:
        """What is wrong with the shared rows of a table at rest, given with its commit times: each
        is of the newest visible write of it."""
        newest: dict[str, tuple[str, str]] = {}
        visible = dict(zip(rows["by"].to_pylist(), rows["_hoodie_commit_time"].to_pylist(), strict=True))
        for by, keys in self.shared.items():
            time = self.done.get(by) or visible.get(by)
            for key in keys if time else []:
                newest[key] = max(newest.get(key, ("", "")), (str(time), by))
        found = dict(zip(rows["id"].to_pylist(), rows["by"].to_pylist(), strict=True))
        return [
            f"{key}: of {found.get(key)}, not of {by} at {time}"
            for key, (time, by) in newest.items()
            if found.get(key) != by
        ]
