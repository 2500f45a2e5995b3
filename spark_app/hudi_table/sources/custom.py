"""`Custom`: a source of another package, found by the name of an entry point.

A package offers a source in the entry-point group `hudi_table.sources`: name = what a manifest
says, value = a class (or a function) of the options that the manifest gives, as texts. The package
is installed in the image of the jobs. Secrets come to it by the environment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Protocol, TypeVar

from hudi_table.errors import AccessDeniedError, HudiError, InvalidRequestError, UnavailableError
from hudi_table.model.job.custom import CustomMark

GROUP = "hudi_table.sources"
POSITION_LENGTH_MAX = 65_536
T = TypeVar("T")


class CustomSource(Protocol):
    """What a package offers."""

    def read(self, position: str | None) -> tuple[Any, str] | None:
        """The rows that wait behind a position of its own (None: before anything was taken), as
        whatever exports an Arrow stream, and the position behind them. None where nothing waits.

        The rows and the position become one commit, or neither; so the same position may be asked
        for again. It is asked until nothing waits. PermissionError says that credentials are
        refused; any other OSError (ConnectionError and TimeoutError are such) is tried again later,
        any other exception ends the ingest.
        """
        ...


class SplitSource(Protocol):
    """What a package offers, too, whose rows tasks of Spark may read."""

    def split(self, position: str | None) -> tuple[Sequence[str], str] | None:
        """What waits behind a position, as texts that each name a part of it, and the position
        behind all of them; None where nothing waits."""
        ...

    def part(self, text: str) -> Any:
        """The rows of one part, as of `read`: asked of an object of its own, in any process, and
        perhaps again."""
        ...


@dataclass(frozen=True, slots=True)
class CustomParts:
    """What waits in parts, and the checkpoint of the commit that holds all."""

    parts: tuple[str, ...]
    checkpoint: CustomMark


@dataclass(frozen=True, slots=True)
class CustomRows:
    """What was read, and the checkpoint of the commit that holds it."""

    data: Any
    checkpoint: CustomMark


def custom_source(name: str, options: Mapping[str, str]) -> CustomSource:
    """The source of a name. Raises InvalidRequestError if none, or more than one, is installed, or
    it refuses its options."""
    offered = list(metadata.entry_points(group=GROUP))
    found = {each.value: each for each in offered if each.name == name}
    if len(found) != 1:
        there = ", ".join(sorted({each.name for each in offered})) or "none"
        many = f"{len(found)} packages offer" if found else "no package offers"
        raise InvalidRequestError(f"{many} a source {name!r}: entry points of {GROUP} are {there}")
    made: CustomSource = _asked(name, lambda: next(iter(found.values())).load()(dict(options)))
    if not callable(getattr(made, "read", None)):
        raise InvalidRequestError(f"source {name!r} has no method read(position)")
    return made


def waiting_rows(name: str, source: CustomSource, before: CustomMark | None, attempt: str) -> CustomRows | None:
    """What waits behind a checkpoint, None if nothing does. Raises UnavailableError,
    AccessDeniedError, InvalidRequestError."""
    found = _answered(name, source.read, before, attempt)
    return CustomRows(*found) if found is not None else None


def waiting_parts(name: str, source: Any, before: CustomMark | None, attempt: str) -> CustomParts | None:
    """The same in parts. Raises InvalidRequestError for a source that has none."""
    if not callable(getattr(source, "split", None)) or not callable(getattr(source, "part", None)):
        raise InvalidRequestError(
            f"source {name!r} has no methods split(position) and part(text), by which tasks of Spark would read it: let the engine be Local"
        )
    found = _answered(name, source.split, before, attempt)
    if found is None:
        return None
    parts, mark = found
    if not parts or not all(isinstance(each, str) for each in parts):
        raise InvalidRequestError(
            f"source {name!r} splits what waits into {parts!r}: it is to give texts, at least one"
        )
    return CustomParts(tuple(parts), mark)


def part_of(name: str, source: Any, part: str) -> Any:
    """The rows of one part, as whatever exports an Arrow stream. Raises as `waiting_rows`."""
    return _asked(name, lambda: source.part(part))


def _answered(
    name: str, call: Callable[[str | None], Any], before: CustomMark | None, attempt: str
) -> tuple[Any, CustomMark] | None:
    if before is not None and before.source != name:
        raise InvalidRequestError(
            f"the checkpoint is of source {before.source!r}, and the ingest is from {name!r} now: give the ingest another name"
        )
    answer = _asked(name, lambda: call(before.position if before is not None else None))
    if answer is None:
        return None
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], str):
        raise InvalidRequestError(
            f"source {name!r} gives a {type(answer).__name__}: it is to give (rows, position), the latter a text, or None"
        )
    data, position = answer
    if len(position) > POSITION_LENGTH_MAX:
        raise InvalidRequestError(
            f"source {name!r} gives a position of {len(position):,} characters, at most {POSITION_LENGTH_MAX:,} are kept"
        )
    if before is not None and position == before.position:
        raise InvalidRequestError(f"source {name!r} gives rows and the position that it was asked for: it must move on")
    batch = hashlib.sha256((before.to_text() if before is not None else "begin").encode()).hexdigest()[:20]
    return data, CustomMark(batch, attempt, name, position)


def _asked(name: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except HudiError:
        raise
    except PermissionError as error:
        raise AccessDeniedError(f"source {name!r} is refused: {error}") from error
    except OSError as error:
        raise UnavailableError(f"source {name!r}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise InvalidRequestError(f"source {name!r} fails: {type(error).__name__}: {error}") from error
