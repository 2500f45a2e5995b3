"""What becomes of every known `hoodie.*` option: it acts, it is refused, it is advice that nobody
here needs, or it is an alias.

`data/options.tsv` has a line for each key of Apache Hudi 0.15.0, 1.1.1 and 1.2.1 (of the last: of
its common, client and storage modules), read from the released classes by reflection, and for those
of our own. `docs/reference/options.md` is made from it (`make options`).
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options import lock_settings
from hudi_table.model.options import values as option_values
from hudi_table.model.options.values import check_value, shown

_PREFIX = "hoodie."
INDEX_SETTINGS = "hoodie.lakeops.index."
"""What begins so is a setting of a custom index, which alone knows which ones there are."""
COMPRESSION_LEVEL = "hoodie.lakeops.parquet.compression.level"
CODEC = "hoodie.parquet.compression.codec"
TRACK_EVENT_TIME = "hoodie.write.track.event.time.watermark"
EVENT_TIME_FIELD = "hoodie.payload.event.time.field"
CLEAN_POLICY = "hoodie.clean.policy"
CLEAN_NUMBERS = {
    "hoodie.clean.commits.retained": "KEEP_LATEST_COMMITS",
    "hoodie.clean.hours.retained": "KEEP_LATEST_BY_HOURS",
    "hoodie.clean.fileversions.retained": "KEEP_LATEST_FILE_VERSIONS",
}
"""What cleaning keeps, by the policy that counts it."""
LEVELS = {"zstd": 22, "gzip": 9}
"""The greatest level of each codec that has some, as Arrow knows them; the least is 1."""


class Fate(StrEnum):
    """What becomes of an option that is given."""

    ACTS = "acts"
    REFUSED = "refused"
    ADVICE = "advice"
    ALIAS = "alias"


_WARNED: dict[Any, Any] = {}
"""What Python has shown of these warnings; one entry for each option at most."""


class IgnoredOptionWarning(UserWarning):
    """An option that tunes another engine was given and does nothing here."""


@dataclass(frozen=True, slots=True)
class KnownOption:
    """One line of the table.

    `default`: what holds without it, "" for nothing. `values`: the kind of its values (see
    `values.py`); of a refused key the values that are taken beside its default, since they ask for
    what is done anyhow. `note`: of a key that acts the test that proves it, of a refused one why
    and what to do instead, of advice why it does nothing, of an alias the key that it stands for.
    """

    key: str
    default: str
    fate: Fate
    values: str
    note: str

    def takes(self, value: str) -> bool:
        """Whether a refused key may have this value."""
        text = value.strip().lower()
        return text in ("", self.default.lower()) or text in self.values.lower().split("|")


@cache
def known_options() -> Mapping[str, KnownOption]:
    """Every known option by its key."""
    text = files("hudi_table.model").joinpath("data/options.tsv").read_text(encoding="utf-8")
    lines = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return {key: KnownOption(key, default, Fate(fate), values, note) for key, default, fate, values, note in lines}


@cache
def aliases() -> Mapping[str, str]:
    """Alias → the key that it stands for."""
    return {option.key: option.note for option in known_options().values() if option.fate is Fate.ALIAS}


@cache
def _names(key: str) -> tuple[str, ...]:
    return (key, *(alias for alias, meant in aliases().items() if meant == key))


def default_of(key: str) -> str:
    """What holds without the option; "" for nothing."""
    return known_options()[key].default


def explicit_option(options: Mapping[str, str], key: str) -> str | None:
    """The value of a key under its name or an alias, None if it is not given. Raises
    InvalidOptionError if they differ."""
    given = [name for name in _names(key) if name in options]
    if not given:
        return None
    values = {name: options[name].strip() for name in given}
    if len(set(values.values())) > 1:
        raise InvalidOptionError(
            "one option is given twice: " + ", ".join(f"{name}={shown(name, value)}" for name, value in values.items())
        )
    return values[given[0]]


def option_text(options: Mapping[str, str], key: str) -> str:
    """The value under its name or an alias, or its default. Raises InvalidOptionError as
    `explicit_option`."""
    text = explicit_option(options, key)
    return text or default_of(key)


def boolean_option(options: Mapping[str, str], key: str) -> bool:
    """An option that is true or false. Raises InvalidOptionError that names key and value."""
    return option_values.boolean(key, option_text(options, key) or "false")


def whole_option(options: Mapping[str, str], key: str, *, least: int = 0) -> int:
    """An option that is a whole number. Raises InvalidOptionError that names key and value."""
    return option_values.whole(key, option_text(options, key), least)


def choice_option(options: Mapping[str, str], key: str) -> str:
    """An option that is one of few values, in upper case. Raises InvalidOptionError that names key
    and value."""
    found = option_text(options, key)
    option_values.check_value(key, known_options()[key].values, found)
    return found.strip().upper()


def renamed(options: Mapping[str, str]) -> dict[str, str]:
    """The options without aliases, so that they can be laid over others. What is given under its
    own name wins."""
    meant = {aliases()[key]: value for key, value in options.items() if key in aliases()}
    return meant | {key: value for key, value in options.items() if key not in aliases()}


def check_options(options: Mapping[str, str]) -> None:
    """Refuse what is unknown, what we do not do, and values of another kind.

    This is the one gate: every surface that takes options asks it, before anything else is done
    with them. Raises InvalidOptionError that names key, value, and what to do instead.
    """
    for key, value in options.items():
        check_option(key, value)
        explicit_option(options, aliases().get(key, key))
    _check_level(options)
    _check_event_time(options)


def check_option(key: str, value: str) -> None:
    """What `check_options` says of one option, whatever stands beside it. Raises
    InvalidOptionError."""
    if not isinstance(key, str):
        raise InvalidOptionError(f"an option's key must be a string, not {key!r}")
    if not isinstance(value, str):
        raise InvalidOptionError(f"option {key!r} must be a string, not {value!r}; write it as {_text(value)!r}")
    if key.startswith(INDEX_SETTINGS) and key != INDEX_SETTINGS:
        return
    if key not in known_options():
        near = _nearest(key)
        hint = f"; did you mean {near!r}?" if near else "; remove it"
        raise InvalidOptionError(f"unknown option {key!r}{hint}")
    if key == lock_settings.PROVIDER:
        lock_settings.check_provider(value)
    _check(key, value)


def _text(value: object) -> str:
    """A value as Hudi writes it, which Python does not a boolean."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _nearest(key: str) -> str:
    """The known key that is likely meant, or ''. What nearly all keys begin with makes no two of
    them alike."""
    known = {each.removeprefix(_PREFIX): each for each in known_options()}
    near = difflib.get_close_matches(key.removeprefix(_PREFIX), known, n=1, cutoff=0.6)
    return known[near[0]] if near else ""


