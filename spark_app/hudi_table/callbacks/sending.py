"""A commit as it is sent: its event, signed at the moment of sending, so that each attempt has a
signature of its own. This receiver is one of HTTP; that of `topics.py` is one of Kafka."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from hudi_table.callbacks.cloud_events import MEDIA_TYPE, body_of, event_of
from hudi_table.callbacks.commits import Commit
from hudi_table.callbacks.post import SECONDS, Answer, post
from hudi_table.callbacks.receivers import Allowed, Target
from hudi_table.callbacks.signatures import HEADER, signature
from hudi_table.table.timeline.context import TableContext


class Receiver(Protocol):
    """Who takes events."""

    def send(self, ctx: TableContext, commit: Commit, allowed: Allowed) -> Answer:
        """One attempt at one commit."""
        ...

    def close(self) -> None:
        """No event follows."""
        ...


@dataclass(frozen=True, slots=True)
class Hook:
    """Where events go: `key` signs them, `bearer` is sent as the token of an Authorization header,
    if there is one."""

    target: Target
    key: str = field(repr=False)
    bearer: str = field(default="", repr=False)

    def send(self, ctx: TableContext, commit: Commit, allowed: Allowed, *, seconds: float = SECONDS) -> Answer:
        """One attempt at one commit."""
        body = body_of(event_of(ctx, commit))
        headers = {"Content-Type": MEDIA_TYPE, HEADER: signature(self.key, body, int(ctx.clock.now().timestamp()))}
        if self.bearer:
            headers["Authorization"] = f"Bearer {self.bearer}"
        return post(self.target, body, headers, allowed=allowed, clock=ctx.clock, seconds=seconds)

    def close(self) -> None:
        """Each event has a connection of its own."""
