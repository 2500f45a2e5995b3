"""Receivers of a table's commits."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_operator.api.fields.patterns import ENDPOINT, NAME, OBJECT_NAME
from hudi_operator.api.schema import prop
from hudi_table.callbacks.kinds import CommitKind

SIGNING_KEY, BEARER_TOKEN = "signingKey", "bearerToken"


@dataclass(frozen=True, slots=True)
class CallbackSecret:
    """A Secret of the same namespace."""

    name: str = prop(
        f"name of the Secret: its {SIGNING_KEY} signs each event, its {BEARER_TOKEN}, if it has one, is sent as the Authorization header",
        pattern=OBJECT_NAME,
        max_length=253,
    )


@dataclass(frozen=True, slots=True)
class CallbackSpec:
    """One receiver of the table's commits."""

    name: str = prop(
        "name of the callback, unique in the table: its position is kept by it", pattern=NAME, max_length=40
    )
    url: str = prop(
        "where each event is posted to, as http(s)://host[:port]/path; its host must be one of callbacks.allowedHosts of the operator's chart",
        pattern=ENDPOINT,
        max_length=1024,
    )
    secret_ref: CallbackSecret = prop("the Secret that signs")
    events: tuple[CommitKind, ...] = prop(
        "Write: commits of rows; Rewrite: compactions and clusterings, which change none",
        (CommitKind.WRITE,),
        min_items=1,
        max_items=2,
        unique=True,
    )
    since: str | None = prop(
        "commits after this instant are sent, or earliest for all; absent: those that complete once the callback is there. It counts until the "
        "status has a position",
        None,
        pattern="^(earliest|[0-9]{17})$",
        max_length=17,
    )
