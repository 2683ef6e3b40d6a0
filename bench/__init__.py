"""What the operator costs, measured on a real control plane. See `docs/performance.md`."""
