"""How much of the timeline stays: Hudi's keys, their defaults, and what they must not contradict.

Facts (Hudi 0.15.0): `hoodie.cleaner.commits.retained` (10) < `hoodie.keep.min.commits` (20) <
`hoodie.keep.max.commits` (30), or the writer refuses them; a cleaner by hours raises both of the
latter over the commits that it retains; tables of logs keep the deltacommits that the trigger of
compactions counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.known import boolean_option, check_options, choice_option, whole_option
from hudi_table.model.options.retention import COMMITS, HOURS, POLICY, CleanPolicy, with_policy
from hudi_table.model.timeline.instants import Instant, earlier, parse_instant_time
from hudi_table.services.compaction.trigger import Trigger, TriggerStrategy

MIN_COMMITS = "hoodie.keep.min.commits"
MAX_COMMITS = "hoodie.keep.max.commits"
BATCH = "hoodie.commits.archival.batch"
AUTOMATIC = "hoodie.archive.automatic"
MERGE = "hoodie.archive.merge.enable"
MERGE_FILES = "hoodie.archive.merge.files.batch.size"
MERGE_BYTES = "hoodie.archive.merge.small.file.limit.bytes"
LEVEL_FILES = "hoodie.timeline.compaction.batch.size"
MANIFESTS = "hoodie.timeline.manifest.retained.versions"
DEFAULT_BATCH = 1_000
"""Hudi's is 10; but each block repeats a schema of 14 KB, more than what most instants hold."""
_COUNTING = (TriggerStrategy.NUM_COMMITS, TriggerStrategy.NUM_AND_TIME)


@dataclass(frozen=True, slots=True)
class ArchivePolicy:
    """`least` completed writes stay; archiving begins beyond `most`. `batch`: entries of one log
    block. `hours`: what a cleaner by hours retains, else 0. `delta_commits`: those that a
    compaction's trigger must still find, else 0. `merge_files` (0: never merge) archive files
    smaller than `merge_bytes` are merged into one. Of versions 8 and 9: so many files of one level
    (`level_files`) become one of the next, and `manifests` of the past stay for readers, those of
    its own merges beside them."""

    least: int = 20
    most: int = 30
    batch: int = DEFAULT_BATCH
    hours: int = 0
    delta_commits: int = 5
    merge_files: int = 10
    merge_bytes: int = 20 << 20
    level_files: int = 10
    manifests: int = 3

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ArchivePolicy:
        """From Hudi's keys. Raises InvalidOptionError for a bad value, and for settings that
        contradict each other."""
        check_options(options)
        least, most = whole_option(options, MIN_COMMITS, least=1), whole_option(options, MAX_COMMITS, least=2)
        retained = whole_option(options, COMMITS, least=1)
        if not least < most:
            raise InvalidOptionError(f"{MAX_COMMITS}={most} must be greater than {MIN_COMMITS}={least}; raise it")
        if not retained < least:
            raise InvalidOptionError(
                f"{MIN_COMMITS}={least} must be greater than {COMMITS}={retained}: the commits that "
                "the cleaner retains must stay on the timeline; raise the first or lower the second"
            )
        trigger = Trigger.parse(options)
        by_hours = choice_option(with_policy(options), POLICY) == CleanPolicy.KEEP_LATEST_BY_HOURS
        return cls(
            least=least,
            most=most,
            batch=whole_option(options, BATCH, least=1),
            hours=whole_option(options, HOURS, least=1) if by_hours else 0,
            delta_commits=trigger.commits if trigger.strategy in _COUNTING else 0,
            merge_files=whole_option(options, MERGE_FILES, least=2) if boolean_option(options, MERGE) else 0,
            merge_bytes=whole_option(options, MERGE_BYTES, least=1),
            level_files=whole_option(options, LEVEL_FILES, least=2),
            manifests=whole_option(options, MANIFESTS, least=1),
        )

    def limits(self, writes: tuple[Instant, ...]) -> tuple[int, int]:
        """(least, most) for the completed `writes` of a timeline, oldest first."""
        if not self.hours or not writes:
            return self.least, self.most
        since = _moment_before(writes[-1].time, self.hours)
        retained = sum(_not_before(instant.time, since) for instant in writes) + 1
        return max(self.least, retained), max(self.most, retained + self.most - self.least)


def wants_archiving(options: Mapping[str, str]) -> bool:
    """Whether a write's options ask for archiving after it. Hudi's default is true; here it has to
    be given."""
    return boolean_option(options, AUTOMATIC)


def _moment_before(time: str, hours: int) -> str:
    """The instant time `hours` before another; '' if that carries no time (restored, or of a
    metadata table)."""
    try:
        return f"{earlier(parse_instant_time(time), timedelta(hours=1), hours):%Y%m%d%H%M%S}000"
    except ValueError:
        return ""


def _not_before(time: str, moment: str) -> bool:
    return time >= moment
