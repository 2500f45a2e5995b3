"""What all sources behind the keys of a store have in common: it is away at times, and refuses
keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.streams.conformance.part import Part
from tests.streams.conformance.store import FIRST_KEY, SECOND_KEY, SECRET_KEY, Store


class OnStore(Part):
    """A source of the store, whose keys the job has in its environment."""

    marks = (pytest.mark.s3,)

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self.store: Store = request.getfixturevalue("store")
        named = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
        super().__init__(
            request, folder, {}, endpoint=self.store.server.endpoint, region="us-east-1", credentials=named
        )
        for name, value in zip(named, (FIRST_KEY, SECRET_KEY), strict=True):
            self.environment.setenv(name, value)

    def leave(self) -> None:
        self.store.stop()

    def come_back(self) -> None:
        self.store.start()

    def rotate(self) -> None:
        self.store.refused.add(FIRST_KEY)

    def renew(self) -> None:
        self.environment.setenv("AWS_ACCESS_KEY_ID", SECOND_KEY)

    def secrets(self) -> list[str]:
        return [SECRET_KEY]

    def mend(self) -> None:
        self.store.mend()
