"""Storage on what obstore opens: memory, S3, GCS, Azure.

Two clients of one store. `once` repeats nothing: `retry.py` decides what is sent again, because a
repetition after a lost reply could meet its own object and report it as somebody else's. `store`
repeats by itself the parts of an upload, which obstore sends.

An exclusive creation of any size is one request, which S3 takes up to 5 GiB: obstore completes no
upload in parts under a condition.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, TypeVar

import obstore
from obstore.exceptions import BaseError, NotFoundError, NotSupportedError, PreconditionError

from hudi_table.errors import (
    HudiError,
    InvalidRequestError,
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from hudi_table.table.store.errors import (
    ConflictingCreateError,
    ObjectChangedError,
    is_of_the_condition,
    is_range_of_nothing,
    panicked,
    translate,
    unpanicked,
)
from hudi_table.table.store.paths import MAX_KEY_BYTES, check_folder, check_path
from hudi_table.table.store.ports import Names, ObjectInfo, Objects, Storage
from hudi_table.table.store.retry import Pace
from hudi_table.table.store.tags import kept_tag, quoted

T = TypeVar("T")
Version = tuple[str | None, str | None]
"""By what a store knows what it holds under a name: the tag of its bytes, its generation."""
_PART_BYTES = 8 << 20
"""Size of one part of a streamed upload; S3 takes 10,000 parts, so an object of 80 GB."""
_PAGE = 1000
"""Objects of one request of a listing, as S3 gives them."""
_ASKED_IN: set[int] = set()
"""Processes that have asked obstore, this one and those that it was forked from."""
_FAILURES = (BaseError, OSError, ValueError)
"""What obstore raises: its own classes, FileNotFoundError, and ValueError for paths."""


class ObjectStorage:
    """Objects under one prefix of one bucket. See `Storage` for what each method promises."""

    def __init__(
        self, store: Any, once: Any, pace: Pace, *, uri: str, prefix: str, where: str, reopen: Callable[[], Storage]
    ) -> None:
        self._store = store
        self._once = once
        self._pace = pace
        self._uri = uri
        self._scheme = uri.partition(":")[0].lower()
        self._prefix = f"{prefix}/" if prefix else ""
        self._where = where
        self._reopen = reopen

    @property
    def base_path(self) -> str:
        """The URI without a trailing slash."""
        return self._uri

    def __repr__(self) -> str:
        return f"ObjectStorage({self._uri!r})"

    def __reduce__(self) -> tuple[Callable[[], Storage], tuple[()]]:
        return self._reopen, ()

    def reopen(self) -> Callable[[], Storage]:
        """Opens the same prefix in another process (for `memory://` in this one only)."""
        return self._reopen

    def get(self, path: str) -> bytes:
        """The whole object, by one request."""
        key = self._key(path)
        return self._request(path, lambda: bytes(obstore.get(self._once, key).bytes()))

    def head(self, path: str) -> ObjectInfo:
        """Size and age, by one request."""
        key = self._key(path)
        return self._info(self._request(path, lambda: obstore.head(self._once, key)))

    def list(self, prefix: str = "", *, start_after: str | None = None, limit: int | None = None) -> Objects:
        """All objects below the folder; stores list in the order of paths, and no page is asked for
        beyond `limit`."""
        key = self._folder_key(prefix)
        start = None if start_after is None else self._prefix + start_after
        at_once = _PAGE if limit is None else max(1, min(limit, _PAGE))
        listed: list[Any] = []
        pages: Iterator[Any] | None = None

        def page() -> Any:
            """The next one; a repetition goes on behind what was listed."""
            nonlocal pages, start
            if pages is None:
                start = str(listed[-1]["path"]) if listed else start
                pages = iter(obstore.list(self._once, key, offset=start, chunk_size=at_once))
            # What has failed gives no further page.
            under_way, pages = pages, None
            found = next(under_way, None)
            pages = under_way
            return found

        while limit is None or len(listed) < limit:
            found = self._request(prefix, page)
            if found is None:
                break
            # Azure's emulator, for one, begins where it likes.
            listed.extend(found if start is None else [meta for meta in found if meta["path"] > start])
        infos = sorted((self._info(meta) for meta in listed[:limit]), key=lambda info: info.path)
        return _without_folder_markers(infos, prefix)

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        """(sub-folders, objects) directly in the folder."""
        key = self._folder_key(prefix)
        result = self._request(prefix, lambda: obstore.list_with_delimiter(self._once, key))
        folders = sorted(folder[len(self._prefix) :] for folder in result["common_prefixes"])
        found = sorted((self._info(meta) for meta in result["objects"]), key=lambda info: info.path)
        hidden = {*folders, prefix}
        return folders, [info for info in found if info.size or info.path not in hidden]

    def open_read(self, path: str) -> Any:
        """A random access file: its end, where Parquet keeps the footer, comes with the opening
        request. On Azure that of a file above 64 KiB takes two."""
        from hudi_table.table.store.ranges.object_file import ObjectFile
        from hudi_table.table.store.ranges.ranged_reads import RangeFile

        key = self._key(path)

        def read(start: int, end: int) -> bytes:
            return self._request(path, lambda: bytes(obstore.get_range(self._once, key, start=start, end=end)))

        def ranged(wanted: Any) -> tuple[int, bytes] | None:
            """(size of the object, the bytes); None if the store has no ranges of that kind, which
            the client knows without a request."""
            try:
                result = obstore.get(self._once, key, options={"range": wanted})
                return int(result.meta["size"]), bytes(result.bytes())
            except NotSupportedError:
                return None
            except BaseError as error:
                if not is_range_of_nothing(error):
                    raise
                return 0, b""

        def tail(length: int) -> tuple[int, bytes]:
            """(size of the object, its last bytes)."""
            found = self._request(path, lambda: ranged({"suffix": length}))
            if found is None:
                # Azure. The beginning tells the size, and is the whole of a small object.
                found = size, _ = self._request(path, lambda: ranged((0, length))) or (0, b"")
                if size > length:
                    found = size, read(size - length, size)
            return found

        return ObjectFile(RangeFile(tail, read))

    def put(self, path: str, data: bytes) -> None:
        """Create or replace by one request."""
        key = self._key(path)
        self._request(path, lambda: obstore.put(self._once, key, data, use_multipart=False), writes=True)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create exclusively by one request, whatever the size. It is sent again only if the store
        says that nothing was done (409, SlowDown)."""
        key = self._key(path)
        self._request(path, lambda: obstore.put(self._once, key, data, mode="create"), writes=True, exclusive=True)

    def replace(self, seen: ObjectInfo, data: bytes) -> None:
        """Replace by one request under a condition, which is not sent again after a lost reply."""
        if seen.etag is None and seen.version is None:
            self.put(seen.path, data)
            return
        try:
            self.put_version(seen.path, data, (seen.etag, seen.version))
        except (ObjectExistsError, ConflictingCreateError) as error:
            raise ObjectChangedError(f"{seen.path!r} was just replaced; try again", path=seen.path) from error

    def put_version(self, path: str, data: bytes, over: Version | None) -> Version:
        """Replace what has the version `over`, or create exclusively (None), by one request that is
        not sent again after a lost reply. Raises ObjectExistsError if there is another one, or it
        is gone."""
        key = self._key(path)
        mode: Any = "create"
        if over is not None:
            tag, version = over
            known = {"e_tag": None if tag is None else quoted(tag), "version": version}
            mode = {name: value for name, value in known.items() if value is not None}

        def write() -> Version:
            try:
                result = obstore.put(self._once, key, data, mode=mode)
            except (PreconditionError, NotFoundError) as error:
                if not is_of_the_condition(error):
                    raise
                raise ObjectExistsError(f"{path!r} is not the version that was read", path=path) from error
            return result["e_tag"], result.get("version")

        return self._request(path, write, writes=True, exclusive=True)

    @contextlib.contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        """A sink: one request up to 8 MiB, beyond that an upload in parts, several at once, which
        an exception aborts."""
        key = self._key(path)
        with contextlib.ExitStack() as stack:

            def open_writer() -> Any:
                parts = stack.enter_context(self._pace.upload())
                return obstore.open_writer(self._store, key, buffer_size=_PART_BYTES, max_concurrency=parts)

            def hand_over(action: Callable[[], Any]) -> Any:
                self._refuse_fork()
                return self._pace.hand_over(lambda: self._translated(path, action, writes=True))

            sink = _Sink(open_writer, hand_over)
            try:
                yield sink  # type: ignore[misc]
            except BaseException as error:
                sink.abort(error)
                raise
            whole = sink.finish()
        if whole is not None:
            self._request(path, lambda: obstore.put(self._once, key, whole, use_multipart=False), writes=True)

    def delete(self, path: str) -> None:
        """Delete; repeated requests are harmless."""
        key = self._key(path)
        with contextlib.suppress(ObjectNotFoundError):
            self._request(path, lambda: obstore.delete(self._once, key))

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete, on S3 up to a thousand objects by one request; repeated requests are harmless."""
        left = list(paths)
        if len(left) == 1:
            self.delete(left[0])
        elif left:
            keys = [self._key(path) for path in left]
            try:
                self._request(left[0], lambda: obstore.delete(self._once, keys))
            except ObjectNotFoundError:
                # A store that says so has stopped there.
                for path in left:
                    self.delete(path)

    def _key(self, path: str) -> str:
        key = self._prefix + check_path(path, base_path=self._uri)
        if len(key) > MAX_KEY_BYTES or len(key.encode()) > MAX_KEY_BYTES:
            message = f"{path[:100]!r}… makes a key of {len(key.encode())} bytes: stores take {MAX_KEY_BYTES}"
            raise InvalidRequestError(message, base_path=self._uri)
        return key

    def _folder_key(self, prefix: str) -> str | None:
        return (self._prefix + check_folder(prefix, base_path=self._uri)).rstrip("/") or None

    def _request(self, path: str, request: Callable[[], T], *, writes: bool = False, exclusive: bool = False) -> T:
        """The reply, in its turn and sent again as `Pace.send` says."""
        self._refuse_fork()
        return self._pace.send(lambda: self._translated(path, request, writes=writes), exclusive=exclusive)

    def _refuse_fork(self) -> None:
        """obstore starts its threads with the first request of a process. Who is forked afterwards
        has none of them and would wait for ever."""
        _ASKED_IN.add(os.getpid())
        if len(_ASKED_IN) > 1:
            raise InvalidRequestError(
                f"{self._where} cannot be asked in process {os.getpid()}, which was forked from one that had asked a store: start "
                "processes by the method 'spawn' or 'forkserver', or fork before the first request",
                base_path=self._uri,
            )

    def _translated(self, path: str, request: Callable[[], T], *, writes: bool = False) -> T:
        """The one way to obstore: its errors become ours, a panic an InvariantError."""
        try:
            return unpanicked(request, lambda: panicked(path=path, where=self._where))
        except _FAILURES as error:
            raise translate(error, path=path, where=self._where, scheme=self._scheme, writes=writes) from error

    def _info(self, meta: Any) -> ObjectInfo:
        return ObjectInfo(
            str(meta["path"])[len(self._prefix) :],
            int(meta["size"]),
            meta["last_modified"],
            kept_tag(meta["e_tag"], self._scheme),
            meta["version"],
        )


class _Sink:
    """What pyarrow and callers write to: kept until it outgrows one part, then uploaded in parts.

    A small object so goes by one request, whose failure obstore reports in full (of a writer's end
    it keeps only a line). Errors are translated where they happen.
    """

    def __init__(self, open_writer: Callable[[], Any], request: Callable[[Callable[[], Any]], Any]) -> None:
        self._open_writer = open_writer
        self._request = request
        self._kept = bytearray()
        self._writer: Any = None
        self._position = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Append; returns the number of bytes taken, which is all."""
        view = memoryview(data).cast("B")
        self._position += len(view)
        if self._writer is None and len(self._kept) + len(view) <= _PART_BYTES:
            self._kept += view
            return len(view)
        if self._writer is None:
            self._writer = self._request(self._open_writer)
            kept, self._kept = bytes(self._kept), bytearray()
            self._request(lambda: self._writer.write(kept))
        self._request(lambda: self._writer.write(bytes(view)))
        return len(view)

    def finish(self) -> bytes | None:
        """End an upload in parts; or the whole content, which is still to be put.

        The client repeats the end by itself and reports the last reply alone, so "not done" may
        follow a lost reply to one that was done.
        """
        if self._writer is None:
            return bytes(self._kept)
        try:
            self._request(self._writer.close)
        except UnavailableError as error:
            raise OutcomeUnknownError(
                f"{error.message}; whether the upload was completed is not known", path=error.path
            ) from error
        return None

    def abort(self, error: BaseException) -> None:
        """Let go of what was uploaded."""
        if self._writer is not None:
            with contextlib.suppress(HudiError):
                self._request(lambda: self._writer.__exit__(type(error), error, error.__traceback__))

    def tell(self) -> int:
        """Bytes written so far."""
        return self._position

    def flush(self) -> None:
        """Nothing: parts are sent when they are full."""

    def close(self) -> None:
        """Nothing: the end of the context finishes the object."""

    def readable(self) -> bool:
        """No."""
        return False

    def writable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """No."""
        return False


def _without_folder_markers(objects: list[ObjectInfo], prefix: str) -> list[ObjectInfo]:
    """Without the empty objects `folder/` that consoles and Hadoop make: obstore lists them as
    `folder`."""
    if not any(info.size == 0 for info in objects):
        return objects
    parents = {prefix}
    for info in objects:
        folder = info.path.rpartition("/")[0]
        while folder and folder not in parents:
            parents.add(folder)
            folder = folder.rpartition("/")[0]
    return [info for info in objects if info.size or info.path not in parents]
