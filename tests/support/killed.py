"""An operator that is killed: its calls of the API server end at one of them, before it is made or
after it took effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_operator.kube.rest import JSON, Document, Rest
from tests.support.api_server import ApiServer


class Killed(BaseException):
    """The operator is gone."""


class KilledRest(Rest):
    """Dies at one call: before it is made, or after it took effect and before its answer is
    seen."""

    def __init__(self, server: ApiServer, at: int = 0, *, after: bool = False) -> None:
        super().__init__(server.client())
        self.at, self.after = at, after
        self.calls = 0

    def _called(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None = None, kind: str = JSON
    ) -> Document:
        self.calls += 1
        if self.calls == self.at and not self.after:
            raise Killed
        answer = super()._called(method, path, query, body, kind)
        if self.calls == self.at:
            raise Killed
        return answer
