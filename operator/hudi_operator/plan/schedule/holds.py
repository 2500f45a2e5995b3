"""What cleaning and archiving of a table leave to the tables that follow it: for as long as one of
them is behind, and may hold, what changed since the last commit that it has taken stays.

A clean keeps by hours then, since commits may come between the judgement and the clean; archiving
does not begin. What a follower has taken is known from its status: it may have taken more since,
never less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from hudi_operator.api.ingests.upstreams import UpstreamDeletes
from hudi_operator.api.locations import segments
from hudi_operator.api.resources import DesiredTable
from hudi_operator.manifests.quantities import seconds_of
from hudi_operator.manifests.services import ServiceWork
from hudi_operator.plan.observed import Follower, TableObservation
from hudi_table.model.counts import counted
from hudi_table.model.digits import whole
from hudi_table.model.options.retention import COMMITS, HOURS, POLICY, CleanPolicy, with_policy
from hudi_table.model.service.services import ServiceType
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.model.timeline.utc import utc_of

KEPT_DEFAULT, LEAST_DEFAULT = 10, 20
LEAST = "hoodie.keep.min.commits"


@dataclass(frozen=True, slots=True)
class Hold:
    """The follower that is furthest behind: `behind` commits came after the one that it has taken
    last, at `since`."""

    follower: Follower
    behind: int
    since: datetime

    def __str__(self) -> str:
        who = f"{self.follower.table} (ingest {self.follower.ingest})"
        return f"what changed since {self.follower.position} is kept for {who}, which is {counted(self.behind, 'commit')} behind"


def followers_of(desired: DesiredTable, upstream: DesiredTable) -> Iterator[Follower]:
    """The ingests by which one table takes in what changes in another."""
    if desired.spec is None or upstream.spec is None or desired.identity.deleted:
        return
    taken = {each.name: each.position or "" for each in desired.status.ingest}
    for ingest in desired.spec.ingest:
        hudi = ingest.source.hudi
        if hudi is not None and segments(hudi.location) == segments(upstream.spec.location):
            deletes = hudi.deletes is UpstreamDeletes.DELETE
            yield Follower(str(desired.identity.key), ingest.name, taken.get(ingest.name, ""), hudi.max_hold, deletes)


def hold_of(kind: ServiceType, table: TableObservation, followers: Iterable[Follower], now: datetime) -> Hold | None:
    """What holds a service, None if nothing does. One that takes no deletes needs no file that a
    clean takes."""
    if kind not in (ServiceType.CLEANING, ServiceType.ARCHIVING):
        return None
    found = [hold for each in followers if (hold := _hold(table, each, now)) is not None]
    if kind is ServiceType.CLEANING:
        found = [hold for hold in found if hold.follower.deletes]
    return max(found, key=lambda hold: hold.behind, default=None)


def _hold(table: TableObservation, follower: Follower, now: datetime) -> Hold | None:
    last = next((commit for commit in table.commits if commit.time == follower.position), None)
    if last is None:
        return None  # Nothing was taken yet, or what comes next is lost already.
    moments = [each.moment for each in table.commits if comparable_time(each.moment) > comparable_time(last.moment)]
    if not moments:
        return None
    zone = table.config.timezone
    waited = (now - utc_of(min(moments, key=comparable_time), zone)).total_seconds()
    if waited > seconds_of(follower.max_hold):
        return None
    return Hold(follower, len(moments), utc_of(last.moment, zone))


def keeping(work: ServiceWork, hold: Hold | None, options: Mapping[str, str], now: datetime) -> ServiceWork:
    """A clean that keeps what is held. `options` are the table's."""
    if hold is None or work.type is not ServiceType.CLEANING:
        return work
    merged = with_policy({**options, **work.options})
    policy = merged.get(POLICY, CleanPolicy.KEEP_LATEST_COMMITS.value)
    if policy == CleanPolicy.KEEP_LATEST_COMMITS and 2 * hold.behind < _number(merged, COMMITS, KEPT_DEFAULT):
        return work
    hours = math.ceil((now - hold.since).total_seconds() / 3600) + 1
    if policy == CleanPolicy.KEEP_LATEST_BY_HOURS:
        hours = max(hours, _number(merged, HOURS, 0))
    kept = {key: value for key, value in work.options.items() if key not in (COMMITS, POLICY)}
    return replace(work, options={**kept, POLICY: CleanPolicy.KEEP_LATEST_BY_HOURS.value, HOURS: str(hours)})


def holds_back(work: ServiceWork, hold: Hold | None, options: Mapping[str, str]) -> bool:
    """Whether archiving is not to begin: it could reach what is held."""
    if hold is None or work.type is not ServiceType.ARCHIVING:
        return False
    return 2 * hold.behind >= _number({**options, **work.options}, LEAST, LEAST_DEFAULT)


def _number(options: Mapping[str, str], key: str, default: int) -> int:
    found = whole(options.get(key, ""))
    return default if found is None else found
