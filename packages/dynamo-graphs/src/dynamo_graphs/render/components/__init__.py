"""The roles: what a frontend, a worker, a planner and any other component is by default."""
