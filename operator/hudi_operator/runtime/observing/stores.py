"""How the store of a table, or of its files, is reached."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_operator.api.table import HudiTableSpec
from hudi_table.model.job.variables import SOURCE_VARIABLES
from hudi_table.model.table.index_properties import CONNECTION

NOT_OF_STORES = frozenset({CONNECTION, *SOURCE_VARIABLES})


def storage_options(spec: HudiTableSpec, uri: str, secret: Mapping[str, str]) -> dict[str, str]:
    """Options of the storage port for a location: none for local paths, else endpoint, region and
    credentials."""
    if uri.startswith(("file:", "memory:")):
        return {}
    settings = {"endpoint": spec.storage.endpoint, "region": spec.storage.region}
    options = {name: value for name, value in settings.items() if value is not None}
    return options | {name.lower(): value for name, value in secret.items() if name not in NOT_OF_STORES}
