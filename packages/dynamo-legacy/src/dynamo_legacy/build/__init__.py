"""How the image of a tag is built: its name, its source, the Job, and what came of it."""
