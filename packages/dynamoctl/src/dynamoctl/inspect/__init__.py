"""What is there, and why: nothing here writes to the cluster."""
