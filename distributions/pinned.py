"""A build hook of hudi-spark and hudi-operator: they need the hudi-table of their own version, and
no other."""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Pinned(MetadataHookInterface):
    """Writes the dependencies: those of `[tool.hatch.metadata.hooks.custom]`, `==` behind each name
    of the project's own."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill the fields that the pyproject.toml declares as dynamic."""
        pin = f"=={metadata['version']}"
        metadata["dependencies"] = [f"hudi-table{pin}", *self.config["dependencies"]]
        own = self.config.get("own-extras", {})
        if own:
            metadata["optional-dependencies"] = {extra: [f"{name}{pin}"] for extra, name in own.items()}
