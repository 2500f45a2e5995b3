"""The bytes of blobs: those that a row holds, and those of the files that it refers to.

Facts (measured on Hudi 1.2.0): a blob is a struct of `type` (`INLINE` or `OUT_OF_LINE`), `data`,
and `reference`, a struct of `external_path`, `offset`, `length` and `managed`. Without an offset
the bytes begin with the file, without a length they end with it.

A reference is data that anybody who writes rows can make, and it names any file that this process
can read. So files are read below the roots alone that the caller names, the table's own among them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.errors import InvalidDataError, InvalidRequestError, ObjectNotFoundError
from hudi_table.model.counts import counted
from hudi_table.table.store.at_once import all_at_once
from hudi_table.table.store.location import local_path, parse_location, shown
from hudi_table.table.store.ports import Storage

OUT_OF_LINE: Final = "OUT_OF_LINE"
_PARTS: Final = ("type", "data", "reference")
_SAME: Final = {"s3a": "s3", "s3n": "s3"}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Range:
    """Bytes of a file, for the row `row`."""

    row: int
    offset: int
    length: int | None


@dataclass(frozen=True, slots=True)
class _File:
    """A file that blobs refer to by `path`, and where it lies in its store."""

    storage: Storage
    name: str
    path: str
    ranges: tuple[_Range, ...]

    @contextmanager
    def named(self) -> Iterator[None]:
        """Says which file is gone."""
        try:
            yield
        except ObjectNotFoundError as error:
            rows = counted(len(self.ranges), "blob")
            raise InvalidDataError(f"{shown(self.path)} is not there, and {rows} of these rows refer to it") from error


def is_blob(kind: pa.DataType) -> bool:
    """Whether a type is that of blobs."""
    return bool(pt.is_struct(kind) and tuple(field.name for field in kind) == _PARTS)


def blob_bytes(blobs: pa.Array, roots: Mapping[str, Callable[[], Storage]], max_memory: int) -> pa.LargeBinaryArray:
    """The bytes of each blob, null where there is none. `roots`: by location how its store is
    opened. Requests to one store go at once.

    Raises InvalidRequestError for a reference outside of the roots and for more than `max_memory`
    bytes, InvalidDataError for a reference that is none or whose file is gone or shorter.
    """
    if not is_blob(blobs.type):
        raise InvalidRequestError(f"these are values of type {blobs.type}, and no blobs: give a column of type BLOB")
    kinds, data, reference = blobs.flatten()
    outside = pc.fill_null(pc.equal(kinds, OUT_OF_LINE), False)
    values = pc.if_else(outside, pa.scalar(None, pa.large_binary()), data.cast(pa.large_binary()))
    files = _placed(_files(reference, pc.indices_nonzero(outside).to_pylist()), roots)
    if not files:
        return values
    sized = _at_once(files, _sized)
    held = sum(part.length or 0 for file in sized for part in file.ranges)
    if held > max_memory:
        raise InvalidRequestError(
            f"the blobs refer to {held:,} bytes, and max_memory is {max_memory:,}: give fewer rows"
        )
    read = {row: value for rows in _at_once(sized, _values) for row, value in rows}
    return pc.coalesce(values, pa.array([read.get(row) for row in range(len(blobs))], pa.large_binary()))


def _files(reference: pa.Array, rows: Sequence[int]) -> Mapping[str, list[_Range]]:
    """What is to be read of each file."""
    found: dict[str, list[_Range]] = defaultdict(list)
    for row, each in zip(rows, reference.take(pa.array(rows, pa.int64())).to_pylist(), strict=True):
        if each is None or not each["external_path"]:
            raise InvalidDataError(f"the blob of row {row} is out of line and refers to no file")
        offset, length = each["offset"] or 0, each["length"]
        if offset < 0 or (length is not None and length < 0):
            raise InvalidDataError(
                f"the blob of row {row} refers to {length} bytes at {offset} of {each['external_path']}"
            )
        found[each["external_path"]].append(_Range(row, offset, length))
    return found


def _placed(files: Mapping[str, list[_Range]], roots: Mapping[str, Callable[[], Storage]]) -> list[_File]:
    places = [(_place(root), root) for root in roots]
    opened: dict[str, Storage] = {}
    found = []
    for path, ranges in files.items():
        root, name = _below(path, places)
        if root not in opened:
            opened[root] = roots[root]()
        found.append(_File(opened[root], name, path, tuple(ranges)))
    return found


def _at_once(files: Sequence[_File], ask: Callable[[_File], T]) -> list[T]:
    """What is asked of each file, of those of one store at once."""
    found: list[T] = []
    for _, some in groupby(sorted(files, key=_store_of), key=_store_of):
        together = list(some)
        found += all_at_once(together[0].storage, [partial(ask, file) for file in together])
    return found


def _store_of(file: _File) -> int:
    return id(file.storage)


def _sized(file: _File) -> _File:
    """The file, with the length of every range: those that end with it are asked for."""
    if all(part.length is not None for part in file.ranges):
        return file
    with file.named():
        size = file.storage.head(file.name).size
    ranges = [p if p.length is not None else replace(p, length=max(0, size - p.offset)) for p in file.ranges]
    return replace(file, ranges=tuple(ranges))


def _values(file: _File) -> list[tuple[int, bytes]]:
    """(row, bytes) of each range of a file."""
    found = []
    with file.named(), file.storage.open_read(file.name) as source:
        for part in file.ranges:
            source.seek(part.offset)
            value = bytes(source.read(part.length))
            if len(value) < (part.length or 0):
                missing = counted((part.length or 0) - len(value), "byte")
                raise InvalidDataError(f"{shown(file.path)} ends {missing} before the blob of row {part.row} does")
            found.append((part.row, value))
    return found


def _place(uri: str) -> tuple[str, str, str]:
    """Store and path of a location, as two of them can be compared."""
    scheme, authority, path = parse_location(uri)
    return _SAME.get(scheme, scheme), authority, local_path(path).strip("/") if scheme == "file" else path.strip("/")


def _below(path: str, roots: Sequence[tuple[tuple[str, str, str], str]]) -> tuple[str, str]:
    """(root, name below it) of a file. The store itself refuses names that lead out of it."""
    place = _place(path)
    for root, uri in roots:
        if place[:2] == root[:2] and (not root[2] or place[2].startswith(f"{root[2]}/")):
            return uri, place[2][len(root[2]) :].lstrip("/")
    raise InvalidRequestError(
        f"a blob refers to {shown(path)}, which lies below none of {', '.join(shown(uri) for _, uri in roots)}: name its folder in roots"
    )
