"""Writes that have put their files and are not decided: what others do meanwhile, and that such a
write gives up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import WriteConflictError
from hudi_table.table.commit.transaction import Transaction


def lose(table: HudiTable, data: pa.Table, meanwhile: Callable[[Transaction], Any], patch: pytest.MonkeyPatch) -> None:
    """Upsert `data`; once its files are there `meanwhile` runs, and then the write is lost as on a
    conflict, and rolls itself back."""
    real = Transaction.commit

    def commit(self: Transaction, *_: Any) -> None:
        patch.setattr(Transaction, "commit", real)
        meanwhile(self)
        raise WriteConflictError("lost")

    patch.setattr(Transaction, "commit", commit)
    with pytest.raises(WriteConflictError, match="lost"):
        table.upsert(data)
