"""Every fault of the museum is caught by the test that is named for it, which passes without the
fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.museum.all import MUTANTS
from tests.museum.mutant import Mutant
from tests.museum.run import copied_tree, fate_of, first_to_fail

pytestmark = pytest.mark.at_scale(2)


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    with copied_tree() as made:
        yield made


def test_without_a_fault_every_test_passes(tree: Path) -> None:
    assert first_to_fail(MUTANTS, tree) == ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_published_fault_is_caught(mutant: Mutant, tree: Path, figure: Callable[[int, str], None]) -> None:
    fate = fate_of(mutant, tree)
    assert fate.caught, fate.failed
    figure(1, "published faults caught")
