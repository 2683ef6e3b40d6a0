"""What writes to the cluster, or says what a write would do."""
