"""Whether a write asks for validators. Most do not, and import nothing for it."""

from __future__ import annotations

from dataclasses import replace

from hudi_table.errors import InvalidRequestError
from hudi_table.model.options.validators import VALIDATORS, has_validators
from hudi_table.write.operations import WriteRequest


def with_validators(request: WriteRequest) -> WriteRequest:
    """The request, with the validators that its options ask for. Raises InvalidOptionError and
    InvalidRequestError for what cannot be run."""
    if not has_validators(request.options):
        return request
    try:
        from hudi_table.services.validating.queries import queries_of
        from hudi_table.services.validating.run import Validators
    except ImportError as error:
        raise InvalidRequestError(
            f"{VALIDATORS} needs DuckDB and sqlglot, of which one is not installed: pip install 'hudi-table[query]'"
        ) from error
    return replace(request, validators=Validators(tuple(queries_of(request.options))))
