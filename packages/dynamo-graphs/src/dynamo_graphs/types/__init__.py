"""Kinds of other projects, and core kinds that are watched by what they are for: the fields that are read."""
