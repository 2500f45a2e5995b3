"""What differs by table version, as a value: two layouts of one table format. A table has the one
of its version from when it is opened.

Everything else asks the layout of its table and compares no version
(`tests/tidy/test_table_version.py`). What a layout cannot tell as a value, because files have to be
read for it, stands beside what it differs from: slices in `table/view`, the archive in
`table/timeline`.

Facts (measured on Hudi 0.15.0, 1.0.2 and 1.1.1): version 6 keeps its timeline in `.hoodie/` and
archives it into log files. Versions 8 and 9 keep it in `.hoodie/timeline/`, where each completed
file tells when its instant completed, and archive it into Parquet files with manifests; a log is
named by the instant that wrote it, and not by the slice that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from hudi_table.errors import InvalidOptionError, UnsupportedTableError
from hudi_table.model.digits import whole
from hudi_table.model.names import HOODIE, STREAMER_KEY, STREAMER_KEY_V2, MarkerType
from hudi_table.model.table.config import MergeMode, TableType
from hudi_table.model.table.merge_modes import later_merge
from hudi_table.model.table.merge_settings import LaterMerge, PartialUpdates
from hudi_table.model.table.merging import payload_of
from hudi_table.model.timeline.instants import Action, Instant, State, next_instant_time


class Archive(Enum):
    """How the archived part of a timeline is kept: in log files, or in Parquet files and manifests.
    The value ends the names of its files."""

    LOGS = ""
    LSM = ".parquet"


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout of tables.

    `timeline_folder`: where the files of the active timeline lie, relative to the base path.
    `archive_key` and `archive_default`: the property that names the folder of the archive inside
    it. `tells_completions`: whether the name of each completed file tells when its instant
    completed; then slices and ranges of changes go by completion. `partition_stats`: whether the
    metadata table has statistics of whole partitions where it has those of files.
    `logs_tell_writers`: whether the instant in the name of a log is the one that wrote it, and not
    that of its slice. `avro_commits`: whether the file of a completed write is an Avro container,
    and no JSON. `clustering`: the action of the plan of a clustering. `log_marker`: with which logs
    are marked before they are there. `colon_rule`: whose rule for colons in keys the hash of a
    bucket follows, unless the table says. `streamer_key`: by which key commits hold the checkpoint
    of Hudi Streamer. `merging`: how log entries merge, where properties tell it in the words of
    version 8 and later."""

    versions: frozenset[int]
    timeline_folder: str
    archive: Archive
    archive_key: str
    archive_default: str
    tells_completions: bool
    partition_stats: bool
    logs_tell_writers: bool
    avro_commits: bool
    clustering: Action
    log_marker: MarkerType
    colon_rule: str
    streamer_key: str
    merging: Callable[[Mapping[str, str]], LaterMerge | None]

    @property
    def listed(self) -> tuple[str, ...]:
        """The folders that a listing of the timeline asks: its own, and at the end that of the
        folders beside it, which tell something too."""
        return tuple(dict.fromkeys((self.timeline_folder, HOODIE)))

    @property
    def others(self) -> tuple[Layout, ...]:
        """The layouts that this one is not."""
        return tuple(layout for layout in (LAYOUT_1, LAYOUT_2) if layout is not self)

    @property
    def other_folder(self) -> str:
        """The folder of `.hoodie/` in which other layouts have their timeline, '' if it is its
        own."""
        other = LAYOUT_2.timeline_folder
        return "" if other == self.timeline_folder else other.rpartition("/")[2]

    def timeline_path(self, name: str) -> str:
        """The path of a timeline file, relative to the base path. A name with a folder is one of
        the metadata table's, relative to `.hoodie/`."""
        return f"{HOODIE if '/' in name else self.timeline_folder}/{name}"

    def planned_as(self, action: Action) -> Action:
        """The action by which a plan stands on the timeline, whose end is of `action`."""
        return self.clustering if action is Action.REPLACE_COMMIT else action

    def completed(self, instant: Instant, completion: str = "") -> Instant:
        """The completed state of an instant, as its file tells it.

        `completion`: as the decision that completes it fixed it. What is completed without one, as
        a clean is, has completed a millisecond after it began, so that whoever ends it, and
        whenever, makes one file.
        """
        known = (completion or next_instant_time(instant.time)) if self.tells_completions else ""
        return Instant(instant.time, instant.action, State.COMPLETED, known)

    def archive_folder(self, properties: Mapping[str, str]) -> str:
        """The folder of the archive, relative to the timeline's."""
        return properties.get(self.archive_key) or self.archive_default


