"""The options of pre-commit validators, and whether a write has any."""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "hoodie.precommit.validators."
VALIDATORS = PREFIX.rstrip(".")


def without_validators(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a commit that brings no rows, beside a write whose validators they name."""
    return {key: value for key, value in options.items() if key != VALIDATORS and not key.startswith(PREFIX)}


def has_validators(options: Mapping[str, str]) -> bool:
    """Whether options ask for validators, or hold queries of some."""
    return bool(options.get(VALIDATORS, "").strip()) or any(
        key.startswith(PREFIX) and key.endswith(".sql.queries") and value.strip() for key, value in options.items()
    )
