"""Looking at a table and its sources through the table library; whatever goes wrong becomes a `Problem`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.table import HudiTableSpec, IngestSpec, SourceType
from hudi_operator.manifests.jobs import options_of
from hudi_operator.plan.observed import (
    CommittedCheckpoint,
    FileFact,
    Problem,
    SourceObservation,
    TableObservation,
)
from hudi_operator.runtime.traces import traces
from hudi_table.codec.parquet import read_footer
from hudi_table.errors import (
    CorruptTableError,
    HudiError,
    InvalidRequestError,
    TableNotFoundError,
)
from hudi_table.model.checkpoint import KEY_PREFIX, Checkpoint
from hudi_table.model.commits import CommitMetadata
from hudi_table.model.index_properties import CONNECTION
from hudi_table.model.instants import PLANNED_ACTIONS, parse_instant_time
from hudi_table.model.names import HOODIE
from hudi_table.services.cleaning.debt import bytes_to_clean
from hudi_table.services.compaction.debt import compaction_debt
from hudi_table.services.file_ingest import list_source
from hudi_table.table.context import TableContext
from hudi_table.table.held import live_clusterings
from hudi_table.table.ports import Clock, Storage
from hudi_table.table.properties import open_context
from hudi_table.table.storage import open_storage
from hudi_table.table.timeline import Timeline, commit_metadata, load_timeline
from hudi_table.table.view import BaseFile, FileSystemView

COMMITS_READ_MAX = 200
FOOTERS_READ_MAX = 200
KEY_SAMPLE_FILES = 8


@dataclass(slots=True)
class _Footer:
    rows: int
    keys: tuple[str | None, str | None]


Cleanable = Callable[[FileSystemView, Mapping[str, str]], int]
"""Bytes that a cleaning with these options would free."""


@dataclass(slots=True)
class Observer:
    """Reads tables. What cannot change (completed commits, footers) is remembered by table."""

    clock: Clock
    cleanable: Cleanable = bytes_to_clean
    _contexts: dict[tuple[str, int], TableContext] = field(default_factory=dict)
    _footers: dict[tuple[str, str], _Footer] = field(default_factory=dict)

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
            storage = open_storage(spec.location, storage_options(spec, spec.location, secret))
            context = self._context(spec.location, storage, secret)
            return None if context is None else self._read(context, spec, cleaning)
        except HudiError as error:
            return _problem(error)

    def source(self, spec: HudiTableSpec, ingest: IngestSpec, secret: Mapping[str, str]) -> SourceObservation:
        """The files of an ingest's source."""
        path = ingest.source.path
        if ingest.source.type is not SourceType.FILES or path is None:
            return SourceObservation(ingest.name)
        try:
            return SourceObservation(ingest.name, list_source(open_storage(path, storage_options(spec, path, secret))))
        except HudiError as error:
            return SourceObservation(ingest.name, problem=_problem(error))

    def _context(self, location: str, storage: Storage, secret: Mapping[str, str]) -> TableContext | None:
        """The table's context, its caches kept; the properties are read each time, for they may have changed."""
        try:
            context = open_context(storage, self.clock)
        except TableNotFoundError as error:
            folders, files = storage.list_dir("")
            if files or any(folder.rstrip("/") != HOODIE for folder in folders):
                raise InvalidRequestError(error.message, base_path=error.base_path) from error
            return None
        known = self._contexts.setdefault((location, hash(tuple(sorted(secret.items())))), context)
        context.bodies, context.entries = known.bodies, known.entries
        return context

    def _read(self, context: TableContext, spec: HudiTableSpec, cleaning: Mapping[str, str] | None) -> TableObservation:
        timeline = load_timeline(context)
        commits = timeline.commits[-COMMITS_READ_MAX:]
        metadata = [(i.time, commit_metadata(context, i)) for i in reversed(commits)]
        view = FileSystemView(context, timeline)
        slices = view.latest_slices()
        files = [s.base for s in slices if s.base is not None]
        logged = {s.base.path: sum(log.size for log in s.logs) for s in slices if s.base is not None and s.logs}
        rows = self._rows(context, files, [m for _, m in metadata])
        checkpoints, attempts = _checkpoints(metadata)
        clusterings = [instant.time for instant in live_clusterings(context, timeline)]
        left, last_write = traces(timeline, metadata, clusterings)
        return TableObservation(
            config=context.config,
            commits=timeline.commits,
            pending=timeline.pending,
            last_moment=_moment(context, timeline),
            files=tuple(
                FileFact(f.partition, f.size, None if f.path in logged else rows.get(f.path), logged.get(f.path, 0))
                for f in files
            ),
            checkpoints=checkpoints,
            attempts=attempts,
            colon_keys=self._colon_keys(context, files),
            suspects=_suspects(context, timeline, clusterings),
            compaction=compaction_debt(view, options_of(spec)),
            traces=left,
            last_write=last_write,
            bytes_to_clean=self.cleanable(view, cleaning) if cleaning is not None else None,
            timeline_files=len(timeline.files),
        )

    def _rows(self, context: TableContext, files: list[BaseFile], commits: list[CommitMetadata]) -> dict[str, int]:
        """Rows by path: from the commits that wrote the files, else from footers, as far as the bound allows."""
        rows = {stat.path: stat.num_writes for commit in commits for stat in commit.stats}
        missing = [f for f in files if f.path not in rows]
        if len(missing) <= FOOTERS_READ_MAX:
            rows |= {f.path: self._footer(context, f).rows for f in missing}
        return rows

    def _colon_keys(self, context: TableContext, files: list[BaseFile]) -> bool | None:
        """Whether a sampled file's smallest or greatest key holds ':'. Not seen in the sample is not known."""
        config = context.config
        if config.index is None or not config.index.type.hashes or len(config.record_key) != 1:
            return None
        sample = sorted(files, key=lambda f: f.instant)[-KEY_SAMPLE_FILES:]
        keys = [key for f in sample for key in self._footer(context, f).keys]
        return True if any(key is not None and ":" in key for key in keys) else None

    def _footer(self, context: TableContext, file: BaseFile) -> _Footer:
        key = (context.base_path, file.path)
        if key not in self._footers:
            with context.storage.open_read(file.path) as source:
                footer = read_footer(source)
            self._footers[key] = _Footer(footer.rows, (footer.min_key, footer.max_key))
        return self._footers[key]


