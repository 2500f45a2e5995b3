"""Who reads a table, as its resource names them, and what none of them is known to read."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_operator.api.schema import prop
from hudi_table.model.table.readers import ENGINE, FACTS, VERSION, VERSION_FEATURES, Feature, Reader, Reads, lost


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """An engine that reads the table."""

    engine: str = prop("the engine, such as Trino, Hudi or hudi-rs", pattern=f"^{ENGINE.pattern}$", max_length=63)
    version: str = prop('its version, such as "476" or "0.15"', pattern=f"^{VERSION.pattern}$", max_length=64)

    @property
    def reader(self) -> Reader:
        """As the facts know it."""
        return Reader(self.engine, self.version)


def cannot_read(readers: tuple[ReaderSpec, ...], version: int) -> bool:
    """Whether one of them is known not to read a table version."""
    return bool(lost((each.reader for each in readers), [VERSION_FEATURES[version]]))


def cel_cannot_read() -> str:
    """CEL: whether one of `self.readers` is known not to read `self.tableVersion`; by the facts, of
    which the nearest counts."""
    return " || ".join(
        f"(self.tableVersion == {version} && self.readers.exists(r, {_any_of(feature)}))"
        for version, feature in VERSION_FEATURES.items()
        if any(feature in fact.features and fact.reads is Reads.NO for fact in FACTS)
    )


def _any_of(feature: Feature) -> str:
    said = [fact for fact in FACTS if feature in fact.features]
    tests = []
    for fact in (each for each in said if each.reads is Reads.NO):
        nearer = [each for each in said if each.engine == fact.engine and each.version.startswith(f"{fact.version}.")]
        assert not any(each.reads is Reads.YES for each in nearer), "a nearer fact says otherwise: add it to CEL"
        line = fact.version.replace(".", "[.]")
        tests.append(f"(r.engine.matches('(?i)^{fact.engine}$') && r.version.matches('^{line}([.].*)?$'))")
    return " || ".join(tests)
