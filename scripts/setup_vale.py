"""Builds Vale, the checker of prose, from the locked Go module in tests/prose/vale; instant when
done. Prints its path.

    python -m scripts.setup_vale            builds it where it is missing
    python -m scripts.setup_vale --path     prints the path and builds nothing

Go as for scripts/setup_k8s.py; a C compiler, too, since Vale parses code by libraries in C.
"""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.setup_k8s import ROOT, build_missing, folder_of

MODULE = ROOT / "tests" / "prose" / "vale"
PACKAGES = {"vale": "github.com/vale-cli/vale/v3/cmd/vale"}


def vale() -> Path:
    """Where it lies."""
    return folder_of(MODULE, PACKAGES) / "vale"


if __name__ == "__main__":
    if sys.argv[1:] != ["--path"]:
        build_missing(MODULE, PACKAGES, vale().parent, with_c=True)
    print(vale())
