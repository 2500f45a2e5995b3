"""What decodes messages, and the error that tells which of them is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.sources.formats.unions import together

Decoded = TypeVar("Decoded")


class UndecodableError(ValueError):
    """The message at `place` of those that were given cannot be decoded, and `why`."""

    def __init__(self, place: int, why: str) -> None:
        super().__init__(why)
        self.place = place
        self.why = why


Judge = Callable[[str, pa.Schema, pa.Schema], None]
"""Of the columns of one schema of several, by its name, against those of the table that are known.
Raises InvalidSchemaError."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Rows of one commit once all of them are known. `of`: of each the row that it was made of;
    `bad`: (row, why) of those that cannot be; `waits`: what these lack may come soon. `since`: rows
    of the table whose ordering value is less are deleted before."""

    rows: pa.Table
    of: npt.NDArray[np.int64]
    bad: Sequence[tuple[int, str]] = ()
    waits: bool = True
    since: pa.Scalar | None = None


class Decoder(Protocol):
    """One format."""

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """One row for each message, in their order; columns of `known` in its types.

        Raises UndecodableError, and HudiError for what is no fault of one message.
        """
        ...


@runtime_checkable
class Resolving(Protocol):
    """A format in which a message is read otherwise beside others of its commit. `beside`: the
    schemas of those that are read elsewhere; `together`: these and those of the messages."""

    beside: frozenset[int]
    together: frozenset[int]

    def begin(self, messages: Sequence[bytes]) -> None:
        """All messages of a commit, before parts of them are decoded."""
        ...


@runtime_checkable
class Independent(Protocol):
    """A format of which parts may be decoded at once: a part leaves nothing behind for the next."""

    independent: ClassVar[bool]


def joined(found: Sequence[pa.Table], places: Sequence[npt.NDArray[np.int64]]) -> pa.Table:
    """Tables of messages of several schemas as one, with the union of their columns; `places`: of
    the messages of each. Raises UndecodableError."""
    if len(found) == 1:
        return found[0]
    try:
        whole = together(found)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UndecodableError(int(places[-1][0]), f"its schema does not fit the others: {error}") from error
    return whole.take(pa.array(np.argsort(np.concatenate(places), kind="stable")))


def first_bad(messages: Sequence[bytes], fails: Callable[[Sequence[bytes]], str]) -> tuple[int, str]:
    """(place, why) of the message with which the first messages begin to fail; all of them do.
    `fails`: why messages do, "" if they do not. As many looks as the count has bits."""
    good, bad, why = 0, len(messages), fails(messages)
    while bad - good > 1:
        middle = (good + bad) // 2
        said = fails(messages[:middle])
        if said:
            bad, why = middle, said
        else:
            good = middle
    return bad - 1, why


def without_bad(
    messages: Sequence[bytes], decode: Callable[[Sequence[bytes]], Decoded], most: int
) -> tuple[Decoded | None, list[tuple[int, str]]]:
    """What those messages decode to that can be decoded together, None if there are none, and
    (place, why) of the others, in order.

    Those that are bad by themselves are found by halves; of those that contradict others, the later
    one is bad. Raises UndecodableError where more than `most` are bad.
    """
    bad: dict[int, str] = {}

    def add(place: int, why: str) -> None:
        bad[place] = why
        if len(bad) > most:
            raise UndecodableError(place, why)

    _add_bad(messages, 0, decode, add)
    while len(bad) < len(messages):
        places = [place for place in range(len(messages)) if place not in bad]
        try:
            return decode([messages[place] for place in places]), sorted(bad.items())
        except UndecodableError as error:
            place, why = places[error.place], error.why
        add(place, why)
    return None, sorted(bad.items())


def _add_bad(
    messages: Sequence[bytes],
    first: int,
    decode: Callable[[Sequence[bytes]], Decoded],
    add: Callable[[int, str], None],
) -> None:
    try:
        decode(messages)
    except UndecodableError as error:
        why = error.why
    else:
        return
    if len(messages) == 1:
        add(first, why)
        return
    middle = len(messages) // 2
    _add_bad(messages[:middle], first, decode, add)
    _add_bad(messages[middle:], first + middle, decode, add)
