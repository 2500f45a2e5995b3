"""Short calls of an opened table for what its services do, and for what is no service: index,
properties, quarantine.

Each call of a service goes through `table.services`, which has the other verbs, too. The services
are imported when one is first asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hudi_table.errors import InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.given import checked_calls
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.service.findings import Finding
from hudi_table.model.service.services import ServicePlan, ServiceResult
from hudi_table.model.table.config import IndexType
from hudi_table.read.reader import TableReader
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.properties import mend_properties
from hudi_table.table.view.savepoints import Savepoint

if TYPE_CHECKING:
    from hudi_table.services.doctor.quarantine import Quarantine
    from hudi_table.services.registry import Services

Options = Mapping[str, str]


@checked_calls
class ShortCalls(TableReader):
    """A table with its services; `api.HudiTable` is one."""

    @property
    def services(self) -> Services:
        """The table services by their nouns, such as `services.clustering`. Raises
        InvalidRequestError for a table of a past moment."""
        from hudi_table.services.registry import Services

        self._check_writable()
        return Services(self.context)

    def schedule_compaction(self, options: Options | None = None, *, force: bool = False) -> ServicePlan | None:
        """Publish the plan of a compaction if one is due by the options' trigger (`force`: in any
        case); None if there is nothing to do. Writers go on; whoever executes it, `run_compaction`
        here or Hudi, may do so at any time."""
        return self.services.compaction(options, force=force).schedule()

    def run_compaction(
        self,
        instant: str,
        *,
        options: Options | None = None,
        max_memory: int = DEFAULT_MEMORY,
        engine: Engine | None = None,
        progress: ProgressFunction | None = None,
    ) -> ServiceResult:
        """Execute the plan of an instant, also one of Hudi's. Running it again, or by two at once,
        is safe."""
        service = self.services.compaction(options, max_memory=max_memory)
        return service.execute(instant, engine=engine, progress=progress)

    def compact(
        self,
        options: Options | None = None,
        *,
        force: bool = False,
        max_memory: int = DEFAULT_MEMORY,
        engine: Engine | None = None,
        progress: ProgressFunction | None = None,
    ) -> list[ServiceResult]:
        """Execute the compactions that wait, oldest first, and then a new plan if one is due
        (`force`: in any case)."""
        service = self.services.compaction(options, force=force, max_memory=max_memory)
        return service.run(engine=engine, progress=progress)

    def compact_logs(
        self,
        options: Options | None = None,
        *,
        force: bool = False,
        max_memory: int = DEFAULT_MEMORY,
        engine: Engine | None = None,
        progress: ProgressFunction | None = None,
    ) -> list[ServiceResult]:
        """Log compaction, as `compact`: slices with many logs get one log that stands for them. See
        `services.log_compaction`."""
        service = self.services.log_compaction(options, force=force, max_memory=max_memory)
        return service.run(engine=engine, progress=progress)

    def preview_clustering(self, options: Options | None = None, *, force: bool = False) -> ServicePlan | None:
        """What `schedule_clustering` would plan now; nothing is written."""
        return self.services.clustering(options, force=force).plan()

    def schedule_clustering(self, options: Options | None = None, *, force: bool = False) -> ServicePlan | None:
        """Publish the plan of a clustering if `hoodie.clustering.async.max.commits` are there since
        the last one (`force`: in any case); None if there is nothing to do. Until it is executed,
        here or by Hudi, writes to its file groups are refused."""
        return self.services.clustering(options, force=force).schedule()

    def pending_clusterings(self) -> list[str]:
        """Instants of the plans that wait for their execution, oldest first."""
        return self.services.clustering.pending()

    def run_clustering(
        self,
        instant: str,
        *,
        options: Options | None = None,
        max_memory: int = DEFAULT_MEMORY,
        engine: Engine | None = None,
        progress: ProgressFunction | None = None,
    ) -> ServiceResult:
        """Execute the plan of an instant, also one of Hudi's. Running it again, or by two at once,
        is safe."""
        service = self.services.clustering(options, max_memory=max_memory)
        return service.execute(instant, engine=engine, progress=progress)

    def cluster(
        self,
        options: Options | None = None,
        *,
        force: bool = False,
        max_memory: int = DEFAULT_MEMORY,
        engine: Engine | None = None,
        progress: ProgressFunction | None = None,
    ) -> list[ServiceResult]:
        """Execute the clusterings that wait, oldest first, and then a new plan if one is due
        (`force`: in any case)."""
        service = self.services.clustering(options, force=force, max_memory=max_memory)
        return service.run(engine=engine, progress=progress)

    def plan_resize(self, buckets: int, options: Options | None = None) -> ServicePlan:
        """A dry run of `resize_buckets`: file groups and bytes, by partition. Its digest approves
        exactly that plan. Raises InvalidRequestError for a table without a bucket index, the number
        that it has already, and beside another pending plan, InvalidOptionError for options that
        name another number."""
        planned = self.services.resize(buckets, options).plan()
        if planned is None:
            raise self._resized(buckets)
        return planned

    def resize_buckets(
        self,
        buckets: int,
        *,
        plan: str = "",
        options: Options | None = None,
        max_memory: int = DEFAULT_MEMORY,
        engine: Engine | None = None,
    ) -> ServiceResult:
        """Rewrite a table with a bucket index into so many buckets, by one commit; `plan`: the
        approved one of that digest. A resize that was planned and not executed is executed first,
        and is all if it is the same. Until it commits, writes are refused. Raises as
        `plan_resize`."""
        done = self.services.resize(buckets, options, plan=plan, max_memory=max_memory).run(engine=engine)
        if not done:
            raise self._resized(buckets)
        return done[-1]

    def _resized(self, buckets: int) -> InvalidRequestError:
        return InvalidRequestError(
            f"table {self.context.config.name!r} has {counted(buckets, 'bucket')} already; give another number",
            base_path=self.context.base_path,
        )

    def pending_resize(self) -> str | None:
        """The instant of a resize that was planned and waits for its execution."""
        return next(iter(self.services.resize.pending()), None)

    def plan_clean(self, options: Options | None = None, *, force: bool = True) -> ServicePlan | None:
        """A dry run of `clean`: files and bytes per partition, and what holds files back. Its
        digest approves exactly that plan. None if there is nothing to delete."""
        return self.services.cleaning(options, force=force).plan()

    def schedule_clean(
        self, options: Options | None = None, *, force: bool = False, plan: str = ""
    ) -> ServicePlan | None:
        """Publish a plan, which `run_clean` here or Hudi executes: what is due (`force`: in any
        case), or the approved one of the digest `plan`. None if there is nothing to delete. Raises
        WriteConflictError if an approved plan no longer holds."""
        return self.services.cleaning(options, force=force, plan=plan).schedule()

    def run_clean(self, instant: str, *, engine: Engine | None = None) -> ServiceResult:
        """Execute the plan of an instant, also one of Hudi's. Running it again, or by two at once,
        is safe."""
        return self.services.cleaning.execute(instant, engine=engine)

    def clean(
        self, options: Options | None = None, *, force: bool = False, engine: Engine | None = None
    ) -> list[ServiceResult]:
        """Finish cleans that wait, then delete what no retained reader, savepoint or pending plan
        needs, if it is due by `hoodie.clean.trigger.max.commits` (`force`: in any case). Nothing to
        do: an empty list."""
        return self.services.cleaning(options, force=force).run(engine=engine)

    def archive(
        self, options: Options | None = None, *, force: bool = False, dry_run: bool = False
    ) -> ServiceResult | ServicePlan | None:
        """Move the oldest instants to the archived timeline, as `hoodie.keep.min.commits` and
        `hoodie.keep.max.commits` say (`force`: down to the former in any case), and trim the
        decision chain. `dry_run`: only say what would leave. None if nothing is due. See
        `docs/explanation/archiving.md`."""
        service = self.services.archiving(options, force=force)
        return service.plan() if dry_run else next(iter(service.run()), None)

    def build_metadata(self, indexes: Iterable[str] = (), options: Options | None = None) -> bool:
        """Build Hudi's metadata table, with the partitions `indexes` (`column_stats`,
        `bloom_filters`, `record_index`, `secondary_index_<name>=<column>`,
        `expr_index_<name>=<function>(<column>)`), or finish a building that was begun, while
        writers go on. Whether there was anything to do. Every later write keeps it.

        `options`: those of Hudi for the file groups of a record index. Raises InvalidDataError
        where a key is in two places, so that no record index can be. See
        `docs/explanation/metadata-table.md`."""
        return bool(self.services.indexing(indexes, options).run())

    def create_index(self, name: str, column: str, options: Options | None = None) -> bool:
        """Build an index of a secondary key, the values of `column`, while writers go on. Whether
        there was anything to do. Every later write keeps it, and filters on the column by `=` and
        `in` open the files alone that have such rows.

        Tables of versions 8 and 9 with a record index have it, of columns that are strings,
        booleans, ints, bigints or timestamps, on version 9 dates too. `options`: as in
        `build_metadata`.

        Of an expression, as `upper(name)` or `date_add(day) days=3`, the index holds the bounds in
        each file, or a bloom filter where `using bloom_filters` follows. Apache Hudi's filters ask
        it, and scans of ours. Beside it Hudi finds no row where a query filters the plain column by
        `=`: see `docs/explanation/metadata-table.md`.

        Raises InvalidRequestError, UnsupportedTableError."""
        from hudi_table.model.defined_indexes import is_expression_asked
        from hudi_table.services.metadata.defined import partition_of

        partition = partition_of(name, expression=is_expression_asked(column))
        return self.build_metadata([f"{partition}={column}"], options)

    def drop_index(self, name: str) -> bool:
        """Drop the index of this name, of a secondary key or an expression. Whether there was
        one."""
        from hudi_table.services.metadata.defined import drop_indexes

        self._check_writable()
        return bool(drop_indexes(self.context, [name]))

    def drop_metadata(self) -> bool:
        """Switch the metadata table off and delete it. Whether there was one."""
        from hudi_table.services.metadata.building import drop

        self._check_writable()
        return drop(self.context)

    def expired_partitions(self, options: Options) -> ServicePlan | None:
        """A dry run of `drop_expired_partitions`."""
        return self.services.partition_ttl(options).plan()

    def drop_expired_partitions(self, options: Options, *, engine: Engine | None = None) -> ServiceResult | None:
        """Drop the partitions that have outlived `hoodie.partition.ttl.strategy.days.retain`, by
        one commit; None if none has."""
        return next(iter(self.services.partition_ttl(options).run(engine=engine)), None)

    def savepoint(self, instant: str = "", *, comment: str = "") -> ServiceResult:
        """Keep the commit of `instant`, by default the newest, from cleans. Raises ExpiredError if
        its files are gone."""
        return self.services.savepoint(instant, comment=comment).run()[0]

    def savepoints(self) -> list[Savepoint]:
        """Every savepoint, oldest first."""
        from hudi_table.services.savepoints import list_savepoints

        return list_savepoints(self.context)

    def delete_savepoint(self, instant: str, *, writers_stopped: bool = False) -> None:
        """Let go of a savepoint. Raises InvalidRequestError if there is none, or if it is younger
        than the quarantine time and not all writers are said to be stopped."""
        from hudi_table.services.savepoints import delete_savepoint

        self._check_writable()
        delete_savepoint(self.context, instant, writers_stopped=writers_stopped)

    def rollback(self, instant: str, *, writers_stopped: bool = False, lost: Iterable[str] = ()) -> ServiceResult:
        """Take the newest write back, or a failed one that is pending. `writers_stopped`: all
        processes that write the table have ended; without that, a write can be taken back once it
        is as old as the quarantine time (an hour).

        `lost`: paths of files that a pending compaction, `instant`, names and that are lost for
        good. Their rows are given up: the compaction is executed without them, at once if
        `writers_stopped`, else by whoever compacts after the quarantine time. Raises
        InvalidRequestError if it is not the newest write, a savepoint or pending plan needs it, or
        what it superseded was cleaned.
        """
        return self.services.rollback(instant, writers_stopped=writers_stopped, lost=lost).run()[0]

    def restore(self, savepoint: str, *, writers_stopped: bool = False) -> ServiceResult:
        """Take back everything that was written after a savepoint. `writers_stopped` as in
        `rollback`.

        Raises InvalidRequestError if there is no such savepoint, a newer one stands, or a file of
        it is gone.
        """
        return self.services.restore(savepoint, writers_stopped=writers_stopped).run()[0]

    def doctor(
        self,
        *,
        keys: bool = False,
        data: bool = False,
        max_memory: int = DEFAULT_MEMORY,
        progress: ProgressFunction | None = None,
    ) -> tuple[Finding, ...]:
        """What is wrong with the table's files and timeline, the worst first; nothing is changed,
        and writers may go on.

        `keys`: every key is read too, to find those that come twice. `data`: every page and block
        of the newest slices is read, to find damage that sizes and footers do not show. Both take
        about `max_memory` bytes. The service that also puts aside what is found is
        `services.repair`.
        """
        from hudi_table.services.doctor.run import examine

        return examine(self.context, keys=keys, data=data, max_memory=max_memory, progress=progress)

    def quarantine(self, findings: Iterable[Finding]) -> Quarantine | None:
        """Move the orphan and invalid files among the findings that no reader uses to
        `.hoodie/.quarantine/<time>/`; None if there is none. Nothing is deleted: `put_back` moves
        them back."""
        from hudi_table.services.doctor.quarantine import quarantine

        self._check_writable()
        return quarantine(self.context, findings)

    def put_back(self, time: str) -> Quarantine:
        """Move the files of a quarantine back to where they lay. Raises InvalidRequestError."""
        from hudi_table.services.doctor.quarantine import put_back

        self._check_writable()
        return put_back(self.context, time)

    def mend(self) -> tuple[str, ...]:
        """Put the properties back that another engine has dropped or changed; returns their keys.
        See `docs/how-to/repair.md`."""
        self._check_writable()
        return mend_properties(self.context)

    def use_index(self, index: str) -> None:
        """Look keys up by `"Bloom"` or `"PartitionedRecordIndex"` instead of `"Simple"`, by
        `"GlobalBloom"`, `"RecordIndex"` or `"KeyState"` instead of `"GlobalSimple"`, or the other
        way round. Nothing is rewritten; files get their filters as they are. Raises
        InvalidRequestError for any other change, and of a record index whose keys stay."""
        from hudi_table.services.index.change import change_lookup

        self._check_writable()
        try:
            wanted = IndexType(index)
        except ValueError:
            raise InvalidRequestError(f"there is no index {index!r}; use one of {', '.join(IndexType)}") from None
        change_lookup(self.context, wanted)
