"""Names of base files, markers, partitions and folders, parsed and formatted.

Facts (version 6, measured on Hudi 0.15.0): a base file is
`<fileId>_<writeToken>_<instant>.parquet`, its file id holds no `_`; a write token is `<task
partition>-<stage>-<attempt>`; a marker is `.hoodie/.temp/<instant>/<partition>/<data
file>.marker.<CREATE|MERGE|APPEND>`; a log file is `.<fileId>_<base
instant>.log.<version>_<token>[.cdc]`. Skeletons of a bootstrap have the instant 00000000000001.
"""

from __future__ import annotations

import functools
import re
import uuid
from dataclasses import dataclass
from enum import StrEnum

from hudi_table.model.digits import is_digits

HOODIE = ".hoodie"
TEMP = f"{HOODIE}/.temp"
CHAIN = f"{HOODIE}/.txn"
INGEST = f"{HOODIE}/.ingest"
ARCHIVED = f"{HOODIE}/archived"
HEARTBEAT = f"{HOODIE}/.heartbeat"
QUARANTINE = f"{HOODIE}/.quarantine"
TURNS = f"{HOODIE}/.turns"
STAGED = f"{HOODIE}/.staged"
"""Rows that tasks have handed over and nobody has committed yet."""
METADATA_TABLE = f"{HOODIE}/metadata"
PROPERTIES = f"{HOODIE}/hoodie.properties"
PROPERTIES_BACKUP = f"{HOODIE}/hoodie.properties.backup"
PARTITION_METADATA = ".hoodie_partition_metadata"
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
NULL_KEY = "__null__"
EMPTY_KEY = "__empty__"

COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
BOOTSTRAP_INSTANT = "00000000000001"
"""The instant of a bootstrap that copies no rows: its base files are skeletons, which hold the meta
columns alone."""
FULL_BOOTSTRAP_INSTANT = "00000000000002"
"""The instant at which a bootstrap writes the rows of the partitions that it copies."""
BOOTSTRAPS = (BOOTSTRAP_INSTANT, FULL_BOOTSTRAP_INSTANT)
META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
OPERATION_COLUMN = "_hoodie_operation"
"""Hudi's sixth column, in files of writes with `hoodie.allow.operation.metadata.field`: `I`, `-U`,
`U`, `D`, or null."""
UPDATED = "U"
GONE_OPERATIONS = ("D", "-U")
"""Operations of rows in logs that take the row of their key away: a delete, and the old row of an
update."""
ALL_META_COLUMNS = (*META_COLUMNS, OPERATION_COLUMN)
IS_DELETED = "_hoodie_is_deleted"

_BASE_FILE = re.compile(r"^(?P<id>[^_/]+)_(?P<token>[^_/]+)_(?P<time>\d{14,})\.parquet$", re.ASCII)
_OTHER_FORMAT = re.compile(r"^(?P<id>[^_/]+)_(?P<token>[^_/]+)_(?P<time>\d{14,})\.(?:orc|lance|hfile)$", re.ASCII)
_LOG_FILE = re.compile(
    r"^\.(?P<id>[^_/]+)_(?P<time>\d+)\.log\.(?P<version>\d+)(?:_(?P<token>[^./]+))?(?P<cdc>\.cdc)?$", re.ASCII
)
_OUR_LOG_TOKEN = re.compile(r"^(\d{8})-(\d{9})-\d+$", re.ASCII)
_MARKER = re.compile(r"^(?P<data>.+)\.marker\.(?P<type>CREATE|MERGE|APPEND)$")
_ESCAPED = frozenset([chr(c) for c in range(0x20)] + ["\x7f"] + list("\"#%'*/:=?[\\]^{"))
STREAMER_KEY, STREAMER_KEY_V2 = "deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2"
"""Under which Hudi Streamer keeps its checkpoint in a commit: on versions 6, and 8 and 9."""
_ID_SEED = 0xFFFFFFFFDABADABA
_MASK64 = (1 << 64) - 1
_XX = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
"""The primes of xxHash64."""


class MarkerType(StrEnum):
    """What a marked file is: a new group's first file, a rewrite, or a log."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """The parts of a base file's name."""

    file_id: str
    write_token: str
    instant: str

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant}.parquet"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """The parts of a log file's name; `token` may be absent, `cdc` marks a change-data twin."""

    file_id: str
    base_instant: str
    version: int
    token: str | None
    cdc: bool = False

    def __str__(self) -> str:
        token = "" if self.token is None else f"_{self.token}"
        return f".{self.file_id}_{self.base_instant}.log.{self.version}{token}{'.cdc' if self.cdc else ''}"


def log_write_token(instant: str, attempt: int) -> str:
    """Write token of our log files: the instant, of 17 digits, and the attempt of the task.

    Logs of one version apply in the order of their tokens as text, and a reader stops at a block
    later than its snapshot: so of two writes side by side the later one's log has to come last, and
    neither may take the other's name.
    """
    return f"{instant[:8]}-{instant[8:]}-{attempt}"


@functools.lru_cache(1 << 14)
def instant_of_token(token: str | None) -> str | None:
    """The instant in a token of ours, None for one that another engine wrote."""
    match = _OUR_LOG_TOKEN.match(token or "")
    return match[1] + match[2] if match else None


