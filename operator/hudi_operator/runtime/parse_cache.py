"""What was parsed of resources lately: a reconcile of a table parses its services too, and one of a
service its table.

A stored document is never changed, another takes its place; so the document itself says whether
what was parsed of it still holds.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hudi_operator.api.resources import Key, key_of

T = TypeVar("T")
KEPT_MAX = 256
"""Some 10 KB each. Resources of one table are reconciled one after the other."""


@dataclass
class Parsed(Generic[T]):
    """Keeps the newest of what `parse` made of documents. For several threads at once."""

    parse: Callable[[Mapping[str, Any]], T]
    kept_max: int = KEPT_MAX
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: OrderedDict[Key, tuple[Mapping[str, Any], T]] = field(default_factory=OrderedDict)

    def __call__(self, document: Mapping[str, Any]) -> T:
        """What `parse` makes of a document, made once as long as it is the same object."""
        key = key_of(document)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept[0] is document:
            return kept[1]
        found = self.parse(document)
        with self._lock:
            self._kept[key] = (document, found)
            self._kept.move_to_end(key)
            if len(self._kept) > self.kept_max:
                self._kept.popitem(last=False)
        return found
