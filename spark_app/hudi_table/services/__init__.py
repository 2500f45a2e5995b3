"""Table services (compaction, clustering, cleaning, archiving, rollback, the doctor, …): planner,
executor, each on the timeline.

Here belongs what changes a table without new rows of a caller, a folder for each service. What one
task writes belongs to `write.handles`, what a plan is on the timeline to `table.view`.

Begin with `base.py`, the protocol, and `registry.py`, all services by name; `planning.py` brings a
plan onto the timeline.
"""
