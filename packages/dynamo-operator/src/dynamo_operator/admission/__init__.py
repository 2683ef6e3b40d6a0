"""Admission: what the API server asks before it stores an object of ours, answered over TLS."""
