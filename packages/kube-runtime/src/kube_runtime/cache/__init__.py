"""The cache of the cluster: stores, informers, and own writes that the watch has not delivered yet."""
