"""What a state leaves in its folder, and how a successor takes it over.

The file begins with a mark of its form and a checksum. Then come, as a stream of Arrow, the groups
with the files whose keys the state has, and in its metadata the runs with a checksum for each
column, the secret of the marks, what the keys depend on, and the commits that the state has seen. A
successor believes all of it or nothing: not if one byte is another, and not if the timeline does
not go on from these commits. So it knows, file by file, what its predecessor knew, and reads those
that came since.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_table.index.keystate.folder import Folder
from hudi_table.index.keystate.marks import Words
from hudi_table.index.keystate.runs import Named, Run
from hudi_table.index.keystate.state import KeyState, Known
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

_FORM: Final = b"hudi-key-state 1\n"
"""Of the file, of marks, and of how files are named in it: whoever changes one counts it up."""
_SUM_BYTES: Final = 32
_TOLD: Final = b"state"
_GROUPS: Final = pa.schema(
    [("partition", pa.string()), ("file_id", pa.string()), ("number", pa.uint32()), ("files", pa.list_(pa.string()))]
)


@dataclass(frozen=True, slots=True)
class Past:
    """Where the state of a table is to outlive the process, and what it must fit: `name` by the
    location, `identity` by all that keys depend on, `commits` the completed instants."""

    root: Path
    name: str
    identity: str
    commits: frozenset[str]

    @classmethod
    def of(cls, root: str, ctx: TableContext, timeline: Timeline) -> Past:
        """That of a table, as of the timeline of a snapshot."""
        config = replace(ctx.config, index=None, metadata_partitions=(), extra={})
        name = blake2b(ctx.base_path.encode(), digest_size=16).hexdigest()
        identity = blake2b(f"{ctx.base_path} {config}".encode(), digest_size=_SUM_BYTES).hexdigest()
        return cls(Path(root), name, identity, timeline.commit_times)


def settle(state: KeyState, past: Past) -> None:
    """Give the state its folder, unless another process has it, and what is there to one that knows
    nothing, or no more than what this process has inserted before its first look-up. Raises
    OSError."""
    if state.folder is not None and state.folder.path.parent != past.root:
        state.leave()
    if state.folder is None:
        state.folder = Folder.taken(past.root, past.name)
        if state.folder is not None and not (state.known and state.identity):
            _take_over(state, state.folder, past)
    state.identity, state.commits = past.identity, set(past.commits)


def save(state: KeyState) -> None:
    """Leave it in its folder as it is now, if it has one. Raises OSError, after which the one
    before is there."""
    folder = state.folder
    if folder is None:
        return
    try:
        state.runs = [run.within(folder.path) for run in state.runs]
        folder.replace(_written(state), _names(state.runs))
    finally:
        folder.sweep()


def _names(runs: Collection[Run]) -> frozenset[str]:
    return frozenset(path.name for run in runs if run.named is not None for path in run.named.files)


def _written(state: KeyState) -> bytes:
    places, known = list(state.known), list(state.known.values())
    columns = [
        [partition for partition, _ in places],
        [file_id for _, file_id in places],
        [each.number for each in known],
        [list(each.files) for each in known],
    ]
    told = {
        "identity": state.identity,
        "commits": sorted(state.commits),
        "secret": state.secret.tobytes().hex(),
        "given": state.given,
        "runs": [[run.named.stem.name, len(run), run.named.checksums] for run in state.runs if run.named is not None],
    }
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _GROUPS, strict=True)]
    schema = _GROUPS.with_metadata({_TOLD: json.dumps(told).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.record_batch(arrays, schema=schema))
    body: bytes = sink.getvalue().to_pybytes()
    return _FORM + blake2b(body, digest_size=_SUM_BYTES).digest() + body


def _take_over(state: KeyState, folder: Folder, past: Past) -> None:
    begins = len(_FORM) + _SUM_BYTES
    data = folder.contents()
    head, body = data[:begins], data[begins:]
    if head != _FORM + blake2b(body, digest_size=_SUM_BYTES).digest():
        return
    groups = pa.ipc.open_stream(body).read_all()
    told: dict[str, Any] = json.loads(groups.schema.metadata[_TOLD])
    if told["identity"] != past.identity or not goes_on(told["commits"], past.commits):
        return
    runs = [Run.read(Named(folder.path / name, tuple(sums)), count) for name, count, sums in told["runs"]]
    whole = [run for run in runs if run is not None]
    if len(whole) < len(runs):
        return
    secret: Words = np.frombuffer(bytes.fromhex(told["secret"]), np.uint64)
    state.secret, state.runs, state.given = secret, whole, told["given"]
    state.alive = np.zeros(state.given, bool)
    state.alive[groups["number"].to_numpy()] = True
    places = zip(groups["partition"].to_pylist(), groups["file_id"].to_pylist(), strict=True)
    known = zip(groups["number"].to_pylist(), groups["files"].to_pylist(), strict=True)
    state.known = {place: Known(number, tuple(files)) for place, (number, files) in zip(places, known, strict=True)}
    folder.kept = _names(whole)


def goes_on(seen: Collection[str], commits: Collection[str]) -> bool:
    """Whether a timeline goes on from commits that were seen: the newest is there, and all that are
    not older than its first. What took one back, archived the newest or put another table there
    makes it another one."""
    if not seen or max(seen, key=comparable_time) not in commits:
        return False
    first = min(map(comparable_time, commits))
    return all(time in commits for time in seen if comparable_time(time) >= first)
