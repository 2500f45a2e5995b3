"""Observing a table and its sources through the table library; whatever goes wrong becomes a
`Problem`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from hudi_operator.api.ingests.ingest import IngestSpec
from hudi_operator.api.ingests.kinesis import KinesisSpec
from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.jobs import options_of
from hudi_operator.manifests.services import ServiceWork
from hudi_operator.manifests.sources import kinesis_document
from hudi_operator.plan.observed import FileFact, Problem, QueueDepth, SourceObservation, TableObservation
from hudi_operator.runtime.foreseen import refuse_ingest, refuse_service, refuse_table
from hudi_operator.runtime.known import KnownTable, moment_of
from hudi_operator.runtime.observing.problems import problem_of
from hudi_operator.runtime.observing.stores import storage_options
from hudi_operator.runtime.observing.topics import topics_of
from hudi_operator.runtime.observing.traces import traces
from hudi_operator.runtime.observing.unchanged import Answers, Look
from hudi_operator.runtime.observing.upkeep import archiving_of, check_maintenance
from hudi_table.codec.parquet import read_footer
from hudi_table.errors import HudiError, InvalidRequestError, ObjectNotFoundError, TableNotFoundError
from hudi_table.metadata.port import open_context
from hudi_table.model.bounded import Bounded, Shelf
from hudi_table.model.job.ranges import Range
from hudi_table.model.job.shards import ShardPositions, StreamLag
from hudi_table.model.job.upstream import Upstream
from hudi_table.model.names import HOODIE
from hudi_table.model.table.config import TableConfig
from hudi_table.model.timeline.chain import ChainEntry
from hudi_table.model.timeline.instants import PLANNED_ACTIONS
from hudi_table.services.cleaning.debt import bytes_to_clean
from hudi_table.services.compaction.debt import compaction_debt
from hudi_table.sources.files.source import list_source
from hudi_table.sources.hudi.source import extent_of
from hudi_table.table.commit.foreign_writers import foreign_commits
from hudi_table.table.commit.pending_plans import live_clusterings
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Clock, Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.version_change import FOLDER, noted_change
from hudi_table.table.view.file_groups import FileSlice
from hudi_table.table.view.file_system_view import BaseFile, FileSystemView

FOOTERS_READ_MAX = 200
KEY_SAMPLE_FILES = 8
FACTS_MAX, ANSWERS_MAX, FOOTERS_MAX, ENTRIES_MAX, BODIES_BYTES_MAX = 200_000, 100_000, 20_000, 20_000, 32 << 20
"""What is remembered of all tables together: some 140 MiB at most. Past it, tables that were not
observed for longest are read anew."""

KEY_ID = "AWS_ACCESS_KEY_ID"


@dataclass(slots=True)
class _Footer:
    rows: int
    keys: tuple[str | None, str | None]


Cleanable = Callable[[FileSystemView, Mapping[str, str]], int]
"""Bytes that a cleaning with these options would free."""


@dataclass(slots=True)
class Observer:
    """Reads tables. What cannot change (completed commits, footers) is remembered by table, within
    bounds that all tables share. `environment`: credentials for the brokers of resources without a
    Secret; none where brokers may be other people's."""

    clock: Clock
    cleanable: Cleanable = bytes_to_clean
    environment: Mapping[str, str] = field(default_factory=dict)
    _tables: Bounded[Hashable, KnownTable] = field(
        default_factory=lambda: Bounded(FACTS_MAX, lambda known: known.weight)
    )
    _answers: Bounded[Hashable, Answers] = field(
        default_factory=lambda: Bounded(ANSWERS_MAX, lambda answers: answers.weight)
    )
    _bodies: Bounded[tuple[Hashable, str], bytes] = field(default_factory=lambda: Bounded(BODIES_BYTES_MAX, len))
    _entries: Bounded[tuple[Hashable, int], ChainEntry] = field(default_factory=lambda: Bounded(ENTRIES_MAX))
    _footers: Bounded[tuple[Hashable, str], _Footer] = field(default_factory=lambda: Bounded(FOOTERS_MAX))

    def table(
        self, desired: DesiredTable, secret: Mapping[str, str], cleaning: Mapping[str, str] | None = None
    ) -> TableObservation | Problem | None:
        """The table at the resource's location, None if nothing is there, or why it cannot be seen.

        `cleaning`: options of a cleaning, where somebody asks what it would free.
        """
        spec = desired.spec
        if spec is None:
            return None
        try:
            check_maintenance(spec)
            storage = open_storage(spec.location, storage_options(spec, spec.location, secret))
            owner = _owner(spec, spec.location, secret)
            found = self._look(owner, storage, spec, cleaning)
            if found is None:
                refuse_table(desired.identity.key.name, spec)
            return found
        except HudiError as error:
            return problem_of(error)

    def ingest(
        self, desired: DesiredTable, ingest: IngestSpec, config: TableConfig | None, secret: Mapping[str, str]
    ) -> Problem | None:
        """Why every job of an ingest would be refused, None if nothing is known against it;
        `config` is None without a table."""
        spec, name = desired.spec, desired.identity.key.name
        if spec is None:
            return None
        return self._refused(
            spec, secret, lambda storage: refuse_ingest(name, spec, ingest, config, storage, self.clock)
        )

    def service(
        self, work: ServiceWork, spec: HudiTableSpec, config: TableConfig, secret: Mapping[str, str]
    ) -> Problem | None:
        """The same of a service of a table that is there."""
        return self._refused(spec, secret, lambda storage: refuse_service(work, spec, config, storage, self.clock))

    @staticmethod
    def _refused(spec: HudiTableSpec, secret: Mapping[str, str], check: Callable[[Storage], None]) -> Problem | None:
        try:
            check(open_storage(spec.location, storage_options(spec, spec.location, secret)))
        except HudiError as error:
            return problem_of(error)
        return None

    def _look(
        self, owner: Hashable, storage: Storage, spec: HudiTableSpec, cleaning: Mapping[str, str] | None
    ) -> TableObservation | None:
        # What fails is asked anew the next time.
        before = self._answers.pop(owner, None)
        look = Look(storage, self.clock, before)
        context = self._context(owner, look)
        if context is None:
            return None
        found = with_relists(context, lambda: self._read(owner, context, spec, cleaning))
        if any(folder.rstrip("/").endswith(FOLDER) for folder in look.answers.listings[HOODIE][0]):
            # Whether the note is still in its folder no listing shows.
            change = noted_change(storage)
            found = replace(found, changing=(change.source, change.target) if change is not None else None)
        self._answers[owner] = look.answers
        return found

    def source(
        self, spec: HudiTableSpec, ingest: IngestSpec, secret: Mapping[str, str], table: TableObservation | None = None
    ) -> SourceObservation:
        """What an ingest's source holds: files, how far its topics go, or what waits in another
        table behind the checkpoint that `table` holds."""
        if ingest.source.kafka is not None:
            positions = table.positions(ingest.name) if table is not None else None
            return topics_of(ingest, ingest.source.kafka, secret or self.environment, positions, self.clock)
        source = ingest.source
        if source.kinesis is not None and source.range is None:
            shards = table.shards(ingest.name) if table is not None else None
            return SourceObservation(ingest.name, lag=self._lag(spec, source.kinesis, secret, shards))
        if any(each is not None for each in (source.kinesis, source.jdbc, source.sql, source.custom)):
            return SourceObservation(ingest.name)  # its jobs ask
        if ingest.source.hudi is not None:
            held = table.upstream(ingest.name) if table is not None else None
            return self._upstream(spec, ingest, ingest.source.hudi.location, secret, held)
        if ingest.source.notifications is not None:
            return self._queue(spec, ingest.name, ingest.source.notifications.queue, secret)
        path = ingest.source.path or ""
        try:
            files, within = list_source(open_storage(path, storage_options(spec, path, secret))), _range_of(ingest)
            return SourceObservation(ingest.name, within.files(files) if within is not None else files)
        except HudiError as error:
            return SourceObservation(ingest.name, problem=problem_of(error))

    def _lag(
        self, spec: HudiTableSpec, kinesis: KinesisSpec, secret: Mapping[str, str], held: ShardPositions | None
    ) -> StreamLag | Problem | None:
        """None without keys of the resource's own: what its jobs may, the operator may not."""
        if held is None or not secret.get(KEY_ID):
            return None
        # The client is loaded by tables that have such an ingest.
        from hudi_table.sources.kinesis.settings import KinesisSettings
        from hudi_table.sources.kinesis.tip import lag_of

        try:
            settings = KinesisSettings.of({"kinesis": kinesis_document(kinesis)}, spec.storage.region)
            return lag_of(settings, secret, held, self.clock)
        except HudiError as error:
            return problem_of(error)

    @staticmethod
    def _queue(spec: HudiTableSpec, name: str, url: str, secret: Mapping[str, str]) -> SourceObservation:
        # The client is loaded by tables that have such an ingest.
        from hudi_table.sources.files.sqs import Queue

        try:
            depth = Queue(url, spec.storage.region, secret).depth()
        except HudiError as error:
            return SourceObservation(name, problem=problem_of(error))
        return SourceObservation(name, queue=QueueDepth(depth.waiting, depth.in_flight))

    def _upstream(
        self, spec: HudiTableSpec, ingest: IngestSpec, location: str, secret: Mapping[str, str], held: Upstream | None
    ) -> SourceObservation:
        owner, name = ("upstream", _owner(spec, location, secret)), ingest.name
        # What fails is asked anew the next time.
        before = self._answers.pop(owner, None)
        try:
            look = Look(open_storage(location, storage_options(spec, location, secret)), self.clock, before)
            context = self._context(owner, look)
            if context is None:
                return SourceObservation(name)
            found = SourceObservation(name, upstream=extent_of(context, held, _range_of(ingest)))
        except HudiError as error:
            return SourceObservation(name, problem=problem_of(error))
        self._answers[owner] = look.answers
        return found

    def _context(self, owner: Hashable, storage: Storage) -> TableContext | None:
        """The table's context, its caches kept; the properties are read each time, for they may
        have changed."""
        try:
            context = open_context(storage, self.clock)
        except TableNotFoundError as error:
            folders, files = storage.list_dir("")
            if _is_begun(storage):
                return None
            if files or any(folder.rstrip("/") != HOODIE for folder in folders):
                raise InvalidRequestError(error.message, base_path=error.base_path) from error
            return None
        context.bodies, context.entries = Shelf(self._bodies, owner), Shelf(self._entries, owner)
        return context

    def _read(
        self, owner: Hashable, context: TableContext, spec: HudiTableSpec, cleaning: Mapping[str, str] | None
    ) -> TableObservation:
        known = self._tables.get(owner) or KnownTable()
        with known.lock:
            found = self._read_known(owner, known, context, spec, cleaning)
        self._tables[owner] = known
        return found

    def _read_known(
        self,
        owner: Hashable,
        known: KnownTable,
        context: TableContext,
        spec: HudiTableSpec,
        cleaning: Mapping[str, str] | None,
    ) -> TableObservation:
        timeline = load_timeline(context)
        unknown = known.learn(context, timeline, [ingest.name for ingest in spec.ingest])
        view = FileSystemView(context, timeline)
        slices = view.latest_slices()
        files = [s.base for s in slices if s.base is not None]
        known.keep_rows(f.path for f in files)
        rows = self._rows(owner, context, files, known.rows)
        checkpoints, damaged = known.checkpoints(context)
        clusterings = [instant.time for instant in live_clusterings(context, timeline)]
        left, last_write = traces(timeline, known.operations(timeline), clusterings)
        return TableObservation(
            config=context.config,
            commits=timeline.commits,
            pending=timeline.pending,
            oldest_pending=_oldest(context, timeline),
            last_moment=_moment(context, timeline),
            files=tuple(_fact(s, rows) for s in slices if s.base is not None),
            logs_alone=tuple(_fact(s, rows) for s in slices if s.base is None and s.logs),
            checkpoints=checkpoints,
            unknown_checkpoints=unknown | damaged,
            attempts=known.attempts(timeline),
            event_times=known.event_times(timeline),
            paces=known.paces(context, timeline),
            columns=known.columns(context, timeline),
            colon_keys=self._colon_keys(owner, context, files),
            suspects=_suspects(context, timeline, clusterings),
            compaction=compaction_debt(view, options_of(spec)),
            archiving=archiving_of(context, timeline, spec),
            traces=left,
            last_write=last_write,
            bytes_to_clean=self.cleanable(view, cleaning) if cleaning is not None else None,
            timeline_files=len(timeline.files),
            foreign=foreign_commits(context, timeline),
            lost=tuple(sorted(context.lost)),
        )

    def _rows(
        self, owner: Hashable, context: TableContext, files: list[BaseFile], rows: Mapping[str, int]
    ) -> dict[str, int]:
        """Rows by path: from the commits that wrote the files, else from footers, as far as the
        bound allows."""
        missing = [f for f in files if f.path not in rows]
        if len(missing) > FOOTERS_READ_MAX:
            return dict(rows)
        return {**rows, **{f.path: self._footer(owner, context, f).rows for f in missing}}

    def _colon_keys(self, owner: Hashable, context: TableContext, files: list[BaseFile]) -> bool | None:
        """Whether a sampled file's smallest or greatest key holds ':'. Not seen in the sample is
        not known."""
        config = context.config
        if config.index is None or not config.index.type.hashes or len(config.record_key) != 1:
            return None
        sample = sorted(files, key=lambda f: f.instant)[-KEY_SAMPLE_FILES:]
        keys = [key for f in sample for key in self._footer(owner, context, f).keys]
        return True if any(key is not None and ":" in key for key in keys) else None

    def _footer(self, owner: Hashable, context: TableContext, file: BaseFile) -> _Footer:
        known = self._footers.get((owner, file.path))
        if known is not None:
            return known
        with context.storage.open_read(file.path) as source:
            footer = read_footer(source)
        found = self._footers[owner, file.path] = _Footer(footer.rows, (footer.min_key, footer.max_key))
        return found


