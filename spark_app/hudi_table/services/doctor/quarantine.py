"""Putting files aside that no reader uses: moved to `.hoodie/.quarantine/<time>/<same path>`, with
a manifest; and back.

Fact (measured on Hudi 0.15.0 and 1.1.1): Hudi passes over the folder, as over every other below
`.hoodie/` that it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from hudi_table.errors import CorruptTableError, InvalidRequestError, ObjectNotFoundError, UnavailableError
from hudi_table.model.json_text import parse_json
from hudi_table.model.names import QUARANTINE, join
from hudi_table.model.service.findings import QUARANTINED_CHECKS, Finding
from hudi_table.services.doctor.examined import Examined
from hudi_table.services.doctor.files import invalid_footers, orphan_files
from hudi_table.table.store import retry
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import draw_instant
from hudi_table.table.timeline.relisting import relists

MANIFEST = "manifest.json"
_COPY_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """One file put aside: where it lay, relative to the base path, its bytes, and what was
    found."""

    path: str
    size: int
    check: str
    message: str


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Files put aside together; `time` names their folder."""

    time: str
    files: tuple[QuarantinedFile, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(item.size for item in self.files)


def movable(ctx: TableContext, findings: Iterable[Finding]) -> tuple[QuarantinedFile, ...]:
    """Which of the findings' files can be put aside: orphans and invalid files that, looked at
    again, no visible slice uses."""
    wanted = {(f.check, f.path) for f in findings if f.check in QUARANTINED_CHECKS}
    if not wanted:
        return ()
    seen = Examined.of(ctx)
    again = [f for check in (orphan_files, invalid_footers) for f in check(seen) if (f.check, f.path) in wanted]
    # A file can be both; it is moved once.
    found = {f.path: QuarantinedFile(f.path, seen.files[f.path].size, f.check, f.message) for f in reversed(again)}
    return tuple(found[path] for path in sorted(found) if not seen.is_used(path))


@relists
def quarantine(ctx: TableContext, findings: Iterable[Finding]) -> Quarantine | None:
    """Move what `movable` tells: each file is copied, its size compared, then it is deleted. None
    if there is nothing to move.

    The manifest is written first, so whatever a crash leaves can be put back. Raises
    UnavailableError if a copy is not whole.
    """
    files = movable(ctx, findings)
    if not files:
        return None
    made = Quarantine(draw_instant(ctx, max(_times(ctx), default="")), files)
    folder = join(QUARANTINE, made.time)
    document = {"time": made.time, "files": [asdict(item) for item in files]}
    retry.put(ctx.storage, f"{folder}/{MANIFEST}", json.dumps(document, indent=2, ensure_ascii=False).encode())
    for item in files:
        _move(ctx, item.path, f"{folder}/{item.path}", item.size)
    return made


def quarantines(ctx: TableContext) -> list[Quarantine]:
    """What has been put aside, oldest first. Raises CorruptTableError for a manifest that cannot be
    read."""
    return [_manifest(ctx, time) for time in _times(ctx)]


@relists
def put_back(ctx: TableContext, time: str) -> Quarantine:
    """Move the files of a quarantine back to where they lay. Raises InvalidRequestError if there is
    none of that time, or another file lies there now."""
    if time not in _times(ctx):
        raise InvalidRequestError(
            f"nothing was put aside at {time!r}; there is {', '.join(_times(ctx)) or 'no quarantine'}",
            base_path=ctx.base_path,
        )
    made = _manifest(ctx, time)
    folder = join(QUARANTINE, time)
    for item in made.files:
        there = _size(ctx, item.path)
        if there is None:
            _move(ctx, f"{folder}/{item.path}", item.path, item.size)
        elif there == item.size:
            retry.delete(ctx.storage, f"{folder}/{item.path}")
        else:
            raise InvalidRequestError(
                f"{item.path} is there with {there:,} bytes, and {item.size:,} were put aside; move it away first",
                base_path=ctx.base_path,
                path=item.path,
            )
    retry.delete(ctx.storage, f"{folder}/{MANIFEST}")
    return made


def _move(ctx: TableContext, source: str, target: str, size: int) -> None:
    """Copy, compare sizes, delete. Nothing is done if the source is gone: an earlier move, or a
    rollback, has done it."""
    if _size(ctx, source) is None:
        return

    def copy() -> None:
        with ctx.storage.open_read(source) as opened, ctx.storage.open_write(target) as sink:
            while data := opened.read(_COPY_BYTES):
                sink.write(data)

    retry.until_confirmed(copy)
    copied = _size(ctx, target)
    if copied != size:
        raise UnavailableError(
            f"{target} has {copied} bytes and not {size}: {source} was left where it is, try again",
            base_path=ctx.base_path,
            path=target,
        )
    retry.delete(ctx.storage, source)


def _size(ctx: TableContext, path: str) -> int | None:
    try:
        return ctx.storage.head(path).size
    except ObjectNotFoundError:
        return None


def _times(ctx: TableContext) -> list[str]:
    listed = (info.path[len(QUARANTINE) + 1 :].partition("/") for info in ctx.storage.list(QUARANTINE))
    return sorted({time for time, _, rest in listed if rest == MANIFEST})


def _manifest(ctx: TableContext, time: str) -> Quarantine:
    path = f"{QUARANTINE}/{time}/{MANIFEST}"
    try:
        document = parse_json(ctx.storage.get(path))
        return Quarantine(time, tuple(QuarantinedFile(**item) for item in document["files"]))
    except (ValueError, KeyError, TypeError, ObjectNotFoundError) as error:
        raise CorruptTableError(f"{path} cannot be read: {error}", base_path=ctx.base_path, path=path) from error
