"""Names of attempts: from uid, generation and number, so that a repeated launch finds the first
one."""

from __future__ import annotations

import hashlib

NAME_LENGTH_MAX = 50
"""A launcher may append `-driver` and must stay within 63 characters."""


def attempt_name(table: str, uid: str, work: str, generation: int, number: int) -> str:
    """A DNS-1035 label such as `flights-feed-3f2a91bc-g2-1`, the same for the same arguments."""
    digest = hashlib.sha256(f"{uid}/{work}/{generation}".encode()).hexdigest()[:8]
    tail = f"-{digest}-g{generation}-{number}"
    head = f"{table}-{work.rpartition('/')[2]}".lower().replace(".", "-")
    head = head if head[:1].isalpha() else f"t{head}"
    return head[: NAME_LENGTH_MAX - len(tail)].rstrip("-") + tail
