"""Each fault of the museum is found by a few seeds; without it the same seeds find nothing
(`test_simulation.py`)."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.simulation.museum import MUTANTS, Mutant
from tests.simulation.run import play
from tests.simulation.script import script_of

SEEDS = 60


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_published_fault_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.infect(monkeypatch)
    assert any(play(script_of(seed)).anomalies for seed in chain([mutant.seed], range(1, SEEDS)))
