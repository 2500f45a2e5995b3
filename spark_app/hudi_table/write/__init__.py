"""Writing: key generation, workload planning, file handles, the operations. Commits through `table.transaction`."""
