"""Files and the objects in them: nothing here needs a cluster."""
