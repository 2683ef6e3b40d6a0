"""Build the image of a tag: its name, its source, the Job, and the result."""
