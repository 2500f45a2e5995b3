"""A cache with a bound: what was used longest ago goes first. One bound may be shared by many
tables, each with a shelf of its own."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _one(_: object) -> int:
    return 1


class Bounded(MutableMapping[K, V]):
    """At most `most` in all, each value counted by `weight` (without it, each is one). For several
    threads at once: what was there a moment ago may be gone, so ask with `get`."""

    def __init__(self, most: int, weight: Callable[[V], int] = _one) -> None:
        self._most = most
        self._weight = weight
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._total = 0

    def __reduce__(self) -> tuple[type[Bounded[K, V]], tuple[int, Callable[[V], int]]]:
        """Another process begins with nothing in it."""
        return type(self), (self._most, self._weight)

    @property
    def total(self) -> int:
        """The weight of all that is kept."""
        return self._total

    def __getitem__(self, key: K) -> V:
        with self._lock:
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def __setitem__(self, key: K, value: V) -> None:
        weight = self._weight(value)
        with self._lock:
            self._drop(key)
            self._kept[key] = (value, weight)
            self._total += weight
            # The newest stays, however heavy: whoever put it there is about to use it.
            while self._total > self._most and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))

    def __delitem__(self, key: K) -> None:
        with self._lock:
            if key not in self._kept:
                raise KeyError(key)
            self._drop(key)

    def __iter__(self) -> Iterator[K]:
        with self._lock:
            return iter(list(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def _drop(self, key: K) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._total -= found[1]


class Shelf(MutableMapping[K, V], Generic[K, V]):
    """What one `owner` has in a cache that others use, too."""

    def __init__(self, cache: Bounded[tuple[Hashable, K], V], owner: Hashable) -> None:
        self._cache = cache
        self._owner = owner

    def __getitem__(self, key: K) -> V:
        return self._cache[self._owner, key]

    def __setitem__(self, key: K, value: V) -> None:
        self._cache[self._owner, key] = value

    def __delitem__(self, key: K) -> None:
        del self._cache[self._owner, key]

    def __iter__(self) -> Iterator[K]:
        return iter([key for owner, key in self._cache if owner == self._owner])

    def __len__(self) -> int:
        return len(list(iter(self)))
