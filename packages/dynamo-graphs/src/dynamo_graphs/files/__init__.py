"""YAML files: read as kubectl reads them, with the place of every value."""
