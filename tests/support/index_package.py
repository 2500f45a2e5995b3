"""Packages that offer indexes, or sources of ingests: `tests/data/index_package`, built and
installed by pip, and small ones written by a test."""

from __future__ import annotations

import contextlib
import importlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).parents[1] / "data" / "index_package"


@contextlib.contextmanager
def installed_package() -> Iterator[Path]:
    """The package of `tests/data`, built as a wheel and installed into a folder of its own; yields
    the folder."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
        options = ["--no-build-isolation", "--no-deps", "--root-user-action=ignore", "--target", folder]
        subprocess.run([*pip, *options, str(SOURCE)], check=True)
        with on_the_path(Path(folder), "whole_scan"):
            yield Path(folder)


@contextlib.contextmanager
def written_package(
    folder: Path, module: str, source: str, entry_points: str, group: str = "hudi_table.indexes"
) -> Iterator[None]:
    """A package of one module, as an installer leaves it: the module, and its metadata with the
    entry points."""
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{module}.py").write_text(source)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry_points}\n")
    with on_the_path(folder, module):
        yield


@contextlib.contextmanager
def shipped_package(
    spark: SparkSession, folder: Path, module: str, source: str, entry_points: str, group: str
) -> Iterator[None]:
    """A package as `written_package` makes it, in this process and in every task of Spark."""
    with written_package(folder / "package", module, source, entry_points, group):
        before = list(sys.path)
        spark.sparkContext.addPyFile(shutil.make_archive(str(folder / module), "zip", folder / "package"))
        try:
            yield
        finally:
            # Spark leaves it on the path, and with it names that packages of other tests have.
            sys.path[:] = before
            importlib.invalidate_caches()


@contextlib.contextmanager
def on_the_path(folder: Path, module: str) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(module, None)
