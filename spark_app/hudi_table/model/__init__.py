"""Values of the Hudi format: instants, names, keys, commit metadata, options, JobSpec.

Here belongs what is computed from text and numbers alone, by the standard library: no Arrow, no
store, no clock.

Begin with `timeline/instants.py`; a table is described in `table`, an option in `options`.
"""
