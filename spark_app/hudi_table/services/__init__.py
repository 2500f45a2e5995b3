"""Table services (cleaning, clustering, rollback, …): planner, executor, each on the timeline."""
