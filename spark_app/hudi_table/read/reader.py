"""What every opened table can tell and give: schema, timeline, files, rows. `api.HudiTable` adds
writing.

A call imports what answers it, and with it pyarrow: who opens a table waits for nothing that it
does not ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.given import checked_calls
from hudi_table.model.table.cdc import Images
from hudi_table.model.table.config import IndexSpec
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.read.moments import EARLIEST, Moment, Span, instant_of
from hudi_table.read.output.show import key_values_html
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_table.read.changes.query import Changes
    from hudi_table.read.scan import Scan
    from hudi_table.read.tables import Row


@checked_calls
class TableReader:
    """The reading half of a table. `as_of`, an instant time of 17 digits, holds for every read that
    names none."""

    def __init__(self, context: TableContext, as_of: Moment | None = None) -> None:
        self.context = context
        self.as_of = None if as_of is None else instant_of(as_of, context.config.timezone)

    @property
    def name(self) -> str:
        """The table's name."""
        return self.context.config.name

    @property
    def base_path(self) -> str:
        """Where the table lies, as an absolute path or URI."""
        return self.context.base_path

    def schema(self, *, meta: bool = False) -> pa.Schema:
        """The Arrow schema of the table's columns, after Hudi's five meta columns if `meta`."""
        from hudi_table.read.schema import schema_as_of, with_meta

        found = with_relists(self.context, lambda: schema_as_of(self.context, load_timeline(self.context), self.as_of))
        return with_meta(found) if meta else found

    def timeline(self, *, archived: bool = False) -> pa.Table:
        """The active timeline, oldest first: instant, action, state, file, modified. `archived`:
        after what was archived."""
        from hudi_table.read.tables import TIMELINE_SCHEMA, archived_rows, as_table, timeline_rows

        def rows() -> list[Row]:
            timeline = self._timeline()
            before = archived_rows(self.context, timeline)[0] if archived else []
            return [*self._until(before), *timeline_rows(timeline)]

        return as_table(with_relists(self.context, rows), TIMELINE_SCHEMA)

    def history(self, limit: int | None = None, *, archived: bool = False) -> pa.Table:
        """The completed writes (the newest `limit`), newest first: instant, `moment` (what `since`
        and `until` of changes take for it), action, operation, and counts of files, rows and bytes.
        `archived`: those of the archived timeline too."""
        from hudi_table.read.tables import HISTORY_SCHEMA, archived_rows, as_table, history_rows

        def rows() -> list[Row]:
            timeline = self._timeline()
            active = history_rows(self.context, timeline, limit)
            if not archived or (limit is not None and len(active) >= limit):
                return active
            return [*active, *self._until(archived_rows(self.context, timeline)[1])][:limit]

        return as_table(with_relists(self.context, rows), HISTORY_SCHEMA)

    def _until(self, rows: list[Row]) -> list[Row]:
        limit = None if self.as_of is None else comparable_time(self.as_of)
        return rows if limit is None else [row for row in rows if comparable_time(row["instant"]) <= limit]

    def files(self) -> pa.Table:
        """The visible file slices: partition, file_id, instant, latest, base_file, size_bytes,
        log_files."""
        from hudi_table.read.tables import SLICE_SCHEMA, as_table, slice_rows

        ctx = self.context
        rows = with_relists(ctx, lambda: slice_rows(FileSystemView(ctx, load_timeline(ctx), self.as_of)))
        return as_table(rows, SLICE_SCHEMA)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: object = None,  # noqa: A002 - the name that Arrow's own readers use
        *,
        as_of: Moment | None = None,
        query: str = "snapshot",
        limit: int | None = None,
        meta: bool = False,
        since: Moment | None = None,
        until: Moment | None = None,
        full_scan: bool = False,
        max_memory: int = DEFAULT_MEMORY,
    ) -> Scan:
        """A lazy scan of the newest completed snapshot, or of the one at `as_of`.

        `query`: ``"snapshot"``; ``"read_optimized"``, the base files of a merge-on-read table
        alone; ``"incremental"``, the rows that changed after `since` and up to `until` (default:
        all of the timeline) in their state at `until`. Where the timeline of that range is
        archived, `full_scan` reads every file for them.

        `columns`: names in the wanted order, default all data columns; `meta` adds Hudi's five meta
        columns in front, which can also be named. `filter`: SQL-like text (``"city = 'sf' and ts >
        5"``), tuples as pyarrow takes them, or a pyarrow expression. `limit`: at most that many
        rows. `max_memory`: bytes that merging logs may take; what is more waits on disk, and rows
        then leave the order of their base files. Raises InvalidOptionError for a malformed
        argument; names and types are checked when the scan first reads.
        """
        from hudi_table.read.filter.predicates import Filter
        from hudi_table.read.plan import Request
        from hudi_table.read.scan import Scan

        self._check_names(columns, limit)
        if max_memory < 1:
            raise InvalidOptionError(f"max_memory is {max_memory}; give bytes, at least 1")
        at = self.as_of if as_of is None else instant_of(as_of, self.context.config.timezone)
        names = None if columns is None else tuple(columns)
        span = self._span(query, at, since, until, full_scan)
        if span is not None:
            at = span.until or at
        return Scan(self.context, Request(names, Filter.of(filter), at, query, limit, meta, span, max_memory))

    def changes(
        self,
        since: Moment | None = None,
        until: Moment | None = None,
        *,
        images: str = "data_before_after",
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        full_scan: bool = False,
    ) -> Changes:
        """What every commit after `since` and up to `until` (default: all of the timeline) changed,
        lazily.

        `images`: ``"data_before_after"``, ``"data_before"`` or ``"op_key_only"``; the latter two
        give `op`, `record_key` and perhaps `before`. `columns`: which columns the images have. The
        table need not log change data: what its file slices tell is enough. Where commits are
        archived or their files cleaned ExpiredError names the instant; `full_scan` then begins with
        all rows of the first commit whose rows are known, as inserts of it. Raises
        InvalidOptionError for a malformed argument, and for a table without meta columns when it
        first reads.
        """
        from hudi_table.read.changes.plan import ChangesRequest
        from hudi_table.read.changes.query import Changes

        if images not in set(Images):
            raise InvalidOptionError(f"images is {images!r}: use one of {', '.join(Images)}")
        self._check_names(columns, limit)
        span = self._span("incremental", self.as_of, since, until, full_scan)
        assert span is not None
        names = None if columns is None else tuple(columns)
        return Changes(self.context, ChangesRequest(span, Images(images), names, limit))

    @staticmethod
    def _check_names(columns: Sequence[str] | None, limit: int | None) -> None:
        if isinstance(columns, str):
            raise InvalidOptionError(f"columns is the text {columns!r}: give a list of names")
        if limit is not None and limit < 0:
            raise InvalidOptionError(f"limit is {limit}: give 0 or more rows")
        if columns is not None and len(set(columns)) < len(columns):
            raise InvalidOptionError(f"columns {list(columns)} name a column twice")

    def _span(
        self, query: str, at: str | None, since: Moment | None, until: Moment | None, full_scan: bool
    ) -> Span | None:
        from hudi_table.read.support import check_query

        check_query(query, self.context.base_path)
        if query != "incremental":
            if since is not None or until is not None or full_scan:
                raise InvalidOptionError(
                    f"since, until and full_scan belong to query='incremental', not to {query!r}; leave them out"
                )
            return None
        zone = self.context.config.timezone
        begin = "" if since is None or since == EARLIEST else instant_of(since, zone)
        end = (at or "") if until is None else instant_of(until, zone)
        return Span(begin, end, full_scan)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A new Arrow stream of all rows, data columns only."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema of the data columns as an Arrow capsule."""
        return self.schema().__arrow_c_schema__()

    def __repr__(self) -> str:
        config = self.context.config
        parts = [
            repr(self.base_path),
            config.type.value,
            f"record_key={list(config.record_key)}",
            f"partition_by={list(config.partition_fields)}" if config.partition_by else "",
            f"as_of={self.as_of!r}" if self.as_of else "",
        ]
        return f"{type(self).__name__}({', '.join(part for part in parts if part)})"

    def _repr_html_(self) -> str:
        config, timeline = self.context.config, with_relists(self.context, self._timeline)
        columns = ", ".join(f"{f.name} {f.type}" for f in self.schema())
        last = timeline.last_commit
        facts = [
            ("location", self.base_path),
            ("type", config.type.value),
            ("record key", ", ".join(config.record_key) or "none"),
            ("partition by", ", ".join(config.partition_fields) or "not partitioned"),
            ("index", index_text(config.index)),
            ("newest commit", last.time if last else "none"),
            ("commits", str(len(timeline.commits))),
            ("columns", columns),
        ]
        return key_values_html(f"HudiTable {self.name}", facts)

    def _timeline(self) -> Timeline:
        timeline = load_timeline(self.context)
        return timeline if self.as_of is None else timeline.until(self.as_of)

    def _check_writable(self) -> None:
        if self.as_of is not None:
            raise InvalidRequestError("the table was opened as of a past moment; open it without as_of to write")


def index_text(index: IndexSpec | None) -> str:
    """An index in words."""
    if index is None:
        return "not recorded"
    if index.class_name:
        return f"{index.type.value}, {index.class_name}"
    return f"{index.type.value}, {counted(index.buckets, 'bucket')}" if index.buckets else index.type.value
