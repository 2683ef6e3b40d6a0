"""Graphs as Python objects: built, checked, drawn, rendered, read and written; exported by `dynamo_graphs`."""
