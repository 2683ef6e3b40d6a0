"""Bring objects to their desired state: server-side apply, ownership, drift, status."""
