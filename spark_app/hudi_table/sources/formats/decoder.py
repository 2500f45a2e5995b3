"""What decodes messages, and the error that tells which of them is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

Decoded = TypeVar("Decoded")


class UndecodableError(ValueError):
    """The message at `place` of those that were given cannot be decoded, and `why`."""

    def __init__(self, place: int, why: str) -> None:
        super().__init__(why)
        self.place = place
        self.why = why


class Decoder(Protocol):
    """One format."""

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """One row for each message, in their order; columns of `known` in its types.

        Raises UndecodableError, and HudiError for what is no fault of one message.
        """
        ...


def first_bad(messages: Sequence[bytes], fails: Callable[[Sequence[bytes]], str]) -> tuple[int, str]:
    """(place, why) of the message with which the first messages begin to fail; all of them do. `fails`: why messages do, "" if they
    do not. As many looks as the count has bits."""
    good, bad, why = 0, len(messages), fails(messages)
    while bad - good > 1:
        middle = (good + bad) // 2
        said = fails(messages[:middle])
        if said:
            bad, why = middle, said
        else:
            good = middle
    return bad - 1, why
