"""The bootstrap index: which file outside the table holds the columns of which skeleton.

Facts (measured on Hudi 0.15.0 and 1.1.1, equal in table versions 6, 8 and 9): two HFiles,
compressed with GZ, each named
`00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile`, in
`.hoodie/.aux/.bootstrap/.partitions` and `.fileids`. Keys are `part=<partition path>` and
`part=<partition path>;fileid=<file id>`; the path of a table without partitions is ''. A value is
an Avro container with a schema of its own: the first tells all files of the partition by file id,
the second one file. The file info has one more, `INDEX_INFO`, with the source's base path and the
number of keys. A path is a URI as Hadoop's `Path` prints it: `file:/folder/file`, nothing escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hudi_table.codec.avro.container import read_container, write_container
from hudi_table.codec.hfile.reader import HFile
from hudi_table.codec.hfile.writer import write_hfile
from hudi_table.errors import CorruptTableError
from hudi_table.model.names import BOOTSTRAP_INSTANT, HOODIE

_FILE: Final = f"00000000-0000-0000-0000-000000000000-0_1-0-1_{BOOTSTRAP_INSTANT}.hfile"
PARTITIONS: Final = f"{HOODIE}/.aux/.bootstrap/.partitions/{_FILE}"
FILE_IDS: Final = f"{HOODIE}/.aux/.bootstrap/.fileids/{_FILE}"


@dataclass(frozen=True, slots=True)
class BootstrapFile:
    """A skeleton and its source: `uri` is the whole location, `source_partition` the source's
    folder of the file, `modified` milliseconds since 1970."""

    partition: str
    file_id: str
    uri: str
    size: int
    modified: int
    source_partition: str


def write_index(files: Sequence[BootstrapFile], base: str) -> dict[str, bytes]:
    """The bytes of both files, by their paths in the table. The same files make the same bytes."""
    created = max((file.modified for file in files), default=0)
    of: dict[str, list[BootstrapFile]] = {}
    for file in files:
        of.setdefault(file.partition, []).append(file)
    whole = {
        _partition_key(partition): write_container(
            "HoodieBootstrapPartitionMetadata",
            {
                "bootstrapPartitionPath": found[0].source_partition,
                "partitionPath": partition,
                "fileIdToBootstrapFile": {file.file_id: _status(file) for file in found},
            },
        )
        for partition, found in of.items()
    }
    single = {
        f"{_partition_key(file.partition)};fileid={file.file_id}": write_container(
            "HoodieBootstrapFilePartitionInfo",
            {
                "bootstrapPartitionPath": file.source_partition,
                "bootstrapFileStatus": _status(file),
                "partitionPath": file.partition,
            },
        )
        for file in files
    }
    return {PARTITIONS: _hfile(whole, base, created), FILE_IDS: _hfile(single, base, created)}


def files_of(source: HFile, partition: str) -> dict[str, BootstrapFile]:
    """The files of a partition by file id, from the file of partitions; none if it is not there.
    Raises CorruptTableError."""
    found = source.lookup(pa.array([_partition_key(partition).encode()], pa.binary()))
    if not len(found):
        return {}
    try:
        (record,) = read_container(found.column("value")[0].as_py())
        folder = record["bootstrapPartitionPath"] or ""
        return {
            file_id: BootstrapFile(
                partition, file_id, each["path"]["uri"], each["length"], each["modificationTime"] or 0, folder
            )
            for file_id, each in (record["fileIdToBootstrapFile"] or {}).items()
        }
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{source.path} tells nothing of the files of the partition {partition!r}: {error}", path=source.path
        ) from error


def _partition_key(partition: str) -> str:
    return f"part={partition}"


def _status(file: BootstrapFile) -> dict[str, Any]:
    return {
        "path": {"uri": file.uri},
        "length": file.size,
        "isDir": False,
        "blockReplication": 1,
        "blockSize": 32 << 20,
        "modificationTime": file.modified,
        "accessTime": file.modified,
    }


def _hfile(values: Mapping[str, bytes], base: str, created: int) -> bytes:
    keys = sorted(values, key=str.encode)
    about = write_container(
        "HoodieBootstrapIndexInfo", {"bootstrapBasePath": base, "createdTimestamp": created, "numKeys": len(keys)}
    )
    entries = pa.array([values[key] for key in keys], pa.binary())
    return write_hfile(pa.array(keys, pa.string()), entries, schema="", info={"INDEX_INFO": about})
