"""A script: everything that a run is made of, as a document. A seed makes one; a shrunk failure is
one.

Every seed draws its own mix (swarm testing): the kind of table, who takes part, which faults there
are and how often, how long requests take.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.simulation.earlier import EARLIER, PRESENT
from tests.simulation.faults import KINDS, LATER_KINDS
from tests.simulation.store import WHOLE

WRITES = ("upsert", "insert", "delete", "bulk insert", "overwrite")
DROP = "drop partition"
"""What a write may do besides: the partition of its key goes."""
READS = ("read", "read pinned", "read since", "read changes", "read of", "count", "look up")
SECONDARY = "secondary_index_writers"
"""The index of the column that tells who wrote a row, where a table has it."""
SERVICES = ("clean", "archive", "compact", "compact logs", "cluster", "build metadata", "savepoint", "roll back")
KEYS = tuple("abcdef")
WRITE_OPTIONS = {
    "hoodie.write.num.retries.on.conflict.failures": "3",
    "hoodie.write.concurrency.early.conflict.detection.enable": "true",
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy",
    "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution": "true",
}
"""What all writes and services of a run may be asked."""
HOUR = 3_600.0
FOREIGN = "foreign"
"""In the place of a version of the library: another engine's writer."""
BRING_TO = "bring to "
"""And a table version: what the process does that changes it."""
OPERATIONS = 60
CALLS_OF_AN_OPERATION = 25
CALLS_OF_THE_CHANGER = 600


@dataclass
class Operation:
    """One call of the library: `keys` are those of a write, `ts` the ordering value of its rows.
    `think`: seconds that the process waits before it."""

    kind: str
    keys: list[str] = field(default_factory=list)
    think: float = 0.0
    ts: int = 0


@dataclass
class Cast:
    """One process: what it does, and the faults that its requests meet, by their numbers. `skew`:
    of its wall clock, in seconds; `jumps`: moments at which that clock jumps, and by how much.
    `code`: the version of the library that it runs."""

    name: str
    operations: list[Operation]
    faults: dict[int, tuple[str, float]] = field(default_factory=dict)
    skew: float = 0.0
    jumps: list[tuple[float, float]] = field(default_factory=list)
    threads: int = 1
    restart_after: float = 5.0
    code: str = PRESENT


@dataclass
class Script:
    """One run. `base`: where the table lies, by which the library sends its requests at once, or
    one after the other."""

    seed: int
    table: dict[str, Any]
    cast: list[Cast]
    base: str = "s3://simulated/table"
    order: str = "ascending"
    page: int = WHOLE
    spread: float = 0.05

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Script:
        raw = json.loads(text)
        for cast in raw["cast"]:
            cast["operations"] = [Operation(**operation) for operation in cast["operations"]]
            cast["faults"] = {int(number): (kind, figure) for number, (kind, figure) in cast["faults"].items()}
            cast["jumps"] = [tuple(jump) for jump in cast["jumps"]]
        raw["cast"] = [Cast(**cast) for cast in raw["cast"]]
        return cls(**raw)

    @property
    def changes(self) -> bool:
        """Whether somebody brings the table to another version."""
        return any(each.kind.startswith(BRING_TO) for cast in self.cast for each in cast.operations)

    @property
    def operations(self) -> int:
        """How many calls of the library it asks for."""
        return sum(len(cast.operations) for cast in self.cast)

    @property
    def faults(self) -> int:
        """How many faults it names."""
        return sum(len(cast.faults) for cast in self.cast)


def script_of(seed: int, operations: int = OPERATIONS) -> Script:
    """The script of a seed."""
    chance = random.Random(seed)
    table = _table(chance)
    is_remote = chance.random() < 0.6
    script = Script(
        seed,
        table,
        [],
        base="s3://simulated/table" if is_remote else "memory://simulated/table",
        order="ascending" if is_remote else chance.choice(["ascending", "descending", "shuffled"]),
        page=chance.choice([WHOLE, WHOLE, 2, 5, 17]),
        spread=chance.choice([0.0, 0.05, 0.05, 2.0]),
    )
    writers, readers, keepers = chance.randrange(2, 6), chance.randrange(1, 3), chance.randrange(1, 3)
    kinds = _fault_kinds(chance)
    rate = chance.choice([0.0, 0.002, 0.01, 0.03])
    pace = chance.choice([0.0, 5.0, 60.0, HOUR / 2])
    writes, services = _weights(chance, WRITES), _weights(chance, _services_of(table))
    for number in range(writers + readers + keepers):
        role = "writer" if number < writers else "reader" if number < writers + readers else "keeper"
        share = operations * {"writer": 0.5 / writers, "reader": 0.3 / readers, "keeper": 0.2 / keepers}[role]
        weights = {
            "writer": writes,
            "reader": {"read": 4.0, "read pinned": 1.0, "count": 0.5, "look up": 1.0},
            "keeper": services,
        }[role]
        done = [_operation(chance, weights, pace) for _ in range(max(1, round(share)))]
        cast = Cast(f"{role}{number}", done, threads=chance.choice([1, 1, 2]))
        if chance.random() < 0.5:
            cast.skew = chance.choice([1.0, -1.0]) * chance.choice([0.005, 1.0, 600.0, 3 * HOUR])
        if chance.random() < 0.3:
            cast.jumps = [(chance.random() * (pace + 5) * len(done), chance.uniform(-600, 600)) for _ in range(3)]
        cast.restart_after = chance.choice([0.1, 60.0, HOUR])
        cast.faults = _faults(chance, kinds, rate, len(done) * CALLS_OF_AN_OPERATION)
        script.cast.append(cast)
    _draw_later(random.Random(f"{seed}, later"), script, rate, pace)
    _draw_further(random.Random(f"{seed}, further"), script)
    return script


