"""What an opened table offers to keep its past in order: cleaning, archiving, savepoints, going back, the doctor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_table.errors import InvalidRequestError
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.service.findings import Finding
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult
from hudi_table.model.table.config import IndexType
from hudi_table.read.reader import TableReader
from hudi_table.services.archiving.execute import archive
from hudi_table.services.archiving.execute import preview as preview_archiving
from hudi_table.services.asked import check_asked
from hudi_table.services.cleaning import ttl
from hudi_table.services.cleaning.execute import run_clean
from hudi_table.services.cleaning.inline import clean
from hudi_table.services.cleaning.service import SERVICE
from hudi_table.services.doctor.quarantine import Quarantine, put_back, quarantine
from hudi_table.services.doctor.run import examine
from hudi_table.services.index.change import change_lookup
from hudi_table.services.metadata.building import build, drop
from hudi_table.services.restoring.run import restore, rollback
from hudi_table.services.savepoints import create_savepoint, delete_savepoint, list_savepoints
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.properties import mend_properties
from hudi_table.table.view.savepoints import Savepoint
from hudi_table.write.operations import DEFAULT_MEMORY, CommitResult


class Upkeep(TableReader):
    """A table whose past can be let go and kept; `api.HudiTable` is one."""

    def plan_clean(self, options: Mapping[str, str] | None = None, *, force: bool = True) -> ServicePlan | None:
        """A dry run of `clean`: files and bytes per partition, and what holds files back. Its digest approves exactly that
        plan. None if there is nothing to delete."""
        check_asked(self.context, options)
        return SERVICE.preview(self.context, ServiceRequest(options or {}, force))

    def schedule_clean(
        self, options: Mapping[str, str] | None = None, *, force: bool = False, plan: str = ""
    ) -> ServicePlan | None:
        """Publish a plan, which `run_clean` here or Hudi executes: what is due (`force`: in any case), or the approved one of
        the digest `plan`. None if there is nothing to delete. Raises WriteConflictError if an approved plan no longer holds."""
        self._check_writable()
        check_asked(self.context, options)
        return SERVICE.schedule(self.context, ServiceRequest(options or {}, force, plan))

    def run_clean(self, instant: str, *, engine: Engine | None = None) -> ServiceResult:
        """Execute the plan of an instant, also one of Hudi's. Running it again, or by two at once, is safe."""
        self._check_writable()
        return run_clean(self.context, instant, engine or LocalEngine())

    def clean(
        self, options: Mapping[str, str] | None = None, *, force: bool = False, engine: Engine | None = None
    ) -> list[ServiceResult]:
        """Finish cleans that wait, then delete what no retained reader, savepoint or pending plan needs, if it is due by
        `hoodie.clean.trigger.max.commits` (`force`: in any case). Nothing to do: an empty list."""
        self._check_writable()
        check_asked(self.context, options)
        return clean(self.context, options or {}, engine or LocalEngine(), force=force)

    def use_index(self, index: str) -> None:
        """Look keys up by `"Bloom"` or `"PartitionedRecordIndex"` instead of `"Simple"`, by `"GlobalBloom"` or `"RecordIndex"` instead of
        `"GlobalSimple"`, or the other way round. Nothing is rewritten; files get their filters as they are. Raises InvalidRequestError for any other change."""
        self._check_writable()
        try:
            wanted = IndexType(index)
        except ValueError:
            raise InvalidRequestError(f"there is no index {index!r}; use one of {', '.join(IndexType)}") from None
        change_lookup(self.context, wanted)

    def archive(
        self, options: Mapping[str, str] | None = None, *, force: bool = False, dry_run: bool = False
    ) -> ServiceResult | ServicePlan | None:
        """Move the oldest instants to the archived timeline, as `hoodie.keep.min.commits` and `hoodie.keep.max.commits` say
        (`force`: down to the former in any case), and trim the decision chain. `dry_run`: only say what would leave. None if
        nothing is due. See `docs/explanation/archiving.md`."""
        self._check_writable()
        check_asked(self.context, options)
        return (preview_archiving if dry_run else archive)(self.context, options, force=force)

    def build_metadata(self, indexes: Iterable[str] = (), options: Mapping[str, str] | None = None) -> bool:
        """Build Hudi's metadata table, with the partitions `indexes` (`column_stats`, `bloom_filters`, `record_index`), or finish a
        building that was begun, while writers go on. Whether there was anything to do. Every later write keeps it.

        `options`: those of Hudi for the file groups of a record index. Raises InvalidDataError where a key is in two places, so that
        no record index can be. See `docs/explanation/metadata-table.md`."""
        self._check_writable()
        check_asked(self.context, options)
        return build(self.context, indexes, options)

    def drop_metadata(self) -> bool:
        """Switch the metadata table off and delete it. Whether there was one."""
        self._check_writable()
        return drop(self.context)

    def savepoint(self, instant: str = "", *, comment: str = "") -> ServiceResult:
        """Keep the commit of `instant`, by default the newest, from cleans. Raises ExpiredError if its files are gone."""
        self._check_writable()
        return create_savepoint(self.context, instant, comment=comment)

    def savepoints(self) -> list[Savepoint]:
        """Every savepoint, oldest first."""
        return list_savepoints(self.context)

    def delete_savepoint(self, instant: str, *, writers_stopped: bool = False) -> None:
        """Let go of a savepoint. Raises InvalidRequestError if there is none, or if it is younger than the quarantine time and not
        all writers are said to be stopped."""
        self._check_writable()
        delete_savepoint(self.context, instant, writers_stopped=writers_stopped)

    def expired_partitions(self, options: Mapping[str, str]) -> ServicePlan | None:
        """A dry run of `drop_expired_partitions`."""
        check_asked(self.context, options)
        return ttl.SERVICE.preview(self.context, ServiceRequest(options))

    def drop_expired_partitions(
        self, options: Mapping[str, str], *, engine: Engine | None = None
    ) -> CommitResult | None:
        """Drop the partitions that have outlived `hoodie.partition.ttl.strategy.days.retain`, by one commit; None if none has."""
        self._check_writable()
        check_asked(self.context, options)
        return ttl.drop_expired(self.context, options, engine or LocalEngine())

    def rollback(self, instant: str, *, writers_stopped: bool = False, lost: Iterable[str] = ()) -> ServiceResult:
        """Take the newest write back, or a failed one that is pending. `writers_stopped`: all processes that write the table have
        ended; without that, a write can be taken back once it is as old as the quarantine time (an hour).

        `lost`: paths of files that a pending compaction, `instant`, names and that are lost for good. Their rows are given up: the
        compaction is executed without them, at once if `writers_stopped`, else by whoever compacts after the quarantine time. Raises InvalidRequestError if it is not the newest write, a savepoint or pending plan needs it, or what it superseded was cleaned.
        """
        self._check_writable()
        return rollback(self.context, instant, writers_stopped=writers_stopped, lost=lost)

    def restore(self, savepoint: str, *, writers_stopped: bool = False) -> ServiceResult:
        """Take back everything that was written after a savepoint. `writers_stopped` as in `rollback`.

        Raises InvalidRequestError if there is no such savepoint, a newer one stands, or a file of it is gone.
        """
        self._check_writable()
        return restore(self.context, savepoint, writers_stopped=writers_stopped)

    def doctor(
        self, *, keys: bool = False, max_memory: int = DEFAULT_MEMORY, progress: ProgressFunction | None = None
    ) -> tuple[Finding, ...]:
        """What is wrong with the table's files and timeline, the worst first; nothing is changed, and writers may go on.

        `keys`: every key is read too, to find those that come twice, in about `max_memory` bytes.
        """
        return examine(self.context, keys=keys, max_memory=max_memory, progress=progress)

    def mend(self) -> tuple[str, ...]:
        """Put the properties back that another engine has dropped or changed; returns their keys. See `docs/how-to/repair.md`."""
        self._check_writable()
        return mend_properties(self.context)

    def quarantine(self, findings: Iterable[Finding]) -> Quarantine | None:
        """Move the orphan and invalid files among the findings that no reader uses to `.hoodie/.quarantine/<time>/`; None if there is
        none. Nothing is deleted: `put_back` moves them back."""
        self._check_writable()
        return quarantine(self.context, findings)

    def put_back(self, time: str) -> Quarantine:
        """Move the files of a quarantine back to where they lay. Raises InvalidRequestError."""
        self._check_writable()
        return put_back(self.context, time)
