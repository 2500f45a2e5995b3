"""What the suite asks of each source: rows are given to its real part, which is broken, made to
forget, ended and started again; and an ingest takes them into a table.

A row is `(id, v)`: its key, and the version by which the table orders rows of one key.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hudi_table import open_table
from hudi_table.errors import HudiError
from hudi_table.model.job.jobspec import JobResult
from tests.support.polled import Polled

Row = tuple[str, int]


class Part:
    """One source with an ingest of its own. What a case needs and a source does not have stands in
    `matrix.LACKS`."""

    label: ClassVar[str]
    part: ClassVar[str]
    """What stands behind it in the tests."""
    marks: ClassVar[tuple[pytest.MarkDecorator, ...]] = ()
    spoilt: ClassVar[str] = "InvalidData"
    """The error of what cannot be taken."""
    order: ClassVar[str] = "v"
    """The column that orders rows of one key."""
    inserts: ClassVar[bool] = True
    """Whether rows may be inserted without a look for their keys, so that one which is taken twice
    is seen twice."""
    quick: ClassVar[bool] = False
    """Whether a run takes so long that the long tests end it, too, behind few of its calls."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path, source: dict[str, Any], **storage: Any) -> None:
        self.environment: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        table = {"orderingFields": [self.order]}
        self.feed = Polled(folder, source, lambda _: None, "Upsert", storage, table)
        self.folder = folder

    def run(self, **how: Any) -> JobResult:
        """An attempt in this process."""
        return self.feed.run(**how)

    def anew(self, name: str) -> None:
        """From now on another table takes the rows, from the first one on."""
        self.feed = replace(self.feed, folder=self.folder / name, runs=0)

    def rows(self) -> list[Row]:
        """What the table shows, none where there is none."""
        return sorted((row["id"], row["v"]) for row in self.shown("id", "v"))

    def shown(self, *columns: str) -> list[dict[str, Any]]:
        """The same by its columns."""
        try:
            return open_table(self.feed.location).scan(list(columns)).to_arrow().to_pylist()
        except (HudiError, FileNotFoundError):
            return []

    def calls(self) -> list[tuple[Any, str]]:
        """By which functions a run asks the part: (class or module, name)."""
        raise NotImplementedError

    def put(self, *rows: Row, **more: str) -> None:
        """Give the part rows. `more`: a column that is not in those before; see `widen`."""
        raise NotImplementedError

    def late(self, *rows: Row) -> None:
        """Give it rows that should have come before those that it gave last."""
        self.put(*rows)

    def again(self, *rows: Row) -> None:
        """Let rows come again."""
        self.put(*rows)

    def grow(self) -> None:
        """From now on rows come in a partition, a folder or a shard that was not there."""
        raise NotImplementedError

    def forget(self) -> str:
        """Retention takes what was given; what the error says of it."""
        raise NotImplementedError

    def onward(self) -> dict[str, Any]:
        """How a run goes on without what is lost."""
        raise NotImplementedError

    def leave(self) -> None:
        """End the part at once."""
        raise NotImplementedError

    def come_back(self) -> None:
        """Start it again."""
        raise NotImplementedError

    def rotate(self) -> None:
        """The part takes other credentials than those of the environment."""
        raise NotImplementedError

    def renew(self) -> None:
        """The environment has them, too."""
        raise NotImplementedError

    def secrets(self) -> list[str]:
        """What no message may show."""
        raise NotImplementedError

    def widen(self) -> None:
        """Make room for the column `more` in what is given from now on."""

    def poison(self) -> str:
        """Give the part what cannot be taken; what the error says of its place."""
        raise NotImplementedError

    def cure(self) -> tuple[list[Row], dict[str, Any]]:
        """Do what the error asks for: the rows that come of it, and how to run then."""
        raise NotImplementedError

    def after_death(self) -> None:
        """What time does once a run has died."""

    def mend(self) -> None:
        """Leave the part to others as it was found."""
