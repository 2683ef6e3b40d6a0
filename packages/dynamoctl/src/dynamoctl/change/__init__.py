"""Change the cluster, or show what a change would do."""
