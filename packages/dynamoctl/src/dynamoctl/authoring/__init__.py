"""Work on files and the objects in them, without a cluster."""