def storage_options(spec: HudiTableSpec, uri: str, secret: Mapping[str, str]) -> dict[str, str]:
    """Options of the storage port for a location: none for local paths, else endpoint, region and credentials."""
    if uri.startswith(("file:", "memory:")):
        return {}
    given = {"endpoint": spec.storage.endpoint, "region": spec.storage.region}
    options = {name: value for name, value in given.items() if value is not None}
    return options | {name.lower(): value for name, value in secret.items() if name != CONNECTION}


def _problem(error: HudiError) -> Problem:
    return Problem(error.name(), str(error), error.retryable)


def _checkpoints(
    metadata: list[tuple[str, CommitMetadata]],
) -> tuple[dict[str, CommittedCheckpoint], dict[str, str]]:
    """(newest checkpoint of each ingest, attempt → instant) of commits, newest first."""
    newest: dict[str, CommittedCheckpoint] = {}
    attempts: dict[str, str] = {}
    for time, commit in metadata:
        for key, text in commit.extra_metadata.items():
            if not key.startswith(KEY_PREFIX):
                continue
            try:
                checkpoint = Checkpoint.from_text(text)
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptTableError(f"{key} of this commit {error}", instant=time) from error
            newest.setdefault(key.removeprefix(KEY_PREFIX), CommittedCheckpoint(checkpoint, time))
            attempts.setdefault(checkpoint.attempt, time)
    return newest, attempts


def _moment(context: TableContext, timeline: Timeline) -> datetime | None:
    if timeline.last_commit is None:
        return None
    naive = parse_instant_time(timeline.last_commit.time)
    return naive.replace(tzinfo=UTC) if context.config.timezone == "UTC" else naive.astimezone(UTC)


def _suspects(context: TableContext, timeline: Timeline, clusterings: Collection[str]) -> tuple[str, ...]:
    """Pending writes without a sign of life for long, by the store's own ages. Plans wait as long as it takes."""
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
