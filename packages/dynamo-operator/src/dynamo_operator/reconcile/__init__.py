"""One controller per kind: gather, validate, render, apply, status.

What a controller knows of the cluster is in the cache. What it remembers besides (calls in progress, when a
status was last written, specs without mistakes) only saves work: after a restart the same comes out.
"""
