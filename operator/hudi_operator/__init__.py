"""The control plane: resources, reconcile plan, launchers, status and the local runtime.

Layers, top to bottom: `cli → handlers → metrics → runtime → launchers → kube → plan → manifests →
api → errors`. `api`, `manifests` and `plan` do no I/O and read no clock. Nothing here imports
pyspark or `hudi_spark`: operator and job meet in JobSpec and JobResult.

Begin with `runtime/reconcile.py`, then `plan/table.py`.
"""

from hudi_table.version import __version__

__all__ = ["__version__"]
