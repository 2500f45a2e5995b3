"""Values of options that a table of known options refuses or takes."""

from __future__ import annotations

from hudi_table.model.options.known import Fate, KnownOption, aliases, known_options


def another_value(option: KnownOption) -> str:
    """A value that a refused option does not take."""
    flips = {"true": "false", "false": "true"}
    taken = [value.lower() for value in (option.default, *option.values.split("|")) if value]
    found = flips.get(taken[0], "another") if taken else "another"
    assert not option.takes(found), option.key
    return found


def other_value(option: KnownOption) -> str:
    """A value of its kind that is not the default of an option that is taken."""
    kind = option.values.split()[0]
    if kind == "boolean":
        return "false" if option.default == "true" else "true"
    numbers = {"whole": ("7", "8"), "number": ("0.25", "0.5"), "fraction": ("0.25", "0.5")}
    return next(value for value in numbers.get(kind, ("other", "another")) if value != option.default)


def all_advice() -> dict[str, str]:
    """Every key that does nothing here, with a value that is not its default."""
    return {option.key: other_value(option) for option in known_options().values() if option.fate is Fate.ADVICE}


def refused() -> dict[str, str]:
    """Every refused key, under all of its names, with a value that it does not take."""
    known = known_options()
    plain = {key: another_value(option) for key, option in known.items() if option.fate is Fate.REFUSED}
    return plain | {alias: plain[key] for alias, key in aliases().items() if key in plain}


def taken() -> list[tuple[str, str]]:
    """(key, value) of what refused keys take: their defaults, and what is done anyhow."""
    return [
        (option.key, value)
        for option in known_options().values()
        if option.fate is Fate.REFUSED
        for value in (option.default, *option.values.split("|"))
    ]
