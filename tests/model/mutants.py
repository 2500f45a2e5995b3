"""Guards of the protocol and where their removal shows: section 7 of
docs/explanation/commit-protocol.md.

Every guard is a name that the processes look up in `without`. `finds` is the set of violations of
which a search of the instance without the guard must find the first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard removed (or several, joined by ` + `), the instance that shows it, the invariant
    that breaks.

    `finds` is empty where the search shows that nothing breaks. `long`: only in the full run.
    """

    guard: str
    instance: str
    finds: str
    strict: bool = False
    long: bool = False

    @property
    def guards(self) -> tuple[str, ...]:
        """The removed guards."""
        return tuple(self.guard.split(" + "))


MUTANTS = (
    Mutant("conflict check", "K1", "I1", long=True),
    Mutant("reading lost slots", "K1", "I1"),
    Mutant("freshness", "K2", "I1", long=True),
    Mutant("chained instants not reused", "K1", "I1", long=True),
    Mutant("exclusive claim", "K2", "I1"),
    Mutant("tail before claim", "K1", "I1", long=True),
    Mutant("chain before snapshot", "K1", "I1", long=True),
    Mutant("materialise predecessors", "K1", "I1", long=True),
    Mutant("published in order", "F1", "I7"),
    Mutant("recovery publishes in order", "K15", "I7"),
    Mutant("read-back on 412", "K1", "I2", long=True),
    Mutant("decision before publish", "K1", "I1"),
    Mutant("abort entry", "K1", "I1"),
    Mutant("chain scan in recovery", "K1", "I1"),
    Mutant("quarantine", "K15", "I2", long=True),
    Mutant("requests in flight", "K3", "I2", long=True),
    Mutant("archiver stops at pending", "K9", "I1", long=True),
    Mutant("H before archiving", "K16", "I1"),
    Mutant("publishing expires", "K16", "I1"),
    Mutant("trim horizon", "K18", "I1"),
    Mutant("fresh tail to decide", "K18", "I1"),
    Mutant("abort needs fresh listing", "K9", "I1", long=True),
    Mutant("late claims never helped", "K13", "I1"),
    Mutant("late claims never rolled back", "K13t", "I1"),
    Mutant("plans never aborted", "K7b", "I5"),
    Mutant("archived plans not resumed", "K20", "I1"),
    Mutant("plan in chain", "K7", "I1"),
    Mutant("planner's conflict check", "K7", "I1", long=True),
    Mutant("a listing behind which another has published is no snapshot", "K7", "I1", long=True),
    Mutant("claims of both kinds seen", "K7", "I2", long=True),
    Mutant("bucket as conflict key", "K5", "I3", long=True),
    Mutant("replaced files gone first", "K6", "I3", long=True),
    Mutant("retention for readers", "K8", "I6"),
    Mutant("planned file ids", "K9", "I3"),
    Mutant("completion time in entry", "K12", "I8"),
    Mutant("completion time read back", "V4", "I8", long=True),
    Mutant("completions above completions", "V1", "I10", long=True),
    Mutant("completions above instants", "V1", "I10"),
    Mutant("instants above completions", "V3", "I3"),
    Mutant("a plan takes what completed before it", "V1", "I10"),
    Mutant("archive tells completions", "V2", "I10"),
    Mutant("archive before deleting", "V2", "I1", long=True),
    Mutant("deltas conflict with compactions", "V1", "", long=True),
    Mutant("plans conflict with appends", "V6", "I10"),
    Mutant("a note comes first", "V5", "I1", long=True),
    Mutant("writers see the note", "V5", "I1", long=True),
    Mutant("writers see the version", "V5", "I1", long=True),
    Mutant("nothing is pending", "V5", "", long=True),
    Mutant("the decision touches everything", "V5", "", long=True),
    Mutant("nothing is pending + the decision touches everything", "V5", "I1", long=True),
    Mutant("not waiting for others", "K10s", "L"),
    Mutant("renewed right", "K15", "I2", long=True),
    Mutant("proof for each file", "K19", "I4"),
    Mutant("chain in proof", "K15", "I2", long=True),
    Mutant("commit in proof", "K17", "I3", long=True),
    Mutant("lost proof is none", "K15", "I2", long=True),
    Mutant("claim is no proof", "K15", "I2", long=True),
    Mutant("claim in proof", "K9", "", long=True),
    Mutant("gap in proof", "K18", "I7"),
    Mutant("rejected by the snapshot", "C1", "L"),
    Mutant("rejected by the chain", "C1", "L"),
    Mutant("walked commits conflict", "C2", "I1", long=True),
    Mutant("plan compared when resuming", "C2", "I1", long=True),
    Mutant("clustering touches its groups", "C2", "I1", long=True),
    Mutant("writers see clusterings", "C2", "I1", long=True),
    Mutant("a plan seen is no commit seen", "C2", "I1", long=True),
    Mutant("resume looks for an abort", "C3", "I1"),
    Mutant("abort minds a commit", "C3", "I1"),
    Mutant("quarantine", "C3", "I3", long=True),
    Mutant("a replaced group has moved", "C4", "I3"),
    Mutant("executors write the same", "C5", "I1"),
    Mutant("executors go by file groups", "C6", "L"),
    Mutant("a new plan ends the right", "G1", "I2"),
    Mutant("a new plan ends the walk", "G1", "I2"),
    Mutant("H before a new plan is executed", "G1", "I2"),
    Mutant("a decided plan is not written again", "G1", "I2"),
    Mutant("cleans and savepoints share a key", "S1", "I5"),
    Mutant("pending cleans count as gone", "S1", "I5"),
    Mutant("savepoints live for H", "S2", "I5"),
    Mutant("claim of a savepoint goes first", "S2", "I5", long=True),
    Mutant("a plan appears under its own claim", "S2", "I5"),
    Mutant("writers conflict with a restore", "R1", "I2", long=True),
    Mutant("restores carried out first", "R1", "I2", long=True),
    Mutant("files last", "R1", "I5"),
    Mutant("H before taking back", "R2n", "I5"),
    Mutant("what is taken back is aborted", "R2", "I5"),
    Mutant("aborted entries never helped", "R2", "I5"),
    Mutant("claims before the completed file", "R2", ""),
    Mutant("claims before the completed file + what is taken back is aborted", "R2n", "I5"),
    Mutant("pending cleans count as gone", "R3", "I1", long=True),
    Mutant("planners conflict with a restore", "R3", "I1", long=True),
    Mutant("restores conflict with cleans", "R3", "I1", long=True),
    Mutant("archiving keeps two", "R5", "I1"),
    Mutant("withdrawn by its own name", "U2", "I2"),
    Mutant("withdrawn by its own name + rollbacks stay alone", "U1", "I2"),
    Mutant("rollbacks stay alone", "U1", ""),
    Mutant("other engines looked for", "F1", "I1"),
    Mutant("window of our decision", "F1", "I1"),
    Mutant("window of the other engine", "F1", "I1"),
    Mutant("who fails deletes its files", "F3", "I2"),
    Mutant("markers are read", "F3", "I2"),
    Mutant("H before it is passed", "F3", "I2"),
    Mutant("markers stay behind another's rollback", "F3", "I2"),
    Mutant("the writer lives to learn of it", "F3", "I2"),
    Mutant("other engines looked for", "L1", "I1"),
    Mutant("overtaken is given up", "L1", "I1"),
    Mutant("lease before the decision", "L1", "I1"),
    Mutant("lease before the file", "L1", "I1"),
    Mutant("window of our decision", "L1", "I1"),
    Mutant("window of our file", "L1", "I1"),
    Mutant("a look behind the file", "L1", ""),
    Mutant("delta before decision", "D1", "I9"),
    Mutant("deltas again behind a plan", "D1", "I9"),
    Mutant("commits make it plan again", "D1", "I9"),
    Mutant("plan of completed deltas", "D1", "I9"),
    Mutant("deltas to what is built", "D3", "I9"),
    Mutant("a building is a plan", "D3", "I9"),
    Mutant("caught up before it is filled", "D3", "", long=True),
    Mutant("a clean enters the chain", "D7", "I9", long=True),
    Mutant("compaction waits for cleans", "D7", "I9", long=True),
    Mutant("a clean materialises predecessors", "D7", "I9", long=True),
    Mutant("deltas again behind a plan", "D10", "I9"),
    Mutant("commits make it plan again", "D10", "I9"),
    Mutant("plan of completed deltas", "D10", "I9"),
    Mutant("delta before decision", "D10", "I9"),
    Mutant("deltas to what is built", "D11", "I9"),
    Mutant("a building is a plan", "D11", "I9"),
    Mutant("a clean enters the chain", "D13", "I9", long=True),
    Mutant("compaction waits for cleans", "D13", "I9", long=True),
    Mutant("a clean materialises predecessors", "D13", "I9", long=True),
    Mutant("a drop puts a note", "D8", "I9", long=True),
    Mutant("a builder looks for notes", "D8", "I9", long=True),
    Mutant("looks before it names", "D9", "", long=True),
    Mutant("turns are waited for", "T1", "I11"),
    Mutant("who began earlier goes first", "T1", "I11"),
    Mutant("a turn expires", "T2", "L"),
    Mutant("chain read after staging", "K3s", "I2", strict=True, long=True),
    Mutant("delete sources", "K3s", "I2", strict=True, long=True),
    Mutant("delete body first", "K13s", "I1", strict=True),
)