def parse_base_file(name: str) -> BaseFileName | None:
    """The parts of a base file name, or None if the name is not one."""
    match = _BASE_FILE.match(name)
    return None if match is None else BaseFileName(match["id"], match["token"], match["time"])


def parse_other_format(name: str) -> BaseFileName | None:
    """The same of a base file in another format than Parquet."""
    match = _OTHER_FORMAT.match(name)
    return None if match is None else BaseFileName(match["id"], match["token"], match["time"])


def is_skeleton(path: str) -> bool:
    """Whether a file is a base file with the meta columns alone, by its name: the columns lie in a
    file outside the table."""
    found = parse_base_file(path.rpartition("/")[2])
    return found is not None and found.instant == BOOTSTRAP_INSTANT


def parse_log_file(name: str) -> LogFileName | None:
    """The parts of a log file name, or None if the name is not one."""
    match = _LOG_FILE.match(name)
    if match is None:
        return None
    return LogFileName(match["id"], match["time"], int(match["version"]), match["token"], match["cdc"] is not None)


def parse_data_file(name: str) -> BaseFileName | LogFileName | None:
    """The parts of the name of a base file or a log, or None if the name is neither."""
    return parse_base_file(name) or parse_log_file(name)


def marker_path(instant: str, partition: str, file_name: str, kind: MarkerType) -> str:
    """Path of the DIRECT marker of one data file, relative to the base path."""
    return join(TEMP, instant, partition, f"{file_name}.marker.{kind}")


def parse_marker(path: str) -> tuple[str, MarkerType] | None:
    """(data file path relative to the base, type) of a marker path relative to
    `.temp/<instant>/`."""
    match = _MARKER.match(path)
    return None if match is None else (match["data"], MarkerType(match["type"]))


def join(*parts: str) -> str:
    """Relative path of the non-empty parts: the partition path of a non-partitioned table is ''."""
    return "/".join(part for part in parts if part)


def new_file_id(seed: uuid.UUID, partition: str, ordinal: int) -> str:
    """A file id fixed by the plan: any attempt of the same plan computes the same one."""
    return f"{uuid.uuid5(seed, f'{partition}/{ordinal}')}-0"


def bucket_file_id(seed: uuid.UUID, partition: str, bucket: int) -> str:
    """File id of a new bucket: 8 decimal digits, then a UUID without its first 8 characters, then
    `-0`."""
    return f"{bucket:08d}{str(uuid.uuid5(seed, f'{partition}/bucket/{bucket}'))[8:]}-0"


def shared_bucket_file_id(bucket: int) -> str:
    """The file id of a bucket that several writers begin at once, as Hudi's non-blocking writers
    name it (measured on 1.0.2 and 1.1.1)."""
    return f"{bucket:08d}-0000-0000-0000-000000000000-0"


def bucket_of_file_id(file_id: str) -> int | None:
    """Bucket number of a bucket table's file id, or None if the id does not start with 8 digits."""
    return int(file_id[:8]) if len(file_id) > 8 and is_digits(file_id[:8]) and file_id[8] == "-" else None


def escape_partition_value(value: str) -> str:
    """Percent-encode what Hudi encodes with `urlencode` on: controls, 7F and ``"#%'*/:=?[\\]^{``
    (not `}`)."""
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in value)


def unescape_partition_value(value: str) -> str:
    """The inverse of `escape_partition_value`; malformed escapes are kept as they are."""
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), value)


def name_hash(name: str) -> int:
    """The number, below 2^64, that Hudi's `HashID` makes of a name: xxHash64 of its UTF-8, seeded
    with 0xdabadaba extended by its sign (measured on 0.15.0, 1.0.2 and 1.1.1). Names are few and
    short: a compiled library would be one more dependency."""
    return _xxhash64(name.encode(), _ID_SEED)


def _xxhash64(data: bytes, seed: int) -> int:
    size = len(data)
    at = 0
    if size >= 32:
        lanes = [seed + _XX[0] + _XX[1], seed + _XX[1], seed, seed - _XX[0]]
        while at <= size - 32:
            words = (int.from_bytes(data[at + 8 * i : at + 8 * i + 8], "little") for i in range(4))
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        result = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK64
        for lane in lanes:
            result = ((result ^ _round(0, lane)) * _XX[0] + _XX[3]) & _MASK64
    else:
        result = (seed + _XX[4]) & _MASK64
    result = (result + size) & _MASK64
    while at <= size - 8:
        result = (
            _rotate(result ^ _round(0, int.from_bytes(data[at : at + 8], "little")), 27) * _XX[0] + _XX[3]
        ) & _MASK64
        at += 8
    if at <= size - 4:
        word = int.from_bytes(data[at : at + 4], "little")
        result = (_rotate(result ^ (word * _XX[0] & _MASK64), 23) * _XX[1] + _XX[2]) & _MASK64
        at += 4
    for byte in data[at:]:
        result = (_rotate(result ^ (byte * _XX[4] & _MASK64), 11) * _XX[0]) & _MASK64
    result = (result ^ (result >> 33)) * _XX[1] & _MASK64
    result = (result ^ (result >> 29)) * _XX[2] & _MASK64
    return result ^ (result >> 32)


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _XX[1]) & _MASK64, 31) * _XX[0] & _MASK64


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | ((value & _MASK64) >> (64 - bits))) & _MASK64
