"""From what users write to what Kubernetes gets. Pure: same input, same bytes, no I/O."""
