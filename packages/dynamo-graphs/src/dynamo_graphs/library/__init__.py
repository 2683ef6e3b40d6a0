"""The Python library: graphs as objects to build, check, draw, render, read and write."""
