"""Graphs as Python objects: built, checked, drawn, rendered, read, written. `dynamo_graphs` exports them."""
