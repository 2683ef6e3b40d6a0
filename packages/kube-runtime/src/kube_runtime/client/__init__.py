"""Requests to the API server: credentials, transport, retries, errors."""
