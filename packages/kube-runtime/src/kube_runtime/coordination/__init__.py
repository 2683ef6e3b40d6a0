"""Leases: leader election, and which operator owns a namespace."""