def _draw_later(chance: random.Random, script: Script, rate: float, pace: float) -> None:
    """What scripts have had since: drawn apart, so that the rest of a seed's script stays as it
    was."""
    if chance.random() < 0.4:
        script.table["version"] = chance.choice([8, 9])
    kinds = [kind for kind in LATER_KINDS if chance.random() < 0.5]
    for cast in script.cast:
        calls = len(cast.operations) * CALLS_OF_AN_OPERATION
        cast.faults = {**(_faults(chance, kinds, rate, calls) if kinds else {}), **cast.faults}
    if script.seed % 3 == 0 and script.table["index"] != "RecordIndex":
        version = script.table.get("version", 6)
        versions = (6, 8, 9)
        done: list[Operation] = []
        for _ in range(chance.choice([3, 4, 6])):
            # Up and down in turn, as far as that goes.
            other = [each for each in versions if (each > version) == (len(done) % 2 == 0)]
            version = chance.choice(other or [each for each in versions if each != version])
            done.append(Operation(f"{BRING_TO}{version}", [], round(chance.expovariate(1 / (10 * pace + 60)), 3)))
        changer = Cast("changer", done, restart_after=chance.choice([0.1, 60.0, HOUR]))
        changer.faults = _faults(chance, [*KINDS, *LATER_KINDS], rate and 0.01, CALLS_OF_THE_CHANGER)
        script.cast.append(changer)
    elif chance.random() < 0.4:
        # Of two versions beside a change of the table's version nothing is promised.
        for cast in chance.sample(script.cast, chance.randrange(1, len(script.cast))):
            cast.code = EARLIER


def _draw_further(chance: random.Random, script: Script) -> None:
    """What they have had since that: rare operations in the place of others, in half of the
    scripts; and writers that append beside each other."""
    index = script.table["index"]
    is_bucket = isinstance(index, dict) and index["type"] == "Bucket"
    is_one_version = not script.changes and all(cast.code == PRESENT for cast in script.cast)
    if is_bucket and script.table["type"] == "MergeOnRead" and is_one_version and chance.random() < 0.5:
        script.table |= {"version": script.table.get("version", 9), "non_blocking": True}
    if is_one_version and chance.random() < 0.15:
        script.table["locked"] = True
        if not script.table.get("non_blocking") and chance.random() < 0.5:
            _draw_foreign(chance, script)
    if is_one_version:
        for name, value in WRITE_OPTIONS.items():
            if chance.random() < 0.2:
                script.table.setdefault("options", {})[name] = value
    if chance.random() < 0.5:
        return
    if not script.table.get("non_blocking") and chance.random() < 0.2:
        script.table["cdc"] = True
    # By event time logs have no global index.
    may_order = script.table["type"] == "CopyOnWrite" or index not in ("GlobalSimple", "RecordIndex")
    if is_one_version and may_order and chance.random() < 0.4:
        script.table["ordered"] = True
        for operation in (operation for cast in script.cast for operation in cast.operations):
            operation.ts = chance.randrange(4)
            if operation.kind == "delete" and script.table["type"] == "MergeOnRead":
                # Entries of logs meet each other before the base row: one behind a delete may lose to the row that was deleted, as with Hudi.
                operation.kind = "upsert"
    if index == "RecordIndex" and is_one_version and chance.random() < 0.4:
        script.table |= {"index": "PartitionedRecordIndex", "metadata": ["partitioned_record_index"]}
    elif index == "RecordIndex" and "version" in script.table and is_one_version and chance.random() < 0.7:
        script.table["metadata"] = ["record_index", f"{SECONDARY}=by"]
    rare: dict[str, list[tuple[str, float]]] = {
        "writer": [(DROP, 0.1)],
        "reader": [("read since", 0.15), ("read changes", 0.2), ("read of", 0.15)] if is_one_version else [],
        "keeper": [("restore", 0.1), ("delete savepoint", 0.1)],
    }
    if "metadata" in script.table:
        rare["keeper"] += [("drop metadata", 0.1), ("build metadata", 0.1)]
    if is_bucket:
        rare["keeper"] += [("resize", 0.1)]
    for cast in script.cast:
        for operation in cast.operations:
            for kind, share in rare.get(cast.name.rstrip("0123456789"), []):
                if chance.random() < share:
                    operation.kind = kind
                    operation.keys = [chance.choice(KEYS)] if kind == DROP else []


