"""What this process knows of where the keys of a table are, and of which files it knows that.

For each file group it has the marks of the keys of one slice, and beside them the names of that
slice's files. An answer counts for a group whose slice in a snapshot has exactly these files;
whatever else happened to the table makes other files, so that what is stale is seen and read anew.

Entries may be too many (a key that was deleted): such a key is sent to a group that holds no row of
it, where the exact key is compared and becomes an insert, or a delete of nothing. Too few they
cannot be. A failure of the disk makes the state empty, and the files are asked.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from hudi_table.index.keystate.folder import Folder
from hudi_table.index.keystate.marks import Marks, Words, new_secret
from hudi_table.index.keystate.runs import GONE, Flags, Found, Run, find, merged
from hudi_table.table.store import threads

Place = tuple[str, str]
"""(partition path, file id)."""
STATES_MAX: Final = 16
"""How many tables' states a process keeps: of more the one that was asked longest ago goes."""
_GROWTH: Final = 4


@dataclass(frozen=True, slots=True)
class Known:
    """A file group: its number in the entries, and the files (`files_of`) whose keys they are."""

    number: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Learnt:
    """The way from the slice of a group that the state knows (`before`, empty for none) to another
    one. `removed` None: the keys of before count no more, and all that count are among `added`."""

    place: Place
    before: tuple[str, ...]
    after: tuple[str, ...]
    added: Marks
    removed: Marks | None


@dataclass(slots=True)
class KeyState:
    """The state of one table. Whoever asks it or tells it something holds it (`held_state`).

    `folder`: where it outlives the process, if anywhere. `identity` says what its keys depend on,
    `commits` are completed instants that it has seen (`saved.py`)."""

    known: dict[Place, Known] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    alive: Flags = field(default_factory=lambda: np.zeros(0, bool))
    given: int = 0
    secret: Words = field(default_factory=new_secret)
    folder: Folder | None = None
    identity: str = ""
    commits: set[str] = field(default_factory=set)
    lock: threads.Lock = field(default_factory=threads.lock)

    def find(self, marks: Marks) -> Found:
        """The groups, by number, that hold these keys."""
        return find(self.runs, marks, self.alive)

    def learn(self, all_learnt: Sequence[Learnt]) -> None:
        """Take changes in. One whose `before` is not what is known is left out. Raises OSError,
        after which nothing is known."""
        marks, numbers = [], []
        for learnt in all_learnt:
            known = self.known.get(learnt.place)
            if (known.files if known is not None else ()) != learnt.before:
                continue
            if known is None or learnt.removed is None:
                if known is not None:
                    self.alive[known.number] = False
                known = Known(self._next_number(), ())
            else:
                marks.append(learnt.removed)
                numbers.append(np.full(len(learnt.removed), known.number | int(GONE), np.uint32))
            self.known[learnt.place] = Known(known.number, learnt.after)
            marks.append(learnt.added)
            numbers.append(np.full(len(learnt.added), known.number, np.uint32))
        if sum(map(len, marks)):
            # Of what a write both deletes and writes the entry comes first that says that it is there.
            self._add(Run.of(Marks.joined(marks[::-1]), np.concatenate(numbers[::-1]), self._path))

    def keep(self, places: Collection[Place]) -> None:
        """Forget all groups but these."""
        for place in self.known.keys() - set(places):
            self.alive[self.known.pop(place).number] = False

    def clear(self) -> None:
        """Know nothing, and let its folder go, with what was saved there."""
        self.known, self.runs, self.alive, self.given = {}, [], np.zeros(0, bool), 0
        self.leave()

    def leave(self) -> None:
        """Let its folder go, for whoever takes it next."""
        if self.folder is not None:
            self.folder.close()
        self.folder = None

    @property
    def _path(self) -> Path | None:
        return None if self.folder is None else self.folder.path

    def _next_number(self) -> int:
        if self.given == len(self.alive):
            self.alive = np.concatenate([self.alive, np.zeros(max(64, len(self.alive)), bool)])
        self.given += 1
        self.alive[self.given - 1] = True
        return self.given - 1

    def _add(self, run: Run) -> None:
        """One more run; runs that are not much larger than what follows them are merged with it, so
        that there are few."""
        self.runs.append(run)
        while len(self.runs) > 1 and len(self.runs[-2]) <= _GROWTH * len(self.runs[-1]):
            newer, older = self.runs.pop(), self.runs.pop()
            self.runs.append(merged(older, newer, self.alive, self._path, last=not self.runs))


_STATES: dict[str, KeyState] = {}
_LOCK = threads.lock()


@contextmanager
def held_state(base_path: str) -> Iterator[KeyState]:
    """The state of the table at a location, which nobody else asks meanwhile. Where the disk fails
    it knows nothing afterwards."""
    with _LOCK:
        state = _STATES.pop(base_path, None) or KeyState()
        _STATES[base_path] = state
        while len(_STATES) > STATES_MAX:
            _STATES.pop(next(iter(_STATES))).leave()
    with state.lock:
        try:
            yield state
        except BaseException:
            state.clear()
            raise


def forget_states() -> None:
    """What a new process begins with."""
    with _LOCK:
        _leave_folders()
        _STATES.clear()


def _leave_folders() -> None:
    for state in _STATES.values():
        state.leave()


# A copy of this process is another one: it writes to no folder of this one, and holds none.
os.register_at_fork(after_in_child=_leave_folders)


def numbered(state: KeyState, files: Iterable[tuple[Place, tuple[str, ...]]]) -> Mapping[int, int]:
    """Number in the state → position among these slices, where the state knows exactly the slice's
    files."""
    found = {}
    for code, (place, names) in enumerate(files):
        known = state.known.get(place)
        if known is not None and known.files == names:
            found[known.number] = code
    return found
