"""Verbs that the control plane adds to `hudictl`, through the entry-point group `hudictl.verbs`."""