def _draw_foreign(chance: random.Random, script: Script) -> None:
    """A writer of another engine beside ours. The lock that they share is one of clocks."""
    for cast in script.cast:
        cast.skew, cast.jumps = 0.0, []
    longest = sum(operation.think for operation in script.cast[0].operations)
    done = []
    for _ in range(chance.choice([3, 6, 10])):
        keys = sorted(chance.sample(KEYS, chance.choice([1, 1, 2, 3])))
        kind = chance.choice(["upsert", "upsert", "insert", "delete", "overwrite"])
        done.append(Operation(kind, keys, round(chance.expovariate(1 / (longest / 10 + 5.0)), 3)))
    script.cast.append(Cast("foreign", done, code=FOREIGN))


def _table(chance: random.Random) -> dict[str, Any]:
    kind = chance.choice(["CopyOnWrite", "MergeOnRead"])
    indexes: list[Any] = ["Simple", {"type": "Bucket", "buckets": 2}, "GlobalSimple", "Bloom", "RecordIndex"]
    if kind == "MergeOnRead":
        indexes.append({"type": "ConsistentBucket", "buckets": 2})
    table: dict[str, Any] = {"type": kind, "index": chance.choice(indexes), "partitions": chance.choice([1, 1, 2])}
    if table["index"] == "RecordIndex":
        table["metadata"] = ["record_index"]
    elif chance.random() < 0.25:
        table["metadata"] = chance.choice([[], ["column_stats"], ["bloom_filters"]])
    return table


def clusters(table: dict[str, Any]) -> bool:
    """Whether clustering takes the table: rows of a plain bucket stay in it."""
    return not isinstance(table["index"], dict) or table["index"]["type"] != "Bucket"


def _services_of(table: dict[str, Any]) -> tuple[str, ...]:
    left = set(SERVICES)
    if table["type"] == "CopyOnWrite":
        left -= {"compact", "compact logs"}
    if not clusters(table):
        left -= {"cluster"}
    if "metadata" not in table:
        left -= {"build metadata"}
    return tuple(kind for kind in SERVICES if kind in left)


def _weights(chance: random.Random, kinds: tuple[str, ...]) -> dict[str, float]:
    """Some kinds not at all, others often."""
    found = {kind: chance.choice([0.0, 1.0, 1.0, 4.0]) for kind in kinds}
    for rare in ("roll back", "savepoint", "overwrite"):
        if rare in found:
            found[rare] = min(found[rare], 0.3)
    if not any(found.values()) or not found.get(kinds[0]):
        found[kinds[0]] = 1.0
    return found


def _operation(chance: random.Random, weights: dict[str, float], pace: float) -> Operation:
    kind = chance.choices(list(weights), list(weights.values()))[0]
    count = chance.choice([1, 1, 2, 3]) if kind in WRITES else 1 if kind == "look up" else 0
    keys = sorted(chance.sample(KEYS, count))
    think = chance.expovariate(1 / pace) if pace else chance.choice([0.0, 0.0, 0.01])
    return Operation(kind, keys, round(think, 3))


def _fault_kinds(chance: random.Random) -> list[str]:
    return [kind for kind in KINDS if chance.random() < 0.5] or [chance.choice(KINDS)]


def _faults(chance: random.Random, kinds: list[str], rate: float, calls: int) -> dict[int, tuple[str, float]]:
    found: dict[int, tuple[str, float]] = {}
    number = 0
    while rate:
        number += 1 + int(chance.expovariate(rate))
        if number > calls:
            break
        kind = chance.choice(kinds)
        found[number] = (kind, round(_figure(chance, kind), 3))
    return found


def _figure(chance: random.Random, kind: str) -> float:
    """Seconds, as far as the assumptions of the protocol go: what was sent takes effect within half
    an hour, or never."""
    if kind in ("crash sent", "late request"):
        return chance.choice([0.5, 40.0, chance.uniform(0, 0.98 * HOUR / 2)])
    if kind.startswith("pause"):
        return chance.choice([1.0, 120.0, 1_000.0, chance.uniform(0.5, 3) * HOUR, chance.uniform(3, 200) * HOUR])
    if kind == "slow reply":
        return chance.choice([1.0, 10.0, 29.0])
    if kind in ("throttling", "full store"):
        return chance.choice([0.5, 10.0, 120.0])
    return 0.0
