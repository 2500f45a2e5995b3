"""One callback: where it is, and one turn of delivering. Events go out in the order of commits, the
next once the one before was taken.

The position that stands in the status is what counts: a courier that begins anew goes on from
there, so a receiver may hear of a commit twice and never of none. Where a callback begins stands
there before the first event is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from hudi_operator.api.fields.callbacks import BEARER_TOKEN, SIGNING_KEY, CallbackKafkaSpec, CallbackSpec
from hudi_operator.api.resources import DesiredTable, Key
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.jobs import CREDENTIAL_VARIABLES
from hudi_operator.plan.observed import CallbackObservation, Problem
from hudi_operator.plan.status.callbacks import HOST_NOT_ALLOWED, NO_KEY, NOT_READ, RECEIVER_FAILS
from hudi_operator.runtime.masking import masked
from hudi_operator.runtime.observing.stores import storage_options
from hudi_operator.runtime.ports import Cluster
from hudi_table.callbacks.commits import Page, commits_after, newest_position
from hudi_table.callbacks.position import Position
from hudi_table.callbacks.post import Answer
from hudi_table.callbacks.receivers import Allowed, Target
from hudi_table.callbacks.sending import Hook, Receiver
from hudi_table.errors import HudiError, InvalidOptionError, TableNotFoundError
from hudi_table.metadata.port import open_context
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Clock
from hudi_table.table.timeline.context import TableContext

POLL_SECONDS, CONFIRM_SECONDS = 10.0, 1.0
BACKOFF_FIRST_SECONDS, BACKOFF_MAX_SECONDS = 1.0, 300.0
TURN_COMMITS = 20
"""After so many a courier lets others go first."""
NOT_ALLOWED = "; list it in callbacks.allowedHosts of the operator's chart, or correct {}"


@dataclass(frozen=True, slots=True)
class Tools:
    """What every courier needs. `wake`: asks for a reconcile of the table, which writes the
    status."""

    cluster: Cluster
    clock: Clock
    allowed: Allowed
    wake: Callable[[Key], None]


@dataclass(slots=True)
class Courier:
    """A callback of one table. `ended`: nobody wants it any more. Its turns are one after the
    other; what it says is read by others meanwhile."""

    tools: Tools
    desired: DesiredTable
    spec: CallbackSpec
    ended: bool = False
    seen: CallbackObservation = field(init=False)
    _position: Position | None = None
    _failures: int = 0

    def __post_init__(self) -> None:
        self.seen = CallbackObservation(self.spec.name)

    def turn(self) -> float:
        """Deliver what there is, some commits at the most; after how many seconds it wants its next
        turn."""
        try:
            return self._turn()
        except HudiError as error:
            return self._failed(Problem(NOT_READ, self._masked(str(error)), retryable=True))

    def _turn(self) -> float:
        table = self.desired.spec
        assert table is not None
        try:
            ctx = self._context(table)
        except TableNotFoundError:
            if self._position is None and not self._begins(None):
                return CONFIRM_SECONDS
            return POLL_SECONDS
        if self._position is None and not self._begins(ctx):
            return CONFIRM_SECONDS
        assert self._position is not None
        page = commits_after(ctx, self._position, kinds=self.spec.events, limit=TURN_COMMITS)
        if not page.told:
            self._covers(page.position)
            self._is_well(oldest=None)
            return 0.0 if page.more else POLL_SECONDS
        receiver = self._receiver()
        if isinstance(receiver, Problem):
            return self._failed(receiver, page.told[0].commit.completed)
        try:
            return self._delivered(ctx, receiver, page)
        finally:
            receiver.close()

    def _delivered(self, ctx: TableContext, receiver: Receiver, page: Page) -> float:
        """Send the commits of a page, each once the one before has been taken."""
        for number, told in enumerate(page.told):
            if self.ended:
                return POLL_SECONDS
            answer = receiver.send(ctx, told.commit, self.tools.allowed)
            if not answer.delivered:
                return self._failed(self._problem(answer), told.commit.completed)
            last = number == len(page.told) - 1
            self._covers(page.position if last else told.position)
            self._failures = 0
            self._says(told.commit.instant, self.tools.clock.now())
        self._is_well(oldest=page.told[-1].commit.completed if page.more else None)
        self.tools.wake(self.desired.identity.key)
        return 0.0 if page.more else POLL_SECONDS

    def _context(self, table: HudiTableSpec) -> TableContext:
        """The table, opened for this turn: between turns a courier holds nothing of it."""
        options = storage_options(table, table.location, self._credentials(table))
        return open_context(open_storage(table.location, options), self.tools.clock)

    def _credentials(self, table: HudiTableSpec) -> Mapping[str, str]:
        ref = table.storage.credentials_secret_ref
        found = self._secret(ref.name) if ref is not None else {}
        return {name: value for name, value in found.items() if name in CREDENTIAL_VARIABLES}

    def _secret(self, name: str) -> Mapping[str, str]:
        return self.tools.cluster.secret(self.desired.identity.key.namespace, name) or {}

    def _begins(self, ctx: TableContext | None) -> bool:
        """Whether the status holds a position, which is taken then; else report the one to begin
        at, and wait for it."""
        stored = self._stored()
        if stored is not None:
            self._position = Position.parse(stored, "UTC")
            self.seen = CallbackObservation(self.spec.name, position=stored)
            return True
        if self.seen.position is None:
            if self.spec.since is not None:
                first = Position.parse(self.spec.since, "UTC")
            else:
                first = newest_position(ctx) if ctx is not None else Position(looked=True)
            self.seen = CallbackObservation(self.spec.name, position=str(first))
        self.tools.wake(self.desired.identity.key)
        return False

    def _stored(self) -> str | None:
        document = self.tools.cluster.get(self.desired.identity.key) or {}
        held = (document.get("status") or {}).get("callbacks") or ()
        return next((each.get("position") for each in held if each.get("name") == self.spec.name), None)

    def _receiver(self) -> Receiver | Problem:
        if self.spec.kafka is not None:
            return self._topic(self.spec.kafka)
        try:
            target = Target.of(self.spec.url or "")
        except InvalidOptionError as error:
            return Problem(HOST_NOT_ALLOWED, error.message)
        if not self.tools.allowed.host(target.host):
            # Before the Secret is read, which a URL that is refused must not even ask for.
            return Problem(HOST_NOT_ALLOWED, f"host {target.host} is not allowed{NOT_ALLOWED.format('url')}")
        name, secret = self._own_secret()
        key = secret.get(SIGNING_KEY, "").strip()
        if not key:
            return Problem(NO_KEY, f"Secret {name!r} is not there, or has no {SIGNING_KEY}")
        bearer = secret.get(BEARER_TOKEN, "").strip()
        if not (bearer.isascii() and (bearer.isprintable() or not bearer)):
            return Problem(NO_KEY, f"{BEARER_TOKEN} of Secret {name!r} holds what no header can")
        return Hook(target, key, bearer)

    def _topic(self, kafka: CallbackKafkaSpec) -> Receiver | Problem:
        # The client is loaded by who has such a callback.
        from hudi_table.callbacks.topics import TopicReceiver, refusal
        from hudi_table.sources.kafka.settings import KafkaSettings

        protocol, mechanism = kafka.security.protocol.value, kafka.security.mechanism.value
        settings = KafkaSettings(kafka.brokers, (kafka.topic,), protocol=protocol, mechanism=mechanism)
        why = refusal(kafka.brokers, self.tools.allowed)
        if why is not None:
            return Problem(HOST_NOT_ALLOWED, f"{why}{NOT_ALLOWED.format('kafka.brokers')}")
        name, secret = self._own_secret()
        key = secret.get(SIGNING_KEY, "").strip()
        if name and not secret:
            return Problem(NO_KEY, f"Secret {name!r} is not there, or is empty")
        return TopicReceiver(settings, key, secret)

    def _own_secret(self) -> tuple[str, Mapping[str, str]]:
        """(its name, what the callback's Secret holds)."""
        ref = self.spec.secret_ref
        return (ref.name, self._secret(ref.name)) if ref is not None else ("", {})

    def _problem(self, answer: Answer) -> Problem:
        if answer.refused:
            field = "url" if self.spec.kafka is None else "kafka.brokers"
            return Problem(HOST_NOT_ALLOWED, answer.why + NOT_ALLOWED.format(field))
        return Problem(RECEIVER_FAILS, answer.why, retryable=True)

    def _covers(self, position: Position) -> None:
        self._position = position
        self.seen = CallbackObservation(
            self.spec.name,
            str(position),
            self.seen.last_delivered,
            self.seen.last_time,
            self.seen.oldest,
            self.seen.problem,
        )

    def _says(self, instant: str, now: datetime) -> None:
        self.seen = CallbackObservation(self.spec.name, self.seen.position, instant, now, self.seen.oldest)

    def _is_well(self, *, oldest: datetime | None) -> None:
        was_bad = self.seen.problem is not None
        self._failures = 0
        self.seen = CallbackObservation(
            self.spec.name, self.seen.position, self.seen.last_delivered, self.seen.last_time, oldest
        )
        if was_bad:
            self.tools.wake(self.desired.identity.key)

    def _failed(self, problem: Problem, oldest: datetime | None = None) -> float:
        self._failures += 1
        news = self.seen.problem != problem
        self.seen = CallbackObservation(
            self.spec.name,
            self.seen.position,
            self.seen.last_delivered,
            self.seen.last_time,
            oldest or self.seen.oldest,
            problem,
        )
        if news:
            self.tools.wake(self.desired.identity.key)
        return min(BACKOFF_MAX_SECONDS, BACKOFF_FIRST_SECONDS * float(1 << min(self._failures - 1, 16)))

    def _masked(self, text: str) -> str:
        """Stores' texts without what the Secret of the table holds."""
        table = self.desired.spec
        if table is None or table.storage.credentials_secret_ref is None:
            return text
        try:
            secret = self._secret(table.storage.credentials_secret_ref.name)
        except HudiError:
            return "the store's Secret cannot be read"
        return masked(text, secret) or ""
