"""What a commit tells Hudi Streamer beside a checkpoint: at which `--checkpoint` and
`--ignore-checkpoint` its job has begun already.

Facts (Hudi 0.14.0, 1.1.1 and 1.2.0): a job that is given one of the two begins there, unless the
newest commit with a checkpoint records the same text; then it goes on from that commit. So each
commit of the job records both. On version 6 the key is `deltastreamer.checkpoint.reset_key`, on 8
and 9 `streamer.checkpoint.reset.key.v2`; 1.x asks for the latter first, wherever it is. The key of
`--ignore-checkpoint` is the same on all. A `kafka.checkpoint.type` of the job, too, holds only
until a commit has the former.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from hudi_table.model.names import STREAMER_KEY, STREAMER_KEY_V2

STREAMER_KEYS = (STREAMER_KEY_V2, STREAMER_KEY)
RESET_KEYS = {STREAMER_KEY_V2: "streamer.checkpoint.reset.key.v2", STREAMER_KEY: "deltastreamer.checkpoint.reset_key"}
IGNORE_KEY = "deltastreamer.checkpoint.ignore_key"


@dataclass(frozen=True, slots=True)
class StreamerBegin:
    """Of a commit with a checkpoint for Hudi Streamer: the `--checkpoint` that its job has begun
    at, and its `--ignore-checkpoint`; "" without one."""

    reset: str = ""
    ignored: str = ""

    @classmethod
    def of(cls, extra: Mapping[str, str]) -> Self | None:
        """What stands in the extra metadata of a commit, None without such a checkpoint."""
        if not any(extra.get(key) for key in STREAMER_KEYS):
            return None
        resets = (extra.get(RESET_KEYS[key]) for key in STREAMER_KEYS)
        return cls(next(filter(None, resets), ""), extra.get(IGNORE_KEY, ""))

    def keys(self, streamer_key: str) -> dict[str, str]:
        """What a commit records that holds a checkpoint under `streamer_key`."""
        found = {RESET_KEYS[streamer_key]: self.reset, IGNORE_KEY: self.ignored}
        return {key: text for key, text in found.items() if text}
