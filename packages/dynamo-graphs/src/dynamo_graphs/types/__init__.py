"""Kinds of other projects, with the fields that the operator reads."""
