"""Table services (cleaning, clustering, archiving, …): planner, executor, each on the timeline.

Empty until the table services land: this release rolls back failed writes through `table.recovery`.
"""
