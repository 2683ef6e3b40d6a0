"""A simulated API server, workers and frontends, and a clock that jumps to the next timer."""
