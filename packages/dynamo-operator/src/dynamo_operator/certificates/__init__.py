"""Certificates of the servers that the operator runs: issued, stored and renewed."""
