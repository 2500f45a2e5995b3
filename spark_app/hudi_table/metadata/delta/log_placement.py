"""Where a delta's logs go: the base instant and the version of each file group's next log.

As in the data table (`docs/explanation/commit-protocol.md` step 4) the version is one more than
that of the committed logs of earlier instants, and logs of one version apply in the order of their
instants. While a compaction of a group is planned, logs carry its instant. Where logs tell their
writers a log carries the delta's own, and when that completes says to which slice it belongs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hudi_table.errors import CorruptTableError
from hudi_table.metadata.record_index.shards import is_there, shard_counts
from hudi_table.metadata.table import MetadataTable
from hudi_table.model.metadata_table import BEGUN_SHARD, AnyPartition, parse_hfile
from hudi_table.model.names import LogFileName, join, log_write_token, parse_log_file
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.view.file_groups import LogFile, next_log_version


@dataclass(frozen=True, slots=True)
class Place:
    """The next log of a file group, and what lies there: the base file's name ('' without one) and
    the names of the slice's logs."""

    partition: str
    name: LogFileName
    base: str
    logs: tuple[str, ...]

    @property
    def path(self) -> str:
        """Path of the log, relative to the metadata table's folder."""
        return join(self.partition, str(self.name))


class Places:
    """The places of one instant's logs in one listing."""

    def __init__(self, table: MetadataTable, time: str) -> None:
        self._table, self._time = table, time
        self._pending = table.compacting()
        self._listed = _by_group(table)
        self._shards: dict[str, int] | None = None

    def groups(self, partition: AnyPartition, of: str | None = None) -> tuple[int, frozenset[int]]:
        """How many file groups a partition has, or a record index by partition has `of` a data
        partition, also where they are being built; and the numbers of those that the delta has to
        begin: of a new data partition, all of them. Raises CorruptTableError."""
        if of is None:
            return max(1, sum(found == partition for found, _ in self._listed)), frozenset()
        if self._shards is None:
            found = self._listed.items()
            counted = self._table.counted
            ids = [file_id for (_, file_id), (logs, bases) in found if is_there(logs, counted, based=bool(bases))]
            self._shards = shard_counts(ids, self._table.ctx.base_path)
        count = self._shards.get(of, 0)
        begun = self._table.partitions.begun_shards
        return (count, frozenset()) if count else (begun, frozenset(range(begun)))

    def of(self, partition: str, file_id: str, *, begins: bool = False) -> Place:
        """Where the next log of a group goes. Raises CorruptTableError if nothing of the group is
        there, unless the log `begins` it."""
        logs, bases = self._listed.get((partition, file_id), ([], {}))
        instants = {log.name.base_instant for log in logs} | set(bases)
        planned = self._pending.get((partition, file_id))
        if planned is None and not instants and begins:
            instants = {BEGUN_SHARD}
        token = log_write_token(self._time, 0)
        if planned is None and not instants:
            raise CorruptTableError(
                f"the metadata table has no file group {file_id} of partition {partition!r}; drop it and build it again",
                base_path=self._table.ctx.base_path,
            )
        if self._table.ctx.layout.logs_tell_writers:
            return Place(partition, LogFileName(file_id, self._time, 1, token), "", ())
        group = self._table.group(partition, file_id)
        base = planned or (group.latest.instant if group else max(instants, key=comparable_time))
        slice_logs = [log for log in logs if log.name.base_instant == base]
        name = LogFileName(
            file_id, base, next_log_version(slice_logs, self._time, self._table.counted.__contains__), token
        )
        names = tuple(str(log.name) for log in sorted(slice_logs, key=lambda log: log.sort_key) if log.name != name)
        return Place(partition, name, bases.get(base, ""), names)


def own_logs(table: MetadataTable, time: str) -> list[LogFile]:
    """The logs that the instant has written, in any slice."""
    return [log for logs, _ in _by_group(table).values() for log in logs if log.instant == time]


def _by_group(table: MetadataTable) -> Mapping[tuple[str, str], tuple[list[LogFile], dict[str, str]]]:
    """By (partition, file id) the logs, and the base files' names by their instants."""
    found: dict[tuple[str, str], tuple[list[LogFile], dict[str, str]]] = {}
    for path, size in _data_files(table):
        partition, _, name = path.rpartition("/")
        log, base = parse_log_file(name), parse_hfile(name)
        if log is not None:
            found.setdefault((partition, log.file_id), ([], {}))[0].append(LogFile(path, size, log))
        elif base is not None:
            found.setdefault((partition, base.file_id), ([], {}))[1][base.instant] = name
    return found


def _data_files(table: MetadataTable) -> Iterable[tuple[str, int]]:
    return ((info.path, info.size) for info in table.files if not info.path.startswith("."))
