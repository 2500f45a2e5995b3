"""What a table's storage has answered, as long as its timeline lists the same: so one request
observes a table where nothing has happened, or two at once, of a timeline in a folder of its own.

Whatever changes what counts of a table changes that listing: an instant that begins, ends or
leaves, and the properties, of whose object the listing shows the tag. What changes beside it is
seen late: files that somebody deletes by hand, at the next change or after `SECONDS_MAX`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hudi_table.errors import ObjectNotFoundError
from hudi_table.model.names import HOODIE
from hudi_table.model.table.layouts import VERSIONS, layout_of
from hudi_table.table.store.at_once import all_at_once
from hudi_table.table.store.ports import Clock, Names, ObjectInfo, Objects, Storage

SECONDS_MAX = 600.0
"""So long after it was read anew a table is read anew again."""
_FACT_BYTES = 256
_INNER = frozenset({layout_of(version).timeline_folder for version in VERSIONS} - {HOODIE})
Listing = tuple[Names, Objects]
Listings = dict[str, Listing]


@dataclass(slots=True)
class Answers:
    """The answers to one observation: `listings` are those of the timeline's folders before them,
    `read_at` the boot-clock second of that."""

    listings: Listings
    read_at: float
    known: dict[tuple[object, ...], Any] = field(default_factory=dict)

    @property
    def weight(self) -> int:
        """How much is remembered, in facts of a few hundred bytes."""
        listed = sum(1 + len(objects) for _, objects in self.listings.values())
        return listed + sum(_weight(answer) for answer in self.known.values())


class Look:
    """The storage of one look at a table, as `Storage`; requests that `before` answers are not
    sent.

    An observation that lists the timeline again wants it as it is now: what was remembered until
    then is forgotten.
    """

    def __init__(self, storage: Storage, clock: Clock, before: Answers | None) -> None:
        self._storage = storage
        now, listings = clock.boot_seconds(), _listings(storage, before)
        holds = before is not None and before.listings == listings and now - before.read_at <= SECONDS_MAX
        self.answers = Answers(listings, now) if before is None or not holds else _copied(before)
        self._first = dict(listings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def get(self, path: str) -> bytes:
        """As `Storage.get`."""
        found: bytes = self._once(("get", path), lambda: self._storage.get(path))
        return found

    def head(self, path: str) -> ObjectInfo:
        """As `Storage.head`."""
        found: ObjectInfo = self._once(("head", path), lambda: self._storage.head(path))
        return found

    def list(self, prefix: str = "", *, start_after: str | None = None, limit: int | None = None) -> Objects:
        """As `Storage.list`."""
        found: Objects = self._once(
            ("list", prefix, start_after, limit),
            lambda: self._storage.list(prefix, start_after=start_after, limit=limit),
        )
        return found

    def list_dir(self, prefix: str = "") -> Listing:
        """As `Storage.list_dir`."""
        if prefix in self.answers.listings:
            return self._timeline(prefix)
        found: Listing = self._once(("list_dir", prefix), lambda: self._storage.list_dir(prefix))
        return found

    def _timeline(self, folder: str) -> Listing:
        first = self._first.pop(folder, None)
        if first is not None:
            return first
        self.answers.known = {}
        found = self.answers.listings[folder] = self._storage.list_dir(folder)
        return found

    def _once(self, asked: tuple[object, ...], ask: Callable[[], Any]) -> Any:
        known = self.answers.known
        if asked not in known:
            try:
                known[asked] = ask()
            except ObjectNotFoundError as missing:
                known[asked] = missing
        answer = known[asked]
        if isinstance(answer, ObjectNotFoundError):
            raise answer
        return answer


def _listings(storage: Storage, before: Answers | None) -> Listings:
    """Those of now. The timeline of newer table versions has a folder of its own; where the one
    before had it, both are asked at once."""
    known = sorted(before.listings) if before is not None else [HOODIE]
    found = dict(zip(known, all_at_once(storage, [partial(storage.list_dir, each) for each in known]), strict=True))
    inner = _INNER.intersection(folder.rstrip("/") for folder in found[HOODIE][0])
    return {HOODIE: found[HOODIE]} | {each: found.get(each) or storage.list_dir(each) for each in inner}


def _copied(answers: Answers) -> Answers:
    # Two looks at one table may go on side by side.
    return Answers(dict(answers.listings), answers.read_at, dict(answers.known))


def _weight(answer: Any) -> int:
    if isinstance(answer, bytes):
        return 1 + len(answer) // _FACT_BYTES
    return 1 + len(answer[1]) if isinstance(answer, tuple) else 1 + len(answer) if isinstance(answer, list) else 1
