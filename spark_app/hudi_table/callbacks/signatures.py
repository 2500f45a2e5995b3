"""The signature of a callback: HMAC-SHA256 over its moment and its bytes, so that a receiver knows
who sent it, that nothing was changed, and when.

The header is `t=<seconds since 1970>,v1=<hex>`; what is signed is `<seconds>.<body>`. A receiver
refuses what is older than some minutes, and takes an event that it has had already, by its id, for
done.
"""

from __future__ import annotations

import hashlib
import hmac
import re

HEADER = "Hudi-Signature"
TOLERANCE_SECONDS = 300
_FORM = re.compile(r"t=(?P<time>\d{1,12}),v1=(?P<digest>[0-9a-f]{64})", re.ASCII)


def signature(key: str, body: bytes, seconds: int) -> str:
    """The value of the header for a body that is sent so many seconds after 1970 began."""
    return f"t={seconds},v1={_digest(key, body, str(seconds))}"


def is_signed(key: str, body: bytes, header: str, now: float, *, tolerance: float = TOLERANCE_SECONDS) -> bool:
    """Whether a body is what the holder of the key sent, some minutes ago at the most. `now`:
    seconds since 1970 began."""
    found = _FORM.fullmatch(header)
    if found is None or abs(now - int(found["time"])) > tolerance:
        return False
    return hmac.compare_digest(found["digest"], _digest(key, body, found["time"]))


def _digest(key: str, body: bytes, time: str) -> str:
    return hmac.new(key.encode(), f"{time}.".encode() + body, hashlib.sha256).hexdigest()
