"""The older generation of kinds, from manifest to objects and status, as pure functions."""
