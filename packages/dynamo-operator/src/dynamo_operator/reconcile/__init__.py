"""What the controllers share: preflight checks, reads of the cache, patches, reports, offloaded work.

A controller reads the cluster from the cache. What it keeps in memory besides (running calls, the time of
the last status, specs without problems) only saves work: after a restart it reaches the same result.
"""
