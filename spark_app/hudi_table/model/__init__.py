"""Values of the Hudi format: instants, names, keys, commit metadata, options, JobSpec.

Standard library only. Nothing here does I/O, reads a clock or imports Arrow.
"""
