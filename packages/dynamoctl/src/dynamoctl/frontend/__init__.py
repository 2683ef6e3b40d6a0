"""The frontend of a graph: chat, requests, port-forwarding, its metrics."""