def _is_begun(storage: Storage) -> bool:
    """Whether files lie there of a bootstrap that was cut short: the next one goes on with them."""
    from hudi_table.services.bootstrapping.run import NOTE

    try:
        storage.head(NOTE)
    except ObjectNotFoundError:
        return False
    return True


def _range_of(ingest: IngestSpec) -> Range | None:
    """What of the source an ingest of mode Backfill takes."""
    found = ingest.source.range
    return Range(found.until, found.since or "", found.by.value) if found is not None else None


def _owner(spec: HudiTableSpec, location: str, secret: Mapping[str, str]) -> Hashable:
    """Whose what was read there is. One who has other credentials sees nothing of it, and one URL
    names two places at two endpoints."""
    keys = hash(tuple(sorted(secret.items())))
    return location, keys, tuple(sorted(storage_options(spec, location, {}).items()))


def _fact(found: FileSlice, rows: Mapping[str, int]) -> FileFact:
    """`rows`: of base files, by path."""
    base = found.base.size if found.base is not None else 0
    known = rows.get(found.base.path) if found.base is not None and not found.logs else None
    return FileFact(found.partition, base, known, found.size - base)


def _moment(context: TableContext, timeline: Timeline) -> datetime | None:
    return moment_of(context, timeline.last_commit.time) if timeline.last_commit is not None else None


def _oldest(context: TableContext, timeline: Timeline) -> datetime | None:
    """When the oldest pending instant began. Of what another engine leaves under digits that are no
    moment nobody knows it."""
    moments = []
    for each in timeline.pending:
        with suppress(ValueError):
            moments.append(moment_of(context, each.time))
    return min(moments, default=None)


def _suspects(context: TableContext, timeline: Timeline, clusterings: Collection[str]) -> tuple[str, ...]:
    """Pending writes without a sign of life for long. Plans wait as long as it takes.

    By this process's clock, for the store's is told by a write alone, and a look writes nothing.
    Who rolls them back goes by the store's.
    """
    limit = context.settings.suspect_after_seconds
    now = context.clock.now()
    found = []
    for instant in timeline.pending:
        if instant.action in PLANNED_ACTIONS or instant.time in clusterings:
            continue
        ages = [timeline.files[name] for name in timeline.claim_names(instant.time)]
        if ages and (now - max(ages)).total_seconds() > limit:
            found.append(instant.file_name)
    return tuple(found)
