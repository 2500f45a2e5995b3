"""The values of messages as rows, in parts that fit the memory; those that cannot be read raise, or
are reported."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.errors import HudiError, InvalidDataError, InvalidSchemaError
from hudi_table.model.names import ALL_META_COLUMNS, IS_DELETED
from hudi_table.sources.formats.decoder import Decoder, Independent, Resolving, UndecodableError, without_bad
from hudi_table.sources.formats.unions import together
from hudi_table.table.engine.local_engine import LocalEngine

CHUNK_BYTES = 16 << 20
EARLY_BYTES = 1 << 20
ERRORS_FREE = 10
"""So many messages of a run may be refused whatever part they are: else one bad message in a quiet
minute would end an ingest."""
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Fault:
    """The message at `place` cannot be read, and why."""

    place: int
    why: str


def errors_most(messages: int, ratio: float) -> int:
    """How many of so many messages may be refused."""
    return max(ERRORS_FREE, int(messages * ratio))


@dataclass(slots=True)
class Early:
    """Decodes the values of one commit while more of them are read, from the first on. It counts
    only where it gives what all of them together would: in a format whose parts do not depend on
    each other, with the columns that are known and no others. `wanted`: the columns of the table
    that they fill; `submit` is that of a pool of one thread."""

    decoder: Decoder
    wanted: pa.Schema
    submit: Callable[..., Future[pa.Table | None]]
    _read: int = 0
    _size: int = 0
    _parts: list[tuple[int, Future[pa.Table | None]]] = field(default_factory=list)

    def more(self, values: Sequence[bytes | None], size: int) -> None:
        """All values that have been read, and their bytes: begin with what has come, once it is
        enough."""
        if size - self._size < EARLY_BYTES:
            return
        some = [value for value in values[self._read :] if value is not None]
        self._read, self._size = len(values), size
        self._parts.append((self._read, self.submit(self._decoded, some)))

    def made(self, wanted: pa.Schema | None) -> list[tuple[int, pa.Table]]:
        """(how many values, null ones among them, are read with it, the rows of the part) of the
        first parts; nothing where the columns have changed since."""
        found: list[tuple[int, pa.Table]] = []
        for read, part in self._parts if self.wanted == wanted else []:
            rows = part.result()
            if rows is None:
                break
            found.append((read, rows))
        return found

    def _decoded(self, some: Sequence[bytes]) -> pa.Table | None:
        try:
            rows = self.decoder.decode(some, self.wanted)
        except (UndecodableError, HudiError):
            # Whoever decodes all of them tells which message it is, and why.
            return None
        return rows if (rows.schema.names, rows.schema.types) == (self.wanted.names, self.wanted.types) else None


@dataclass(frozen=True, slots=True)
class Values:
    """How the values of one commit's messages become rows. `form`: the format's name; `name`: a
    message in words, by its place; `error_ratio`: a message that cannot be read is reported instead
    of raised, up to this part of them; None: it is raised. `of`: how many messages the commit has
    at most, where these are a part of them."""

    decoder: Decoder
    form: str
    name: Callable[[int], str]
    error_ratio: float | None = None
    of: int | None = None

    def rows(
        self,
        values: Sequence[bytes | None],
        kept: Places,
        wanted: pa.Schema | None,
        faults: list[Fault],
        early: Early | None = None,
    ) -> tuple[pa.Table, Places]:
        """The rows of the values at `kept`, those that are not null, and the place of each.
        `early`: what has been decoded of them."""
        found, read = [], []
        for stop, made in early.made(wanted) if early is not None else ():
            count = int(np.searchsorted(kept, stop))
            found.append(made)
            read.append(kept[:count])
            kept = kept[count:]
        some = [value for place in kept.tolist() if (value := values[place]) is not None]
        if isinstance(self.decoder, Resolving):
            self.decoder.begin(some)
        parts = [(some[start:stop], kept[start:stop]) for start, stop in _chunks(some)]
        for (messages, rows), made in zip(parts, self._decoded(parts, wanted), strict=True):
            if isinstance(made, pa.Table):
                found.append(made)
                read.append(rows)
                continue
            said = f"cannot be read as {self.form}"
            if self.error_ratio is None:
                raise InvalidDataError(f"{self.name(int(rows[made.place]))} {said}: {made.why}") from made
            good, bad = self._without_bad(messages, wanted, self.most(len(values)) - len(faults), rows)
            faults += [Fault(int(rows[place]), f"the value {said}: {why}") for place, why in bad]
            if good is not None:
                found.append(good)
                read.append(np.delete(rows, [place for place, _ in bad]))
        return _joined(found, wanted), np.concatenate(read) if read else kept[:0]

    def _decoded(
        self, parts: Sequence[tuple[Sequence[bytes], Places]], wanted: pa.Schema | None
    ) -> Iterator[pa.Table | UndecodableError]:
        """The rows of each part, or why there are none; several are decoded at once where none
        depends on another."""

        def rows(part: tuple[Sequence[bytes], Places]) -> pa.Table | UndecodableError:
            try:
                return self.decoder.decode(part[0], wanted)
            except UndecodableError as error:
                return error

        return iter(LocalEngine().map(rows, parts)) if isinstance(self.decoder, Independent) else map(rows, parts)

    def most(self, messages: int) -> int:
        """How many of so many messages may be reported."""
        return errors_most(messages if self.of is None else self.of, self.error_ratio or 0.0)

    def too_many(self, place: int, why: str) -> InvalidDataError:
        """Of more bad messages than that."""
        return InvalidDataError(
            f"more messages of one commit cannot be read as {self.form} than maxErrorRatio {self.error_ratio} lets through; "
            f"{self.name(place)}: {why}"
        )

    def _without_bad(
        self, some: Sequence[bytes], wanted: pa.Schema | None, most: int, places: Places
    ) -> tuple[pa.Table | None, list[tuple[int, str]]]:
        try:
            return without_bad(some, lambda each: self.decoder.decode(each, wanted), most)
        except UndecodableError as error:
            raise self.too_many(int(places[error.place]), error.why) from error


def check_reserved(table: pa.Table, prefix: str, what: str, *, marks: bool = False) -> None:
    """Raise InvalidSchemaError for a column whose name the ingest or Hudi uses itself. `what`: of
    which messages; `marks`: they flag their own deletes."""
    taken = {IS_DELETED, *ALL_META_COLUMNS} - ({IS_DELETED} if marks else set())
    reserved = [name for name in table.column_names if name.startswith(prefix) or name in taken]
    if reserved:
        raise InvalidSchemaError(
            f"the messages of {what} have a field {reserved[0]!r}, a name that the "
            "ingest or Hudi uses itself: rename it at the producer"
        )


def of_values(known: pa.Schema | None, prefix: str) -> pa.Schema | None:
    """The columns of the table that the messages fill."""
    if known is None:
        return None
    return pa.schema(
        [f for f in known if not f.name.startswith(prefix) and f.name not in (IS_DELETED, *ALL_META_COLUMNS)]
    )


def _chunks(values: Sequence[bytes]) -> list[tuple[int, int]]:
    """Cuts after so many bytes: what a decoder holds beside the messages."""
    ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    if not len(ends):
        return []
    count = int(ends[-1] // CHUNK_BYTES) + 1
    cuts = np.searchsorted(ends, np.arange(1, count) * CHUNK_BYTES, side="right").tolist()
    edges = sorted({0, *cuts, len(values)})
    return list(itertools.pairwise(edges))


def _joined(found: list[pa.Table], wanted: pa.Schema | None) -> pa.Table:
    if not found:
        return (wanted if wanted is not None else pa.schema([])).empty_table()
    try:
        return together(found) if len(found) > 1 else found[0]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidSchemaError(
            f"the messages contradict each other: {error}; correct them at the producer"
        ) from error
