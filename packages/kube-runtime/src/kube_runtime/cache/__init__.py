"""What the cluster looks like: stores, informers, and the writes that watches have yet to bring."""
