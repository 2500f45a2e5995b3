"""HFiles and metadata tables that Apache Hudi wrote (tests/data/metadata)."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_table.codec.hfile import HFile
from hudi_table.codec.log.blocks import BlockType, scan_blocks
from hudi_table.codec.log.hfile import read_hfile

FOLDER = Path(__file__).resolve().parents[1] / "data" / "metadata"
VERSIONS = ("0.15.0", "1.1.1")


def table(version: str, into: Path) -> Path:
    """The table that Hudi `version` wrote, unpacked below the folder `into`; its base path."""
    return unpacked(f"table-{version}", into)


def unpacked(name: str, into: Path) -> Path:
    """The folder `name` of the archive of that name, below the folder `into`."""
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return into / name


def rows_of_hudi(version: str) -> list[dict[str, Any]]:
    """The records of that table's metadata table as Hudi's Spark reader returned them."""
    rows: list[dict[str, Any]] = json.loads((FOLDER / f"table-{version}.json").read_text("utf-8"))
    return rows


def hfile(name: str) -> bytes:
    """One of the files that HBase's writer inside Hudi 0.15.0 wrote; README.md says which."""
    with tarfile.open(FOLDER / "hfiles.tar.xz") as archive:
        member = archive.extractfile(f"hfiles/{name}.hfile")
        assert member is not None
        return member.read()


def hfiles(base: Path) -> Iterator[tuple[Path, HFile]]:
    """Every HFile of a table's metadata table, those in log blocks too, with the file that it is
    in."""
    folder = base / ".hoodie" / "metadata"
    for path in sorted(folder.glob("*/*.hfile")):
        yield path, HFile.open(pa.OSFile(str(path)), path=path.name)
    for path in sorted(folder.glob("*/.*.log.*")):
        with path.open("rb") as source:
            for block in scan_blocks(source, path=path.name):
                if block.type is BlockType.HFILE:
                    yield path, read_hfile(source, block)
