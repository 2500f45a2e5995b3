"""`kubectl hudi`: questions and tasks about the resources of a cluster. Each verb is a module that is imported when it runs."""
