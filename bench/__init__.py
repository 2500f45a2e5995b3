"""The race of `make bench`: one workload, one machine, one run, for us, our peers and a floor."""
