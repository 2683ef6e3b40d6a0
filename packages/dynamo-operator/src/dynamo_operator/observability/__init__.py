"""Logs, probes and metrics of the operator."""
