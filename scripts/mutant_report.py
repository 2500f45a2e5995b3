"""What became of mutants, kept from run to run: docs/results/mutants.json, and the page of it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import threading
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from scripts.mutant_tests import digest

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "docs" / "results" / "mutants.json"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.toml")
FATES = ("noticed", "noticed farther", "noticed at scale", "equivalent", "missed", "untested")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change, and what became of it. `fate`: one of `FATES`; untested is what no test that is
    asked calls. `test`: which noticed it. `text` and `tests`: digests of the module and, of what
    was not noticed, of all tests."""

    module: str
    change: str
    line: int
    was: str
    became: str
    text: str
    fate: str = ""
    test: str = ""
    tests: str = ""
    cpu: float = 0


def package_of(module: str) -> str:
    """`hudi_table/read` of a module's path; what lies in no package of its distribution belongs to
    that."""
    parts = module.split("/")
    return "/".join(parts[1:3] if len(parts) > 3 else parts[1:2])


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def equivalent() -> dict[tuple[str, str, str], str]:
    """The reasons why changes cannot be seen, by module, line and what becomes of it."""
    each = tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])
    return {(one["module"], one["was"], one["became"]): one["reason"] for one in each}


def change_of(mutant: Mutant) -> tuple[str, str, str]:
    """By what its reason is found."""
    return mutant.module, mutant.was, mutant.became


def identity(mutant: Mutant) -> tuple[str, str, int, str, str]:
    return mutant.module, mutant.text, mutant.line, mutant.was, mutant.became


def asked_now(options: dict[str, Any]) -> str:
    """Which tests are asked of a mutant in this run: what these missed, others may notice."""
    return f"{digest('tests')[:16]}, {options['files']} and {options['further']} files, scale {options['scale']:g}"


class Report:
    """What is known of mutants, kept after each. `options`: seed, each, files, further and scale of
    this run."""

    def __init__(self, options: dict[str, Any], to: Path = REPORT) -> None:
        self.walked = 0
        self._options, self._to, self._equivalent = options, to, equivalent()
        self._lock = threading.Lock()
        document = json.loads(to.read_text()) if to.exists() else {"mutants": []}
        found = [Mutant(**each) for each in document["mutants"]]
        now = {name: (ROOT / name).read_text() for name in {each.module for each in found} if (ROOT / name).is_file()}
        same = [each for each in found if each.module in now and each.text == digest_of(now[each.module])]
        # Of another seed are other mutants.
        if any(document.get(name) != options[name] for name in ("seed", "each")):
            same = []
        self._known = {identity(mutant): mutant for mutant in same}
        self.mutants = {identity(mutant): self.settled(mutant) or mutant for mutant in same}

    def settled(self, mutant: Mutant) -> Mutant | None:
        """The fate that an earlier run found, where it still holds."""
        if change_of(mutant) in self._equivalent:
            return replace(mutant, fate="equivalent")
        known = self._known.get(identity(mutant))
        if known is None or not known.fate.startswith("noticed"):
            return known if known is not None and known.tests == asked_now(self._options) else None
        return known

    def settled_of(self, module: str) -> list[Mutant]:
        """All mutants of a module, if none of them has to be drawn anew: drawing takes seconds."""
        fates = [fate for each in self._known.values() if each.module == module and (fate := self.settled(each))]
        return fates if len(fates) == self._options["each"] else []

    def add(self, mutant: Mutant) -> None:
        """Record a mutant that was tried."""
        with self._lock:
            self.mutants[identity(mutant)] = mutant
            self.walked += 1
            ranked = sorted(self.mutants.values(), key=lambda each: (each.module, each.line, each.became))
            document = {"commit": head(), **self._options, "mutants": [asdict(each) for each in ranked]}
            self._to.write_text(json.dumps(document, indent=1) + "\n")
            self._to.with_suffix(".md").write_text("\n".join(page(document, ranked, self._equivalent)) + "\n")


def head() -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def page(document: dict[str, Any], mutants: list[Mutant], reasons: dict[tuple[str, str, str], str]) -> list[str]:
    """The lines of the report."""
    ran = [mutant.cpu for mutant in mutants if mutant.cpu]
    made = (
        f"`make mutants` changed the code in {len(mutants)} random places (seed {document['seed']}, {document['each']} of a module), one at a time; last on commit "
        f"`{document['commit'][:12]}`. A fate stays while its module is the same. A mutant took {sum(ran) / max(1, len(ran)):.1f} s of a processor."
    )
    asked = (
        f"*Noticed*: a test of `make test` fails or hangs, of the {document['files']} files nearest to the module: those that mention it or lie in the folder that mirrors its own. "
        "*Farther*: a test of another file does, which reaches the module by way of those that import it; it is named below. "
        f"*At scale*: only with larger counts, as in `make test-full` (this run: {document['scale']:g} times). "
        "*Equivalent*: nothing that can be seen changes, for the reason below. "
        "*Missed*: these tests call it and pass. *Untested*: none of these tests calls it. No other tests are asked: so *missed* and *untested* are upper bounds."
    )
    lines = ["# Mutants", "", made, "", asked, ""]
    lines += ["| package | mutants | " + " | ".join(FATES) + " |", "|---" * (2 + len(FATES)) + "|"]
    packages: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants:
        packages[package_of(mutant.module)][mutant.fate] += 1
    total = sum(packages.values(), Counter[str]())
    for name, fates in [*sorted(packages.items()), ("all", total)]:
        lines.append(f"| {name} | {fates.total()} | " + " | ".join(str(fates[fate]) for fate in FATES) + " |")
    unnoticed = [
        (mutant, f"{mutant.fate}: {why}" if (why := reasons.get(change_of(mutant))) else mutant.fate)
        for mutant in mutants
        if not mutant.fate.startswith("noticed")
    ]
    lines += ["", "## Those that nothing noticed", "", *_rows(unnoticed, "fate")]
    farther = [(mutant, f"`{mutant.test}`") for mutant in mutants if mutant.fate == "noticed farther"]
    return [*lines, "", "## Those that tests farther away noticed", "", *_rows(farther, "test")]


def _rows(mutants: Sequence[tuple[Mutant, str]], last: str) -> list[str]:
    """A table of mutants, each with what is said of it in the last column."""
    lines = [f"| module | line | was | became | {last} |", "|---|---|---|---|---|"]
    for mutant, said in mutants:
        was, became = (text.replace("|", "\\|").replace("`", "'") for text in (mutant.was, mutant.became))
        lines.append(f"| `{mutant.module}` | {mutant.line} | `{was}` | `{became}` | {said} |")
    return lines
