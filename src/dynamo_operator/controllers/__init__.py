"""One controller per kind: gather, validate, render, apply, status.

No controller keeps state between reconciles; what it knows is in the cache.
"""
