"""A process of hudictl's own goes without pandas.

Fact (pyarrow 26): with the first value of Python that it converts, pyarrow imports pandas where it
is installed, to know its missing values by sight. That is a third of what a small query takes. Our
verbs hand pyarrow no value of pandas; an engine that another package brings may.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec


class _WithoutPandas:
    """Finds no pandas, as if it were not installed."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Raises ModuleNotFoundError for pandas, and leaves the rest to others."""
        if name == "pandas":
            raise ModuleNotFoundError("hudictl goes without pandas", name=name)
        return None


_FINDER = _WithoutPandas()


def leave_pandas_out() -> None:
    """From now on pandas cannot be imported. Only for the start of a process that is ours alone:
    what pyarrow has missed it never knows."""
    sys.meta_path.insert(0, _FINDER)


def let_pandas_in() -> None:
    """Pandas can be imported again, if it was left out."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
