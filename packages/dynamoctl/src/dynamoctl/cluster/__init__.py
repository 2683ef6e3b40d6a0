"""The cluster of a command line, and the objects that belong to a graph."""
