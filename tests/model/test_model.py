"""The commit protocol, searched: every interleaving of a few processes, pauses and lost replies
without bound.

Aspects: (1) no instance violates an invariant, and the searches are exhaustive, with the number of
states that section 8 of `docs/explanation/commit-protocol.md` states; (2) every guard of section 7
is needed: without it a search finds a violation; (3) from every state a retrying writer alone, and
a recovery alone, finish; (4) the simpler protocols of section 6 fail; (5) the metadata table
(instances D) shows what the folders show; (6) a rollback's instant (instances U) is nobody else's;
(7) where completed files tell when they completed (K12, instances V), slices are the same for every
reader; (8) beside another engine (instances F) no update is lost outside two windows, and what it
takes back stays away, though the writer goes on; (9) under a lock that is lost (instances L) no
update is lost outside two windows, who sleeps in the second finds its name taken (L4, L5), and no
log is compacted away that began beside a plan (L6); (10) in turns (instances T) a write beside `w`
others loses no more than 1 + w attempts, and a turn of the dead holds nobody up. The small
instances run always, all of them with HUDI_TEST_SCALE of 10
or more.
"""

from __future__ import annotations

import pytest

from tests.model.engine import Env, Result, Search, write
from tests.model.instances import INSTANCES, instance
from tests.model.mutants import MUTANTS, Mutant
from tests.model.simpler import SIMPLER, SOUND
from tests.model.store import view

FULL = 10
STATES = {
    "K8": 3_400,
    "K13": 2_956,
    "K13t": 2_956,
    "K19": 11_240,
    "K20": 896,
    "C1": 6_637,
    "C4": 7_798,
    "C5": 226,
    "C6": 9_559,
    "D1": 11_753,
    "D8": 5_943,
    "D10": 11_264,
    "D11": 20_833,
    "F1": 9_818,
    "F2": 11_135,
    "F3": 5_658,
    "L1": 3_712,
    "L4": 36_812,
    "L6": 3_670,
    "T1": 5_418,
    "T2": 10_856,
    "T3": 22_964,
    "R2": 1_795,
    "R2n": 851,
    "R5": 1_206,
    "U1": 14_793,
    "U2": 6_414,
    "V3": 2_454,
}
LONG_STATES = {
    "K10s": 18_782,
    "K15": 62_925,
    "K16": 26_736,
    "K18": 37_170,
    "D3": 31_212,
    "S2": 22_083,
    "V2": 36_623,
    "K1": 1_004_061,
    "K2": 256_693,
    "K3": 840_045,
    "K4": 173_887,
    "K5": 104_399,
    "K6": 183_308,
    "K7": 327_837,
    "K7b": 189_853,
    "K9": 130_789,
    "K10": 560_918,
    "K11": 237_074,
    "K12": 245_263,
    "V1": 474_885,
    "V4": 282_577,
    "V5": 146_390,
    "V6": 704_550,
    "K14": 81_219,
    "K17": 187_717,
    "C2": 83_595,
    "G1": 65_599,
    "C3": 130_218,
    "D2": 96_212,
    "D4": 482_606,
    "D5": 262_619,
    "D6": 603_780,
    "D7": 178_936,
    "D9": 84_655,
    "D12": 155_635,
    "D13": 158_194,
    "S1": 154_753,
    "R1": 48_848,
    "R3": 103_638,
    "R4": 118_173,
    "L2": 1_246_966,
    "L3": 282_836,
    "L5": 339_122,
}
STRICT_STATES = {"K13s": 1_366}
LONG_STRICT_STATES = {"K3s": 578_953}

long = pytest.mark.at_scale(FULL)


def search(name: str, without: tuple[str, ...] = (), *, strict: bool = False) -> Result:
    return Search(instance(name, without, strict=strict)).run()


def holds(name: str, states: int, *, strict: bool = False) -> None:
    result = search(name, strict=strict)
    assert not result.kinds, "\n".join([*(text for text, _ in result.violations.values()), *result.trace()])
    assert result.complete
    assert result.states == states


@pytest.mark.parametrize("name", STATES)
def test_no_interleaving_of_a_small_instance_violates_an_invariant(name: str) -> None:
    holds(name, STATES[name])


@pytest.mark.parametrize("name", STRICT_STATES)
def test_strict_mode_needs_no_assumption_about_time(name: str) -> None:
    holds(name, STRICT_STATES[name], strict=True)


@long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", LONG_STATES)
def test_no_interleaving_of_a_large_instance_violates_an_invariant(name: str) -> None:
    holds(name, LONG_STATES[name])


@long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", LONG_STRICT_STATES)
def test_strict_mode_beside_archiving_needs_no_assumption_about_time(name: str) -> None:
    holds(name, LONG_STRICT_STATES[name], strict=True)


def breaks(mutant: Mutant) -> None:
    result = search(mutant.instance, mutant.guards, strict=mutant.strict)
    assert result.kinds == ({mutant.finds} if mutant.finds else set()), "\n".join(result.trace())


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if not m.long], ids=lambda m: m.guard)
def test_removing_one_guard_breaks_an_invariant(mutant: Mutant) -> None:
    breaks(mutant)


@long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.long], ids=lambda m: m.guard)
def test_removing_one_guard_breaks_an_invariant_of_a_large_instance(mutant: Mutant) -> None:
    breaks(mutant)


def simpler_breaks(name: str) -> None:
    make, finds = SIMPLER[name]
    result = Search(make()).run()
    assert result.kinds == {finds}, "\n".join(result.trace())


@pytest.mark.parametrize("name", [name for name in SIMPLER if not name.startswith("N13")])
def test_no_simpler_protocol_will_do(name: str) -> None:
    simpler_breaks(name)


@long
@pytest.mark.timeout(3600)
def test_rolling_forward_a_decision_per_instant_brings_archived_commits_back() -> None:
    simpler_breaks("N13 roll-forward of an archived instant")


@pytest.mark.parametrize("name", SOUND)
def test_a_lock_whose_thief_decides_first_is_sound_and_so_is_sharing_an_honest_lock(name: str) -> None:
    make, states = SOUND[name]
    result = Search(make()).run()
    assert result.complete
    assert (result.kinds, result.states) == (set(), states)


def test_a_job_that_outlasts_its_proof_before_each_file_still_commits() -> None:
    """The right to write bounds no job: a writer that sleeps past every proof once renews it and
    goes on."""
    case = instance("K19")
    writer, store, slept = case.processes[0], dict(case.store), 0
    at = writer.begin()
    while at[0] != "done":
        env = Env(case.processes, (at,), frozenset(), archives=False, trims=False)
        steps = [step for step in writer.steps(at, store, env) if step.lost is None]
        sleeping = [step for step in steps if step.label.startswith("sleeps")]
        step = sleeping[0] if sleeping and slept < 2 * len(case.rows) else steps[0]
        slept += step in sleeping
        write(store, step)
        at = step.to
    assert slept == 2 * len(case.rows)
    assert sum(mask >> 1 & 1 for mask in view(store).values()) == 2


def test_every_instance_has_a_stated_number_of_states() -> None:
    assert {*STATES, *LONG_STATES, *STRICT_STATES, *LONG_STRICT_STATES} == set(INSTANCES)


def test_the_trace_of_a_violation_ends_in_it() -> None:
    result = search("K13", ("late claims never helped",))
    (text, _) = next(iter(result.violations.values()))
    assert text.startswith("I1")
    assert result.trace()[-1].endswith(("helps entry 1 =ok", "publishes 2 =ok"))
