"""Chains of tables: who takes in what changes in a table, and which of its ingests have another
table keep what they have not taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hudi_operator.api.resources import DesiredTable
from hudi_operator.plan.observed import Follower
from hudi_operator.plan.schedule.holds import followers_of
from hudi_operator.runtime.ports import Cluster

Parse = Callable[[Mapping[str, Any]], DesiredTable]


def followers(cluster: Cluster, parse: Parse, table: DesiredTable) -> tuple[Follower, ...]:
    """The tables that take in what changes in one, as far as their status tells."""
    found = [cluster.get(each) for each in cluster.followers(table.identity.key)]
    return tuple(each for one in found if one is not None for each in followers_of(parse(one), table))


def holding(cluster: Cluster, parse: Parse, table: DesiredTable) -> frozenset[str]:
    """The ingests of a table for which another one keeps what they have not taken."""
    found = [cluster.get(each) for each in cluster.upstreams(table.identity.key)]
    uppers = [parse(one) for one in found if one is not None]
    return frozenset(each.ingest for upper in uppers for each in followers_of(table, upper))