def _check_event_time(options: Mapping[str, str]) -> None:
    field = explicit_option(options, EVENT_TIME_FIELD) or default_of(EVENT_TIME_FIELD)
    if field != default_of(EVENT_TIME_FIELD) and not boolean_option(options, TRACK_EVENT_TIME):
        raise InvalidOptionError(
            f"option {EVENT_TIME_FIELD}={field} does nothing alone: give {TRACK_EVENT_TIME}=true with it, or leave it out"
        )


def _check_level(options: Mapping[str, str]) -> None:
    given = (explicit_option(options, COMPRESSION_LEVEL) or "").strip()
    if not given or given == default_of(COMPRESSION_LEVEL):
        return
    codec = option_text(options, CODEC).strip().lower()
    if codec not in LEVELS:
        raise InvalidOptionError(
            f"option {COMPRESSION_LEVEL!r} is of {' and '.join(LEVELS)}, and {CODEC} is {codec}: leave it out"
        )
    if int(given) > LEVELS[codec]:
        raise InvalidOptionError(
            f"option {COMPRESSION_LEVEL!r}: {given} is none of {codec}, whose levels are 1 to {LEVELS[codec]}"
        )


def _check(key: str, value: str) -> None:
    option = known_options()[aliases().get(key, key)]
    if option.fate is Fate.REFUSED:
        if not option.takes(value):
            alias = f" (which is {option.key})" if key != option.key else ""
            raise InvalidOptionError(
                f"option {key!r}{alias} is refused with the value {shown(key, value)}: {option.note}"
            )
    elif value.strip():
        check_value(key, option.values, value)
    elif option.fate is Fate.ACTS and not option_values.may_be_blank(option.values):
        raise InvalidOptionError(f"option {key!r} is given without a value: give one, or leave it out")


def ignored_options(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """(key, why it does nothing) of each option that is given and does nothing, sorted. One that
    has its default asks for nothing."""
    known = known_options()
    meant = ((key, known.get(aliases().get(key, key))) for key in sorted(options))
    advice = [
        (key, option.note)
        for key, option in meant
        if option is not None
        and option.fate is Fate.ADVICE
        and options[key].strip().lower() not in ("", option.default.lower())
    ]
    return tuple(sorted([*advice, *_idle_numbers(options), *_idle_lock(options)]))


def told_policy(options: Mapping[str, str]) -> str | None:
    """The policy of cleaning that one number of what is kept tells, where no policy and no other
    number is given: so Hudi infers it (0.15.0 to 1.2.1). Raises InvalidOptionError."""
    given = [key for key in CLEAN_NUMBERS if explicit_option(options, key) is not None]
    return CLEAN_NUMBERS[given[0]] if len(given) == 1 and explicit_option(options, CLEAN_POLICY) is None else None


def _idle_numbers(options: Mapping[str, str]) -> list[tuple[str, str]]:
    """Numbers of what cleaning keeps that another policy does not ask for. Hudi, too, goes by the
    policy that is given; where none is and several numbers are, by commits (0.15.0 to 1.2.1, the
    inference of its policy)."""
    given = [key for key in CLEAN_NUMBERS if (explicit_option(options, key) or default_of(key)) != default_of(key)]
    counting = (explicit_option(options, CLEAN_POLICY) or told_policy(options) or default_of(CLEAN_POLICY)).upper()
    why = f"{CLEAN_POLICY} is {counting}, which counts something else"
    return [(name, why) for key in given if CLEAN_NUMBERS[key] != counting for name in _names(key) if name in options]


def _idle_lock(options: Mapping[str, str]) -> list[tuple[str, str]]:
    idle = lock_settings.is_in_process(options.get(lock_settings.PROVIDER, ""))
    return [(lock_settings.PROVIDER, lock_settings.IN_PROCESS_WHY)] if idle else []


def admit(options: Mapping[str, str]) -> None:
    """`check_options`, with one IgnoredOptionWarning for each option that does nothing. Raises
    InvalidOptionError."""
    check_options(options)
    for key, why in ignored_options(options):
        warn_of(f"option {key!r} does nothing here: {why}")


def warn_of(text: str) -> None:
    """An IgnoredOptionWarning, by one place and one registry, so that a call which passes several
    gates says it once."""
    warnings.warn_explicit(text, IgnoredOptionWarning, "hudi_table", 1, registry=_WARNED)
