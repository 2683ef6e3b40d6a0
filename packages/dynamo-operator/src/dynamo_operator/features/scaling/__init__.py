"""The scale subresource of a service: an adapter for each, and its replicas in the graph."""
