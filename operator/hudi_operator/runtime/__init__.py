"""The reconcile loop and its ports: observe, validate, plan, execute. The local runtime is one implementation."""
