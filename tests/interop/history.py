"""One random history of two writers: twelve steps on a table, each by one of them, beside a
dictionary."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import ExpiredError, WriteConflictError
from hudi_table.model.names import IS_DELETED
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.clean_plans import last_clean
from tests.interop import ours
from tests.interop.disorder import disordered, unflagged, with_flags
from tests.interop.looking_back import assert_past
from tests.interop.model import Model, rows
from tests.interop.turns import Kind, Them, Us, Writer, batch, chance_of, drawn_kind, schema_for
from tests.support import hudi_rs
from tests.support.hudi_oracle import HudiFailedError, HudiOracle
from tests.support.rows import META, assert_same_rows, by_key
from tests.support.written import slices

STEPS = 12
KEYS = range(40)
WRITES = ("upsert", "upsert", "upsert", "insert", "delete", "insert_overwrite")
REWRITES = ("compaction", "plan compaction", "clustering", "plan clustering")
OTHERS = ("clean", "rollback", "savepoint", "restore", "archive")
COMPACTED = "is earlier than the latest compaction"
"""Why Hudi ends a rollback half way: it had just compacted its metadata table."""
CLEANED = "Cleaner cleaned up the timestamp of interest"


class History:
    """A table, what it holds, and what was done to it."""

    def __init__(self, base: Path, oracle: HudiOracle, seed: int) -> None:
        self._chance = chance_of(oracle.version, seed)
        self._base, self._release, self._seed = base, oracle.version, seed
        self.kind: Kind = drawn_kind(self._chance, oracle.version)
        self._schema = with_flags(schema_for(oracle.version))
        self._us, self._them = Us(base, self.kind), Them(base, self.kind, oracle)
        self._model = Model(partitioned=self.kind.partitioned, by_event_time=self.kind.merging == "event time")
        self._past: list[tuple[str, Model]] = []
        self._saved: list[tuple[str, Model]] = []
        self._left: set[str] = set()  # plans of what a restore of Hudi's took back
        self._gone: set[str] = set()  # files that rollbacks and restores of Hudi's deleted
        self.steps: list[str] = []
        self._written = self.looks_back = 0

    def __str__(self) -> str:
        lines = [f"history {self._seed} with Hudi {self._release}: {self.kind}"]
        return "\n".join([*lines, *(f"  {number}. {step}" for number, step in enumerate(self.steps, start=-1))])

    @property
    def table(self) -> HudiTable:
        return open_table(self._base)

    def run(self) -> None:
        """Make the table, fill it, and take twelve steps; a failure tells all of them."""
        try:
            with self._them:
                if self.kind.maker == "us":
                    self._us.create(self._schema)
                maker = self._us if self.kind.maker == "us" else self._them
                self._write(maker, "insert", list(range(24)))
                self._write(self._writer(), "upsert", list(range(10, 30)))
                looks = {STEPS, *self._chance.sample(range(1, STEPS), 2)}
                for number in range(1, STEPS + 1):
                    self._step()
                    self._check(them=number in looks)
                for _, instant in self._pending():
                    if instant in self._left:
                        self._us.rollback(instant)
                found = [each for each in self.table.doctor(keys=True) if each.severity is Severity.ERROR]
                assert not [each for each in found if not self._known(each)], found
        except BaseException as error:
            error.add_note(str(self))
            raise

    def _writer(self) -> Writer:
        return self._us if self._chance.random() < 0.5 else self._them

    def _step(self) -> None:
        pending = self._pending()
        if pending and self._chance.random() < 0.3:
            service, instant = pending[0]
            by = self._us if self._ours_alone(f"execute {service}") or instant in self._left else self._writer()
            self._say(by, f"execute {service}")
            try:
                by.execute(service, instant)
            except WriteConflictError as error:
                # Case 51. One that Hudi alone had executed may be executed again, if nothing has changed.
                if instant not in self._left or not re.search(
                    "plan it again|was given up|schedule a new one", str(error)
                ):
                    raise
                if (service, instant) in self._pending():
                    by.rollback(instant)
                assert (service, instant) not in self._pending()
            return
        while not self._may(name := self._drawn()):
            pass
        by = self._us if self._ours_alone(name) else self._writer()
        if name in WRITES:
            self._write(by, name, self._numbers(name))
        else:
            self._serve(by, name)

    def _drawn(self) -> str:
        """A step: half of them writes, and more rewrites than what else there is."""
        (names,) = self._chance.choices([WRITES, REWRITES, OTHERS], weights=[5, 3, 2])
        return self._chance.choice(names)

    def _may(self, name: str) -> bool:
        """Whether the step makes sense now."""
        clustering = bool(self.table.pending_clusterings())
        pending = bool(self._pending())
        match name:
            case "compaction" | "plan compaction":
                return self.kind.logs and not pending
            case "clustering" | "plan clustering":
                return self.kind.clustered and not pending
            case "rollback":
                return len(self._past) > 1 and not pending and self._newest() == self._past[-1][0]
            case "restore":
                return bool(self._saved) and not pending
            case "savepoint":
                return not self._saved or self._saved[-1][0] != self._newest()
            case "insert":
                hashed = self.kind.index == "consistent" and clustering
                return len(self._model.found) < len(KEYS) and not hashed
            case "upsert" | "delete" | "insert_overwrite":
                return not clustering
        return True

    def _ours_alone(self, name: str) -> bool:
        """Whether the step is one that Hudi does wrong (docs/reference/compatibility.md)."""
        if self._release == "0.15.0" and self.kind.logs and name in ("clustering", "plan clustering"):
            # Case 53: what logs deleted comes back where it executes a plan of its own.
            return True
        if self.kind.index != "consistent":
            return False
        # Case 35: what is written after it goes to file groups that it hid. And 1.0.2 loses a key that came back.
        return name == "insert_overwrite" or (self._release == "1.0.2" and "clustering" in name)

    def _numbers(self, name: str) -> list[int]:
        known = {int(key[1:]) for key in self._model.found}
        return [number for number in KEYS if name != "insert" or number not in known]

    def _write(self, by: Writer, operation: str, numbers: list[int]) -> None:
        self._written += 1
        first = self._written == 1
        data = rows(numbers, 1, self._schema) if first else batch(self._chance, numbers, self._written, self._schema)
        data = unflagged(data)
        if operation == "upsert":
            data = disordered(self._chance, data, self._model, self.kind)
        self._say(by, f"{operation} {', '.join(map(_told, data.to_pylist()))}")
        by.write(operation, data)
        self._model.apply(operation, data)
        self._past.append((self._newest(), self._model.copy()))

    def _serve(self, by: Writer, name: str) -> None:
        self._say(by, name)
        match name:
            case "compaction" | "clustering" | "plan compaction" | "plan clustering":
                service = name.removeprefix("plan ")
                before = set(self._pending())
                by.plan(service)
                for _, instant in set(self._pending()) - before:
                    self.steps[-1] += f" at {instant}"
                    if not name.startswith("plan"):
                        by.execute(service, instant)
            case "clean":
                by.clean()
            case "rollback":
                instant = self._past[-1][0]
                if any(saved == instant for saved, _ in self._saved):
                    self.steps[-1] += " (savepointed: none)"
                    return
                there = self._files()
                self._roll_back(by, instant)
                if by is self._them:
                    self._gone |= there - self._files()
                self._past.pop()
                self._model = self._past[-1][1].copy()
            case "savepoint":
                by.savepoint(self._newest())
                self._saved.append((self._newest(), self._model.copy()))
            case "restore":
                instant, model = self._saved[-1]
                there = self._files()
                by.restore(instant)
                if by is self._them:
                    self._gone |= there - self._files()
                self._left = {left for _, left in self._pending()}
                assert by is self._them or not self._left
                self._model = model.copy()
                self._past = [(at, rows) for at, rows in self._past if at <= instant]
            case "archive":
                by.archive()

    def _roll_back(self, by: Writer, instant: str) -> None:
        try:
            by.rollback(instant)
        except HudiFailedError as error:
            if COMPACTED not in str(error):
                raise
            self._say(self._us, "finish it")
            self._us.rollback(instant)

    def _pending(self) -> list[tuple[str, str]]:
        table = self.table
        compactions = [("compaction", instant) for instant in table.services.compaction().pending()]
        return compactions + [("clustering", instant) for instant in table.pending_clusterings()]

    def _newest(self) -> str:
        newest = load_timeline(self.table.context).last_commit
        assert newest is not None
        return newest.time

    def _check(self, *, them: bool) -> None:
        expected = self._model.rows()
        mine = ours.read(self._base, meta=True)
        data = [name for name in mine.column_names if name not in META]
        assert_same_rows(mine.select(data), expected, of="ours")
        self._check_hudi_rs(mine)
        self.looks_back += assert_past(self.table, self._past[-5:] + self._saved, self._model)
        if them:
            assert_same_rows(self._them.read(), mine, columns=mine.column_names, of=self._them.name)
            self._travel()

    def _travel(self) -> None:
        """At the write before the newest one Hudi sees what we see."""
        time, _ = self._past[-2:][0]
        try:
            mine = self.table.scan(as_of=time).to_arrow()
        except ExpiredError:
            return
        try:
            found = self._them.read(as__of__instant=time)
        except HudiFailedError as error:
            # Case 58: it refuses what the newest clean does not promise to keep.
            if CLEANED not in str(error) or time >= self._retained():
                raise
            return
        assert_same_rows(found, mine, columns=mine.column_names, of=f"{self._them.name} as of {time}")

    def _retained(self) -> str:
        """From which instant on the newest clean keeps everything."""
        ctx = self.table.context
        clean = last_clean(ctx, load_timeline(ctx))
        return clean.retains if clean else ""

    def _check_hudi_rs(self, mine: pa.Table) -> None:
        names = mine.column_names
        try:
            theirs = hudi_rs.read(self._base)
        except Exception as error:
            # It reads no metadata table with records of 1.0.2 and of later ones (docs/explanation/metadata-table.md).
            if not (self.kind.metadata and self._release == "1.0.2" and "reconcile" in str(error)):
                raise
            return
        if self.kind.version == 6 and self.table.services.compaction().pending():
            # Case 28: rows beside a pending compaction are missing, and those that were deleted there are not.
            return
        if self._logs_alone():
            # Case 50: it may miss rows of file groups without a base file.
            assert by_key(theirs, ["id"], columns=names).items() <= by_key(mine, ["id"], columns=names).items()
        else:
            assert_same_rows(theirs, mine, columns=names, of="hudi-rs")

    def _logs_alone(self) -> bool:
        """Whether a file group has logs and no base file, which the metadata table tells of or of
        which a write is archived."""
        table, alone = self.table, [each for each in slices(self.table) if each.base is None]
        start = load_timeline(table.context).start or ""
        first = min((log.name.base_instant for each in alone for log in each.logs), default=start)
        return bool(alone) and (self.kind.metadata or (self.kind.version > 6 and first < start))

    def _known(self, finding: Finding) -> bool:
        """Whether it is case 52: Hudi builds the metadata table within a rollback or a restore, and
        then deletes files that it listed there."""
        return finding.check is Check.METADATA_TABLE and finding.path in self._gone

    def _files(self) -> set[str]:
        found = (path.relative_to(self._base) for kind in ("*.parquet", ".*.log.*") for path in self._base.rglob(kind))
        return {str(path) for path in found if path.parts[0] != ".hoodie"}

    def _say(self, by: Writer, what: str) -> None:
        self.steps.append(f"{by.name}: {what}")


def _told(row: dict[str, Any]) -> str:
    return f"{row['id']}@{row['ts']}{'-' if row[IS_DELETED] else ''}"