def _in_words_of_version_6(_: Mapping[str, str]) -> None:
    """Payload classes tell how entries merge, see `model/table/merging.py`."""


LAYOUT_1 = Layout(
    versions=frozenset({6}),
    timeline_folder=HOODIE,
    archive=Archive.LOGS,
    archive_key="hoodie.archivelog.folder",
    archive_default="archived",
    tells_completions=False,
    partition_stats=False,
    logs_tell_writers=False,
    avro_commits=False,
    clustering=Action.REPLACE_COMMIT,
    log_marker=MarkerType.APPEND,
    colon_rule="0.15",
    streamer_key=STREAMER_KEY,
    merging=_in_words_of_version_6,
)
LAYOUT_2 = Layout(
    versions=frozenset({8, 9}),
    timeline_folder=f"{HOODIE}/timeline",
    archive=Archive.LSM,
    archive_key="hoodie.timeline.history.path",
    archive_default="history",
    tells_completions=True,
    partition_stats=True,
    logs_tell_writers=True,
    avro_commits=True,
    clustering=Action.CLUSTERING,
    log_marker=MarkerType.CREATE,
    colon_rule="1.x",
    streamer_key=STREAMER_KEY_V2,
    merging=later_merge,
)
_BY_VERSION = {version: layout for layout in (LAYOUT_1, LAYOUT_2) for version in layout.versions}
VERSIONS = tuple(sorted(_BY_VERSION))
DEFAULT_VERSION = 9
"""Of new tables."""

_LOGICAL_TYPES = frozenset({9})
"""Versions whose new columns may be of a type that Hudi 1.2 has of its own."""
_PAYLOADS = frozenset({6})
"""Versions whose tables store a payload class, and of which it tells how entries merge."""
MERGE_SETTINGS = (9,)
"""Versions whose properties may name several ordering fields, and say more of merging than a mode
and a class."""


def layout_of(version: int) -> Layout:
    """The layout of a table version that is read. Raises KeyError for another."""
    return _BY_VERSION[version]


def has_logical_types(version: int) -> bool:
    """Whether new columns of tables of this version are vectors and variants where Arrow's are.
    Tables of any version may have such columns from Hudi 1.2."""
    return version in _LOGICAL_TYPES


def has_merge_settings(version: int) -> bool:
    """Whether tables of this version may compare rows by several fields, in turn, and tell what a
    payload class does beside its mode."""
    return version in MERGE_SETTINGS


def merges_by_class(version: int) -> bool:
    """Whether tables of this version tell by a payload class how entries merge, and not by
    modes."""
    return version in _PAYLOADS


def fills_unavailable(ordering_fields: Sequence[str], kind: str, version: int | None) -> bool:
    """Whether a table that is made for Debezium's events keeps a large value that an event leaves
    alone; `version`: None for that of new tables.

    Events of PostgreSQL do; binlogs hold rows whole. In a merge-on-read table of version 6 Hudi's
    rules would take it from the base file, past newer ones in logs; for one of version 8 its
    releases have different rules.
    """
    own = payload_of(MergeMode.EVENT_TIME, PartialUpdates.FILL_UNAVAILABLE).ordering
    made = DEFAULT_VERSION if version is None else version
    return list(ordering_fields) == [own] and (has_merge_settings(made) or kind == TableType.COPY_ON_WRITE)


def known_version(text: str, table: str, base_path: str = "") -> int:
    """The table version that `hoodie.table.version` says. Raises UnsupportedTableError for one that
    is not read, with what to do."""
    version = whole(text)
    if version is not None and version in _BY_VERSION:
        return version
    older = version is not None and version < VERSIONS[0]
    step = (
        "a write of Apache Hudi 0.14 or 0.15 brings it to version 6"
        if older
        else "Hudi's procedures upgrade_table and downgrade_table bring it to one of these"
    )
    raise UnsupportedTableError(
        f"table {table!r} has table version {text}; this release reads and writes {_listed(VERSIONS)}: {step}",
        base_path=base_path,
    )


def written_version(asked: int | None) -> int:
    """The version of a new table, 9 unless another is asked for. Raises InvalidOptionError for one
    that is not written."""
    version = DEFAULT_VERSION if asked is None else asked
    if version not in VERSIONS:
        raise InvalidOptionError(
            f"there is no table version {asked!r} to write; this release writes {_listed(VERSIONS)}"
        )
    return version


def _listed(versions: tuple[int, ...]) -> str:
    texts = [str(version) for version in versions]
    whole = f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else texts[0]
    return f"version{'s' if len(texts) > 1 else ''} {whole}"
