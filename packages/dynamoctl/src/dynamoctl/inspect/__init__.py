"""Show objects and explain their state. Nothing here writes to the cluster."""
