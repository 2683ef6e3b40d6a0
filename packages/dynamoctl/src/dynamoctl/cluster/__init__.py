"""The cluster of a command line, and what belongs to an object in it."""
