"""Messages as they are."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

VALUE = "value"


class RawDecoder:
    """One column, `value`, of bytes."""

    def decode(self, messages: Sequence[bytes], known: pa.Schema | None) -> pa.Table:
        """See `Decoder`."""
        del known
        return pa.table({VALUE: pa.array(messages, pa.binary())})
